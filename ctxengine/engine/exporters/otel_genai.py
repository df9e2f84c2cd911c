"""A session as OpenTelemetry GenAI spans in OTLP JSON: one `invoke_agent` span and one `chat` span for each model call.

A small session gives every call its whole history, as the conventions say. In a large one that would grow with the square
of its length, so a call then carries what is new since the call before it. Either way `NEW_FROM` says which input message
is the first new one; a span without it stands for itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from ctxengine.engine.events import EventType
from ctxengine.engine.exporters.left_out import Losses
from ctxengine.engine.exporters.parts import otel_part, text_of
from ctxengine.engine.exporters.sheet import Mask, Sheet, arguments_value, quoted
from ctxengine.engine.exporters.source import (
    LogEntry,
    SessionFacts,
    entries_of,
    exported_tools,
    system_text,
)
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.importers.otel_genai import NEW_FROM
from ctxengine.engine.items import ForeignPart, ItemKind
from ctxengine.engine.ports import SessionLog

REPEATED_CHARS = 1_000_000
"""Up to this many characters of repeated history, every span carries all of it."""

_PROVIDERS = {
    "openai-responses": "openai",
    "google": "gcp.gemini",
    "bedrock": "aws.bedrock",
    "openrouter-responses": "openrouter",
}
_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "completed": "stop",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "tool_use": "tool_call",
    "tool_calls": "tool_call",
    "toolUse": "tool_call",
    "refusal": "content_filter",
}
"""Stop reasons under the names of the conventions; one that is not here keeps its own."""

_NANOSECONDS = 1_000_000_000
_MICROSECONDS = 1_000_000


@dataclass(slots=True)
class _Call:
    """One model call: what came new, and what was answered."""

    new: list[str] = field(default_factory=list)
    """Input messages."""
    answer: LogEntry | None = None
    output: str = ""
    sequence: EventSeq = EventSeq(0)
    at: datetime | None = None


def otel_genai(
    log: SessionLog, facts: SessionFacts, mask: Mask | None, losses: Losses
) -> Iterator[str]:
    """The export, in pieces."""
    sheet = Sheet(mask, losses)
    trace = _Trace(facts, sheet)
    service = _attributes({"service.name": facts.agent or "agent"})
    yield (
        f'{{"resourceSpans":[{{"resource":{{"attributes":{sheet.json(service)}}},'
        '"scopeSpans":[{"scope":{"name":"ctxengine"},"spans":['
    )
    calls = list(_calls(log, facts, sheet))
    yield from trace.spans(calls)
    yield "]}]}]}"


class _Trace:
    """Writes the spans of one session."""

    def __init__(self, facts: SessionFacts, sheet: Sheet) -> None:
        self._facts = facts
        self._sheet = sheet
        self._id = facts.id.replace("-", "")
        self._root = self._span_id(EventSeq(0))
        self._last = 0
        provider = _PROVIDERS.get(facts.provider, facts.provider)
        self._common = {
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": facts.plan.model,
            "gen_ai.conversation.id": facts.id,
        }

    def spans(self, calls: list[_Call]) -> Iterator[str]:
        """The root span and one for each call."""
        whole = _repeated_chars(calls) <= REPEATED_CHARS
        opening = {**self._instructions(), **self._tools()}
        yield self._span("invoke_agent", self._root, None, self._opened(calls), self._agent())
        history: list[str] = []
        for number, call in enumerate(calls):
            given = [*history, *call.new] if whole else call.new
            attributes = {
                **self._common,
                **(opening if whole or not number else {}),
                "gen_ai.input.messages": f"[{','.join(given)}]",
                NEW_FROM: len(history) if whole else 0,
                **_answered(call),
            }
            at = self._time(call)
            yield ",\n" + self._span(
                "chat", self._span_id(call.sequence), self._root, at, attributes
            )
            if whole:
                history += [*call.new, *([call.output] if call.output else [])]

    def _opened(self, calls: list[_Call]) -> int:
        """When the first call was made; spans of calls never start before it."""
        return self._time(calls[0]) if calls else 0

    def _time(self, call: _Call) -> int:
        """Nanoseconds since 1970; never before the span before it, since readers sort by time."""
        given = _nanoseconds(call.at) if call.at is not None else self._last
        if given < self._last:
            self._sheet.losses.note("time_order", call.sequence)
        self._last = max(self._last, given)
        return self._last

    def _span_id(self, sequence: EventSeq) -> str:
        return hashlib.sha256(f"{self._id}:{sequence}".encode()).hexdigest()[:16]

    def _span(
        self,
        operation: str,
        span_id: str,
        parent: str | None,
        at: int,
        attributes: dict[str, object],
    ) -> str:
        name = f"{operation} {self._facts.agent if parent is None else self._facts.plan.model}"
        times = f'"startTimeUnixNano":"{at}","endTimeUnixNano":"{at}",' if at else ""
        above = f'"parentSpanId":"{parent}",' if parent is not None else ""
        listed = _attributes({"gen_ai.operation.name": operation, **attributes})
        return (
            f'{{"traceId":"{self._id}","spanId":"{span_id}",{above}"name":{quoted(name.strip())},'
            f'"kind":{1 if parent is None else 3},{times}"attributes":{listed}}}'
        )

    def _agent(self) -> dict[str, object]:
        named = {"gen_ai.agent.name": self._facts.agent} if self._facts.agent else {}
        return {**self._common, **named}

    def _instructions(self) -> dict[str, object]:
        system = system_text(self._facts.plan)
        if not system:
            return {}
        text = f'[{{"type":"text","content":{quoted(system)}}}]'
        return {"gen_ai.system_instructions": self._sheet.json(text)}

    def _tools(self) -> dict[str, object]:
        tools = [
            f'{{"type":"function","name":{quoted(name)},"description":{quoted(tool.description)},'
            f'"parameters":{tool.input_schema}}}'
            for name, tool in exported_tools(self._facts)
        ]
        text = self._sheet.json("[" + ",".join(tools) + "]")
        return {"gen_ai.tool.definitions": text} if tools else {}


def _calls(log: SessionLog, facts: SessionFacts, sheet: Sheet) -> Iterator[_Call]:
    call = _Call()
    for entry, repaired in entries_of(log, facts):
        if repaired:
            sheet.losses.note("repaired_result", entry.sequence)
            continue
        if entry.erased:
            sheet.losses.note("erased", entry.sequence)
        message = sheet.json(_message(entry, sheet.losses), entry.sequence)
        call.sequence = entry.sequence
        if entry.type is not EventType.RESPONSE_COMPLETED:
            call.new.append(message)
            continue
        call.answer, call.at = entry, entry.at
        call.output = message if entry.items else ""
        yield call
        call = _Call()
    if call.new:
        yield call


def _message(entry: LogEntry, losses: Losses) -> str:
    if entry.type is EventType.RESPONSE_COMPLETED:
        return _answer(entry, losses)
    if entry.type is EventType.TOOL_RESULT:
        return f'{{"role":"tool","parts":[{_result(entry)}]}}'
    if entry.type is EventType.SUMMARY_IMPORTED:
        return f'{{"role":"user","parts":[{_compaction(entry)}]}}'
    if entry.is_note:
        losses.note("note_as_user", entry.sequence)
    parts = [otel_part(part) for item in entry.items for part in item.parts]
    return f'{{"role":"user","parts":[{",".join(parts)}]}}'


def _answer(entry: LogEntry, losses: Losses) -> str:
    called = {item.ordinal: call for item, call in entry.calls()}
    parts: list[str] = []
    messages = 0
    for item in entry.items:
        if item.kind is ItemKind.TOOL_CALL:
            parts.append(
                f'{{"type":"tool_call","id":{quoted(called[item.ordinal].some_id)},'
                f'"name":{quoted(item.name or "")},'
                f'"arguments":{_arguments(item.arguments or "")}}}'
            )
            messages = 0
            continue
        messages += 1
        if messages > 1:
            losses.note("separate_messages", entry.sequence)
        if item.phase is not None:
            losses.note("phase", entry.sequence)
        parts += map(otel_part, item.parts)
    reason = _finish(entry, has_calls=bool(called))
    return f'{{"role":"assistant","parts":[{",".join(parts)}],"finish_reason":{quoted(reason)}}}'


def _arguments(arguments: str) -> str:
    """Unlike the chat APIs, the conventions take any value: nothing said stays nothing."""
    return arguments_value(arguments) if arguments == arguments.strip() != "" else quoted(arguments)


def _result(entry: LogEntry) -> str:
    parts = entry.result.parts
    texts = text_of(parts)
    response = f"[{','.join(map(otel_part, parts))}]"
    if len(parts) == len(texts) < 2:
        response = quoted("".join(texts))
    call_id = f'"id":{quoted(entry.answers.some_id)},' if entry.answers else ""
    failed = ',"is_error":true' if entry.is_error else ""
    return f'{{"type":"tool_call_response",{call_id}"response":{response}{failed}}}'


def _compaction(entry: LogEntry) -> str:
    parts = entry.result.parts
    foreign = [otel_part(part) for part in parts if isinstance(part, ForeignPart)]
    if foreign:
        return ",".join(map(otel_part, parts))
    text = "\n".join(text_of(parts))
    return f'{{"type":"compaction","content":{quoted(text)}}}'


def _finish(entry: LogEntry, *, has_calls: bool) -> str:
    given = _FINISH.get(entry.stop_reason, entry.stop_reason)
    return given or ("tool_call" if has_calls else "stop")


def _answered(call: _Call) -> dict[str, object]:
    entry = call.answer
    if entry is None:
        return {}
    attributes: dict[str, object] = {}
    if call.output:
        attributes["gen_ai.output.messages"] = f"[{call.output}]"
    if entry.model:
        attributes["gen_ai.response.model"] = entry.model
    if entry.stop_reason:
        attributes["gen_ai.response.finish_reasons"] = [entry.stop_reason]
    usage = entry.usage
    if usage is None:
        return attributes
    if usage.fresh is not None:
        # The conventions count what a cache gave or took among the input.
        total = usage.fresh + (usage.cache_read or 0) + (usage.cache_write or 0)
        attributes["gen_ai.usage.input_tokens"] = total
    for name, tokens in (
        ("output_tokens", usage.output),
        ("cache_read.input_tokens", usage.cache_read),
        ("cache_write.input_tokens", usage.cache_write),
        # The name that was in use before, for back ends that know no other.
        ("cache_creation.input_tokens", usage.cache_write),
    ):
        if tokens is not None:
            attributes[f"gen_ai.usage.{name}"] = tokens
    return attributes


def _attributes(values: dict[str, object]) -> str:
    return (
        "["
        + ",".join(
            f'{{"key":{quoted(key)},"value":{_any_value(value)}}}' for key, value in values.items()
        )
        + "]"
    )


def _any_value(value: object) -> str:
    if isinstance(value, list):
        return '{"arrayValue":{"values":[' + ",".join(map(_any_value, value)) + "]}}"
    if isinstance(value, int):
        return f'{{"intValue":"{value}"}}'
    return f'{{"stringValue":{quoted(str(value))}}}'


def _repeated_chars(calls: Iterable[_Call]) -> int:
    """What carrying every call's history would add."""
    known = total = 0
    for call in calls:
        total += known
        known += sum(map(len, call.new)) + len(call.output)
    return total


def _nanoseconds(at: datetime) -> int:
    return int(at.timestamp()) * _NANOSECONDS + at.microsecond * (_NANOSECONDS // _MICROSECONDS)
