"""A session as a Messages body: `{model, system, tools, messages}`.

Content that came in this API's own form stands in it as it came; results of one step stand in one user message, as the
API wants them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ctxengine.engine.content.slices import element_spans
from ctxengine.engine.events import EventType
from ctxengine.engine.exporters.left_out import Losses
from ctxengine.engine.exporters.parts import anthropic_block, text_of
from ctxengine.engine.exporters.sheet import Mask, Sheet, arguments_value, is_plain_json, quoted
from ctxengine.engine.exporters.source import (
    LogEntry,
    SessionFacts,
    entries_of,
    exported_tools,
    system_text,
)
from ctxengine.engine.items import ContentFormat, ForeignPart, ItemKind, Part
from ctxengine.engine.ports import SessionLog

_COMPACTION = "compaction"


def anthropic_messages(
    log: SessionLog, facts: SessionFacts, mask: Mask | None, losses: Losses
) -> Iterator[str]:
    """The body, in pieces."""
    sheet = Sheet(mask, losses)
    yield f'{{"model":{quoted(facts.plan.model)},"system":'
    yield sheet.json(quoted(system_text(facts.plan)))
    tools = [
        f'{{"name":{quoted(name)},"description":{quoted(tool.description)},'
        f'"input_schema":{tool.input_schema}}}'
        for name, tool in exported_tools(facts)
    ]
    if tools:
        yield ',"tools":' + sheet.json("[" + ",".join(tools) + "]")
    yield ',"messages":['
    separator = ""
    for message in _messages(log, facts, sheet):
        yield separator + message
        separator = ",\n"
    yield "]}"


def _messages(log: SessionLog, facts: SessionFacts, sheet: Sheet) -> Iterator[str]:
    results: list[str] = []
    for entry, repaired in entries_of(log, facts):
        if repaired:
            sheet.losses.note("repaired_result", entry.sequence)
            continue
        if entry.erased:
            sheet.losses.note("erased", entry.sequence)
        if entry.type is EventType.TOOL_RESULT:
            results.append(sheet.json(_result(entry, sheet.losses), entry.sequence))
            continue
        if results:
            yield _user(f"[{','.join(results)}]")
            results = []
        message = _message(entry, sheet.losses)
        if message is not None:
            yield sheet.json(message, entry.sequence)
    if results:
        yield _user(f"[{','.join(results)}]")


def _message(entry: LogEntry, losses: Losses) -> str | None:
    if entry.type is EventType.SUMMARY_IMPORTED:
        return _assistant(_summary(entry, losses))
    if entry.is_note:
        losses.note("note_as_user", entry.sequence)
    says = _user if entry.type is not EventType.RESPONSE_COMPLETED else _assistant
    if not entry.items:
        return None
    if _own(entry):
        return says(entry.body.strip())
    blocks = _blocks(entry, losses)
    return says(f"[{','.join(blocks)}]") if blocks else None


def _own(entry: LogEntry) -> bool:
    is_own = entry.format is ContentFormat.ANTHROPIC and not entry.erased
    return is_own and is_plain_json(entry.body)


def _blocks(entry: LogEntry, losses: Losses) -> list[str]:
    called = {item.ordinal: call for item, call in entry.calls()}
    messages = [item for item in entry.items if item.kind is not ItemKind.TOOL_CALL]
    if len(messages) > 1 and not called:
        losses.note("separate_messages", entry.sequence, items=len(messages) - 1)
    blocks: list[str] = []
    for item in entry.items:
        if item.kind is ItemKind.TOOL_CALL:
            blocks.append(
                f'{{"type":"tool_use","id":{quoted(called[item.ordinal].some_id)},'
                f'"name":{quoted(item.name or "")},"input":{arguments_value(item.arguments or "")}}}'
            )
            continue
        if item.phase is not None:
            losses.note("phase", entry.sequence)
        blocks += _written(item.parts, entry, losses)
    return blocks


def _result(entry: LogEntry, losses: Losses) -> str:
    call, result = entry.answers, entry.result
    answered = call.call_id if call else None
    if _own(entry) and result.call_id == answered and result.is_error == entry.is_error:
        spans = element_spans(entry.body)
        if len(spans) == 1:
            return entry.body[spans[0].start : spans[0].end]
    written = _written(result.parts, entry, losses)
    content = f"[{','.join(written)}]"
    if len(result.parts) == len(text_of(result.parts)) < 2:
        content = quoted("".join(text_of(result.parts)))
    failed = ',"is_error":true' if entry.is_error else ""
    call_id = quoted(call.some_id) if call else '""'
    return f'{{"type":"tool_result","tool_use_id":{call_id},"content":{content}{failed}}}'


def _summary(entry: LogEntry, losses: Losses) -> str:
    """Compaction blocks as they came; any other summary in one of its own."""
    parts = entry.result.parts
    if _own(entry) and any(isinstance(p, ForeignPart) and p.kind == _COMPACTION for p in parts):
        return entry.body.strip()
    for part in parts:
        if isinstance(part, ForeignPart):
            losses.note("foreign_part", entry.sequence)
    text = quoted("\n".join(text_of(parts)))
    return f'[{{"type":"{_COMPACTION}","content":{text}}}]'


def _written(parts: Iterable[Part], entry: LogEntry, losses: Losses) -> list[str]:
    own = entry.format is ContentFormat.ANTHROPIC
    blocks = []
    for part in parts:
        block = anthropic_block(part, own=own)
        if block is None:
            is_foreign = isinstance(part, ForeignPart)
            losses.note("foreign_part" if is_foreign else "media", entry.sequence)
        else:
            blocks.append(block)
    return blocks


def _user(content: str) -> str:
    return f'{{"role":"user","content":{content}}}'


def _assistant(content: str) -> str:
    return f'{{"role":"assistant","content":{content}}}'
