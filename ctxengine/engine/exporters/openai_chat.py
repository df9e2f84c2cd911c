"""A session as a Chat Completions body: `{model, messages, tools}`.

Messages that came in this API's own form stand in it as they came; everything else is written in its terms.
"""

from __future__ import annotations

from collections.abc import Iterator

from ctxengine.engine.events import EventType
from ctxengine.engine.exporters.left_out import Losses
from ctxengine.engine.exporters.parts import chat_part, text_of
from ctxengine.engine.exporters.sheet import Mask, Sheet, is_plain_json, quoted
from ctxengine.engine.exporters.source import (
    LogEntry,
    SessionFacts,
    entries_of,
    exported_tools,
    system_text,
)
from ctxengine.engine.items import ContentFormat, ItemKind, Part, TextPart
from ctxengine.engine.lexeme import parse
from ctxengine.engine.ports import SessionLog

_ROLES = {
    EventType.RESPONSE_COMPLETED: ("assistant",),
    EventType.TOOL_RESULT: ("tool", "function"),
    EventType.USER_MESSAGE: ("user",),
    EventType.INPUT_RECEIVED: ("user", "system", "developer"),
}
"""Roles that a received message must have to stand for its event as it is."""


def openai_chat(
    log: SessionLog, facts: SessionFacts, mask: Mask | None, losses: Losses
) -> Iterator[str]:
    """The body, in pieces."""
    sheet = Sheet(mask, losses)
    yield f'{{"model":{quoted(facts.plan.model)},"messages":['
    system = system_text(facts.plan)
    separator = ""
    if system:
        yield sheet.json(f'{{"role":"system","content":{quoted(system)}}}')
        separator = ",\n"
    for entry, repaired in entries_of(log, facts):
        if repaired:
            losses.note("repaired_result", entry.sequence)
            continue
        if entry.is_note:
            losses.note("note_as_user", entry.sequence)
        message = _as_received(entry) or _message(entry, losses)
        if message is not None:
            yield separator + sheet.json(message, entry.sequence)
            separator = ",\n"
    yield "]"
    tools = [
        f'{{"type":"function","function":{{"name":{quoted(name)},"description":{quoted(tool.description)},'
        f'"parameters":{tool.input_schema}}}}}'
        for name, tool in exported_tools(facts)
    ]
    if tools:
        yield ',"tools":' + sheet.json("[" + ",".join(tools) + "]")
    yield "}"


def _as_received(entry: LogEntry) -> str | None:
    """The message itself, where it is one of this API and still says what the log says."""
    if entry.format is not ContentFormat.OPENAI_CHAT or entry.erased:
        return None
    if not entry.items or not is_plain_json(entry.body):
        return None
    role = parse(entry.body).get("role")
    if role is None or role.text() not in _ROLES.get(entry.type, ()):
        return None
    if entry.type is EventType.TOOL_RESULT:
        answered = entry.answers.call_id if entry.answers else None
        if entry.result.call_id != answered or entry.is_error:
            return None
    return entry.body.strip()


def _message(entry: LogEntry, losses: Losses) -> str | None:
    if entry.erased:
        losses.note("erased", entry.sequence)
    if entry.type is EventType.RESPONSE_COMPLETED:
        return _answer(entry, losses)
    if entry.type is EventType.TOOL_RESULT:
        return _result(entry, losses)
    if entry.type is EventType.SUMMARY_IMPORTED:
        losses.note("summary_as_user", entry.sequence)
    content = _content([part for item in entry.items for part in item.parts], entry, losses)
    return None if content is None else f'{{"role":"user","content":{content}}}'


def _answer(entry: LogEntry, losses: Losses) -> str | None:
    texts: list[str] = []
    calls: list[str] = []
    called = {item.ordinal: call for item, call in entry.calls()}
    messages = [item for item in entry.items if item.kind is not ItemKind.TOOL_CALL]
    if len(messages) > 1 and not called:
        losses.note("separate_messages", entry.sequence, items=len(messages) - 1)
    for item in entry.items:
        if item.kind is ItemKind.TOOL_CALL:
            function = (
                f'{{"name":{quoted(item.name or "")},"arguments":{quoted(item.arguments or "")}}}'
            )
            call_id = quoted(called[item.ordinal].some_id)
            calls.append(f'{{"id":{call_id},"type":"function","function":{function}}}')
            continue
        if calls:
            losses.note("order", entry.sequence)
        if item.phase is not None:
            losses.note("phase", entry.sequence)
        _note_parts(item.parts, entry, losses)
        texts += text_of(item.parts)
    if not texts and not calls:
        return None
    content = "null" if not texts or (texts == [""] and calls) else _texts(texts)
    tail = f',"tool_calls":[{",".join(calls)}]' if calls else ""
    return f'{{"role":"assistant","content":{content}{tail}}}'


def _result(entry: LogEntry, losses: Losses) -> str:
    if entry.is_error:
        losses.note("error_flag", entry.sequence)
    parts = entry.result.parts
    _note_parts(parts, entry, losses)
    call = entry.answers
    call_id = quoted(call.some_id) if call else '""'
    name = f'"name":{quoted(call.name)},' if call else ""
    return f'{{"role":"tool","tool_call_id":{call_id},{name}"content":{_texts(text_of(parts))}}}'


def _content(parts: list[Part], entry: LogEntry, losses: Losses) -> str | None:
    """Content of a user message: a string where one text is all there is."""
    if len(parts) == 1 and isinstance(parts[0], TextPart):
        return quoted(parts[0].text)
    written = []
    for part in parts:
        text = chat_part(part)
        if text is None:
            _note_parts([part], entry, losses)
        else:
            written.append(text)
    return f"[{','.join(written)}]" if written else None


def _texts(texts: list[str]) -> str:
    if len(texts) < 2:
        return quoted("".join(texts))
    return "[" + ",".join(f'{{"type":"text","text":{quoted(text)}}}' for text in texts) + "]"


def _note_parts(parts: tuple[Part, ...] | list[Part], entry: LogEntry, losses: Losses) -> None:
    """Answers and results hold texts only: what else they held is left out, which is said."""
    for part in parts:
        if not isinstance(part, TextPart):
            losses.note("foreign_part" if hasattr(part, "raw") else "media", entry.sequence)
