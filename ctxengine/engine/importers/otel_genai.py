"""OpenTelemetry GenAI spans: OTLP JSON, or the flat spans that SDK exporters print."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ctxengine.engine.importers.bodies import broken_line
from ctxengine.engine.importers.dialect import array_at, object_at, text_at
from ctxengine.engine.importers.exchanges import DIALECTS
from ctxengine.engine.importers.texts import time_of, time_of_epoch
from ctxengine.engine.importers.traces import Span, TraceReader, value_of
from ctxengine.engine.importers.transcript import (
    ForeignTool,
    ForeignUsage,
    Repair,
    Transcript,
)
from ctxengine.engine.lexeme import LexemeError, Node, NodeKind, parse

FORMAT = "otel_genai"
NEW_FROM = "ctxengine.input.new_from"
"""Attribute of our own exports: index of the first input message that no earlier span of the conversation gave."""

_NANOSECONDS = 1_000_000_000
_MODEL_CALLS = ("chat", "text_completion", "generate_content")
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
    asked, answered = _messages(given, "input"), _messages(given, "output")
    is_call = operation in _MODEL_CALLS or (operation is None and answered is not None)
    is_tool = operation == "execute_tool"
    start, at = _start(span)
    context = object_at(span, "context")
    instructions = given.get("gen_ai.system_instructions")
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
        model=_text(given, "gen_ai.response.model") or _text(given, "gen_ai.request.model"),
        usage=_usage(given),
        instructions=_instructions(value_of(instructions)),
        tools=_tools(value_of(given.get("gen_ai.tool.definitions"))),
        new_from=_number(given, NEW_FROM),
    )


def _attributes(span: Node) -> _Attributes:
    """Attributes by name: OTLP lists them with typed values, exporters print an object."""
    attributes = span.get("attributes")
    if attributes is None:
        return {}
    if attributes.kind is NodeKind.OBJECT:
        return dict(attributes.items())
    found: _Attributes = {}
    for attribute in attributes:
        key, value = text_at(attribute, "key"), object_at(attribute, "value")
        if key is not None and value is not None and value.items():
            found[key] = value.items()[0][1]
    return found


def _messages(given: _Attributes, side: str) -> Node | None:
    return given.get(f"gen_ai.{side}.messages") or given.get(
        "gen_ai.prompt" if side == "input" else "gen_ai.completion"
    )


def _instructions(value: Node | None) -> str:
    if value is None:
        return ""
    if value.kind is NodeKind.STRING:
        return value.text() or ""
    texts = [text_at(part, "content") or text_at(part, "text") or "" for part in value]
    return "\n".join(text for text in texts if text)


def _tools(value: Node | None) -> list[ForeignTool]:
    """Definitions, as the conventions or as Chat Completions write them."""
    if value is None or value.kind is not NodeKind.ARRAY:
        return []
    chat = f'{{"messages":[],"tools":{value.raw}}}'
    return list(DIALECTS["openai_chat"].request(parse(chat)).tools)


def _start(span: Node) -> tuple[str, str | None]:
    """Something that sorts by time, and the time itself."""
    nano = span.get("startTimeUnixNano")
    if nano is not None:
        digits = (nano.text() or nano.raw).strip()
        if digits.isdigit() and len(digits) <= 20:
            return digits.zfill(20), time_of_epoch(int(digits), per_second=_NANOSECONDS)
    printed = text_at(span, "start_time") or text_at(span, "startTime") or ""
    return printed, time_of(printed)


def _usage(given: _Attributes) -> ForeignUsage | None:
    """Input tokens include what was read from a cache, by the convention."""
    fresh = _number(given, "gen_ai.usage.input_tokens")
    output = _number(given, "gen_ai.usage.output_tokens")
    read = _number(given, "gen_ai.usage.cache_read.input_tokens")
    write = _number(given, "gen_ai.usage.cache_write.input_tokens")
    if write is None:
        write = _number(given, "gen_ai.usage.cache_creation.input_tokens")
    if fresh is None and output is None:
        return None
    if fresh is not None:
        fresh = max(0, fresh - (read or 0) - (write or 0))
    return ForeignUsage(fresh, read, write, output)


def _number(given: _Attributes, key: str) -> int | None:
    node = given.get(key)
    if node is None:
        return None
    digits = node.text() or node.raw
    return int(digits) if digits.isdigit() and len(digits) < 16 else None


def _text(given: _Attributes, key: str) -> str | None:
    node = given.get(key)
    return None if node is None else node.text()
