"""OpenTelemetry GenAI spans: OTLP JSON, or the flat spans that SDK exporters print."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ctxengine.engine.importers.bodies import broken_line
from ctxengine.engine.importers.dialect import array_at, object_at, text_at
from ctxengine.engine.importers.instructions import system_text
from ctxengine.engine.importers.members import first_given
from ctxengine.engine.importers.otel_messages import (
    event_messages,
    numbered_messages,
    plain_values,
)
from ctxengine.engine.importers.span_messages import tools_of, value_of
from ctxengine.engine.importers.texts import time_of, time_of_epoch
from ctxengine.engine.importers.traces import Span, TraceReader
from ctxengine.engine.importers.transcript import ForeignUsage, Repair, Transcript
from ctxengine.engine.lexeme import LexemeError, Node, NodeKind, parse

FORMAT = "otel_genai"
NEW_FROM = "ctxengine.input.new_from"
"""Attribute of our own exports: index of the first input message that no earlier span of the conversation gave."""

_INFERENCE = "llm.token_count."
"""How OpenInference calls usage."""
_NANOSECONDS = 1_000_000_000
_DIGITS = re.compile(r"[0-9]+")
_MODEL_CALLS = ("chat", "text_completion", "generate_content")
_MODELS = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name")
_Attributes = dict[str, Node]


def read_document(root: Node) -> Transcript:
    """Read an OTLP export, a list of spans, or one span."""
    spans = [_span(n, span) for n, span in enumerate(_spans_of(root), 1)]
    return TraceReader().read(spans, FORMAT)


def read_lines(lines: Iterable[str]) -> Transcript:
    """Read exports or spans, one to a line."""
    nodes: list[Node] = []
    repairs: list[Repair] = []
    for number, line in enumerate(lines, 1):
        try:
            nodes.extend(_spans_of(parse(line.strip())) if line.strip() else ())
        except LexemeError as error:
            repairs.append(broken_line(number, line, str(error)))
    spans = [_span(n, node) for n, node in enumerate(nodes, 1)]
    transcript = TraceReader().read(spans, FORMAT)
    transcript.repairs.extend(repairs)
    transcript.items_in += len(repairs)
    return transcript


def _spans_of(root: Node) -> Iterator[Node]:
    left = [root]
    while left:
        root = left.pop()
        if root.kind is NodeKind.ARRAY:
            left += reversed(list(root))
            continue
        resources = array_at(root, "resourceSpans")
        if not resources and root.get("attributes") is not None:
            yield root
        for resource in resources:
            for scope in array_at(resource, "scopeSpans"):
                yield from array_at(scope, "spans")


def _span(number: int, span: Node) -> Span:
    given = _attributes(span)
    operation = _text(given, "gen_ai.operation.name")
    asked, answered = _messages(span, given, "input"), _messages(span, given, "output")
    is_call = operation in _MODEL_CALLS or (operation is None and answered is not None)
    is_tool = operation == "execute_tool"
    start, at = _start(span)
    context = object_at(span, "context")
    told = system_text(value_of(given.get("gen_ai.system_instructions")))
    return Span(
        where=f"span {number}",
        kind="generation" if is_call else "tool" if is_tool else "span",
        name=_text(given, "gen_ai.tool.name") or text_at(span, "name") or "",
        span_id=text_at(span, "spanId") or text_at(context, "span_id") or str(number),
        parent=text_at(span, "parentSpanId") or text_at(span, "parent_id") or None,
        start=start,
        at=at,
        request=asked if is_call else given.get("gen_ai.tool.call.arguments"),
        answer=answered if is_call else given.get("gen_ai.tool.call.result"),
        model=next((name for key in _MODELS if (name := _text(given, key))), None),
        usage=_usage(given),
        instructions=told.text,
        tools=tools_of(value_of(given.get("gen_ai.tool.definitions"))),
        new_from=_number(given, NEW_FROM),
        unread=told.unread,
    )


def _attributes(span: Node) -> _Attributes:
    """Attributes by name: OTLP lists them with typed values, exporters print an object."""
    attributes = span.get("attributes")
    if attributes is None:
        return {}
    members = (
        attributes.items()
        if attributes.kind is NodeKind.OBJECT
        else plain_values(attributes).items()
    )
    # An attribute that is null says nothing, and hides none of another name.
    return {name: node for name, node in members if node.kind is not NodeKind.NULL}


def _messages(span: Node, given: _Attributes, side: str) -> Node | None:
    whole = given.get(f"gen_ai.{side}.messages") or given.get(
        "gen_ai.prompt" if side == "input" else "gen_ai.completion"
    )
    return whole or numbered_messages(given, side) or event_messages(span, given, side)


def _start(span: Node) -> tuple[str, str | None]:
    """Something that sorts by time, and the time itself."""
    nano = first_given(span, "startTimeUnixNano")
    if nano is not None:
        digits = (nano.text() or nano.raw).strip()
        if _DIGITS.fullmatch(digits) and len(digits) <= 20:
            return digits.zfill(20), time_of_epoch(int(digits), per_second=_NANOSECONDS)
    printed = text_at(span, "start_time") or text_at(span, "startTime") or ""
    return printed, time_of(printed)


def _usage(given: _Attributes) -> ForeignUsage | None:
    """Input tokens include what was read from a cache, by the convention."""
    fresh = _first(
        given, "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", _INFERENCE + "prompt"
    )
    output = _first(
        given,
        "gen_ai.usage.output_tokens",
        "gen_ai.usage.completion_tokens",
        _INFERENCE + "completion",
    )
    read = _first(
        given, "gen_ai.usage.cache_read.input_tokens", _INFERENCE + "prompt_details.cache_read"
    )
    write = _number(given, "gen_ai.usage.cache_write.input_tokens")
    if write is None:
        write = _number(given, "gen_ai.usage.cache_creation.input_tokens")
    if fresh is None and output is None:
        return None
    if fresh is not None:
        fresh = max(0, fresh - (read or 0) - (write or 0))
    return ForeignUsage(fresh, read, write, output)


def _first(given: _Attributes, *keys: str) -> int | None:
    return next((n for key in keys if (n := _number(given, key)) is not None), None)


def _number(given: _Attributes, key: str) -> int | None:
    node = given.get(key)
    if node is None:
        return None
    digits = node.text() or node.raw
    return int(digits) if _DIGITS.fullmatch(digits) and len(digits) < 16 else None


def _text(given: _Attributes, key: str) -> str | None:
    node = given.get(key)
    return None if node is None else node.text()
