"""A session's way out and back: what its items say, before and after."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from ctxengine.engine.budget.policy import IMPORTED_POLICY
from ctxengine.engine.content.decode import decode
from ctxengine.engine.derive import Derivation
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.exporters.registry import Export, export, own_format
from ctxengine.engine.exporters.sheet import Mask
from ctxengine.engine.exporters.source import SessionFacts, Usage
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.importers.registry import read
from ctxengine.engine.importers.repair import role_of
from ctxengine.engine.importers.transcript import Entry, EntryType, ForeignSession
from ctxengine.engine.items import (
    DecodedItem,
    ForeignPart,
    ItemKind,
    Part,
    TextPart,
)
from ctxengine.engine.lexeme import parse
from ctxengine.engine.memory import MemoryLog
from ctxengine.engine.plan.plan import PinnedTool, Plan
from ctxengine.service.drafts import content_draft

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SESSION_ID = "0123456789abcdef0123456789abcdef"
_TYPES = {
    EntryType.USER: EventType.USER_MESSAGE,
    EntryType.INPUT: EventType.INPUT_RECEIVED,
    EntryType.ASSISTANT: EventType.RESPONSE_COMPLETED,
    EntryType.RESULT: EventType.TOOL_RESULT,
    EntryType.SUMMARY: EventType.SUMMARY_IMPORTED,
}


class Said(NamedTuple):
    """One item as far as every format can tell it; neighbouring parts and messages of one side are one."""

    kind: str
    parts: tuple[str, ...]
    name: str = ""
    arguments: str = ""
    is_error: bool = False


class Journey(NamedTuple):
    """What was said before an export and after importing it again."""

    before: list[Said]
    after: list[Said]
    out: Export
    format: str


class OneToken:
    """A counter that is not asked for figures here."""

    label = "one"
    exact = False

    def text(self, text: str) -> int:
        return 1

    def parts(self, parts: Sequence[Part]) -> int:
        return 1

    def call(self, name: str, arguments: str) -> int:
        return 1

    def tool(self, name: str, description: str, schema: str) -> int:
        return 1


def log_of(session: ForeignSession) -> MemoryLog:
    """A log that holds the session's entries as an import would write them."""
    log = MemoryLog("t", SESSION_ID, salt=lambda: b"0" * 16)
    derivation = Derivation(OneToken())
    sequences: dict[int, EventSeq] = {}
    for place, entry in enumerate(session.entries):
        sequence = EventSeq(log.head().sequence + 1)
        log.append([_draft(log, entry, sequence, sequences, derivation)], expected=None, at=NOW)
        sequences[place] = sequence
    return log


def _draft(
    log: MemoryLog,
    entry: Entry,
    sequence: EventSeq,
    sequences: dict[int, EventSeq],
    derivation: Derivation,
) -> EventDraft:
    answers = None
    if entry.type is EntryType.RESULT and entry.call_ref is not None:
        place, ordinal = entry.call_ref
        wanted = (sequences[place], ordinal)
        answers = next(c for c in log.open_calls() if (c.sequence, c.ordinal) == wanted)
    payload: dict[str, object] = {"synthetic": True} if entry.synthetic else {}
    if entry.at:
        payload["at"] = entry.at
    if entry.type is EntryType.ASSISTANT:
        payload |= {"stop_reason": entry.stop_reason or "", "response_model": entry.model or ""}
        payload["request"] = str(sequence)
    return content_draft(
        log,
        type=_TYPES[entry.type],
        format=entry.format,
        raw=entry.body,
        trust=entry.trust,
        sequence=sequence,
        derivation=derivation,
        run=None,
        payload=payload,
        answers=answers,
        is_error=entry.is_error,
    )


def facts_of(session: ForeignSession) -> SessionFacts:
    """What an export says about an imported session."""
    plan = Plan(
        epoch=1,
        engine="suffix",
        provider=session.provider,
        model=session.model,
        window=100_000,
        max_output=1_000,
        policy=IMPORTED_POLICY,
        policy_text="",
        framing="",
        framing_version="",
        instructions=session.instructions,
        tools=tuple(
            PinnedTool(
                name=tool.name,
                wire_name=tool.name,
                description=tool.description,
                input_schema=tool.input_schema,
                synthesised=tool.synthesised,
            )
            for tool in session.tools
        ),
        renderer="",
        counter="one",
    )
    usage = {
        str(place): Usage(u.fresh, u.cache_read, u.cache_write, u.output)
        for place, entry in enumerate(session.entries, 1)
        if (u := entry.usage) is not None
    }
    return SessionFacts(SESSION_ID, session.provider, "tester", plan, imported=True, usage=usage)


def exported(session: ForeignSession, format: str, *, mask: Mask | None = None) -> Export:
    """The session in another format."""
    return export(log_of(session), facts_of(session), format, mask=mask)


def round_trip(session: ForeignSession, format: str = "") -> Journey:
    """Out in a format (its own where none is named) and back in."""
    format = format or own_format(entry.format for entry in session.entries)
    out = exported(session, format)
    again = read(out.text, name="export.json")
    assert again.format == format
    after = [one for back in again.sessions for one in said(back)]
    return Journey(said(session), after, out, format)


def said(session: ForeignSession) -> list[Said]:
    """Items of a session in order, without those that repair made."""
    found: list[Said] = []
    for entry in session.entries:
        for one in () if entry.synthetic else _said(entry):
            last = found[-1] if found else None
            if last is not None and one.kind == last.kind == ItemKind.ASSISTANT_MESSAGE:
                found[-1] = last._replace(parts=_joined((*last.parts, *one.parts)))
            else:
                found.append(one)
    return found


def _said(entry: Entry) -> list[Said]:
    items = decode(entry.format, entry.body, role=role_of(entry)).items
    if entry.type is EntryType.RESULT:
        parts = tuple(part for item in items for part in item.parts)
        return [Said("tool_result", _parts(parts), is_error=entry.is_error)]
    if entry.type is EntryType.SUMMARY:
        return [Said("summary", _parts(part for item in items for part in item.parts))]
    return [_item(item) for item in items]


def _item(item: DecodedItem) -> Said:
    if item.kind is ItemKind.TOOL_CALL:
        return Said("tool_call", (), item.name or "", item.arguments or "")
    return Said(item.kind.value, _parts(item.parts))


def _parts(parts: Iterable[Part]) -> tuple[str, ...]:
    return _joined(tuple(map(_part, parts)))


def _part(part: Part) -> str:
    if isinstance(part, TextPart):
        return f"text:{part.text}"
    if isinstance(part, ForeignPart):
        node = parse(part.raw)
        inner = node.get("part")
        value = (inner if inner is not None else node).value()
        if part.kind == "compaction" and isinstance(value.get("content"), str):
            return f"text:{value['content']}"
        return f"foreign:{part.kind}:{value}"
    return f"{type(part).__name__}:{part.media_type}:{part.base64}:{part.url}"


def _joined(parts: tuple[str, ...]) -> tuple[str, ...]:
    """Neighbouring texts as one: formats cut them differently."""
    joined: list[str] = []
    for part in parts:
        if part.startswith("text:") and joined and joined[-1].startswith("text:"):
            joined[-1] += part.removeprefix("text:")
        else:
            joined.append(part)
    return tuple(part for part in joined if part != "text:")
