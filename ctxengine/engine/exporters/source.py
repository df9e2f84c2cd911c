"""A session as exporters take it: what stands in its log, read in order and in small windows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from ctxengine.engine.content.decode import Role, decode
from ctxengine.engine.content.errors import ContentError
from ctxengine.engine.events import RULE_OF_EVENT, EventType
from ctxengine.engine.ids import EventSeq, ItemId, parse_item_id
from ctxengine.engine.items import ContentFormat, DecodedItem, ItemKind, TextPart
from ctxengine.engine.log.hydrate import ERASED_TEXT
from ctxengine.engine.log.records import EventRecord
from ctxengine.engine.plan.plan import PinnedTool, Plan
from ctxengine.engine.ports import SessionLog
from ctxengine.engine.trust.levels import Trust

_WINDOW = 500


class Usage(NamedTuple):
    """Tokens of one model call in disjoint buckets; None means not reported."""

    fresh: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    output: int | None = None


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """What an export says about the session as a whole."""

    id: str
    """Hexadecimal digits of the session's id, with or without dashes."""
    provider: str
    """The provider of the original, whatever renders the session here."""
    agent: str
    plan: Plan
    imported: bool = False
    usage: Mapping[str, Usage] | None = None
    """Usage of requests by their id."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call as its result names it."""

    call_id: str | None
    """As received."""
    name: str
    """As received."""
    place: ItemId

    @property
    def some_id(self) -> str:
        """The received id, or one made from the call's place where none was received."""
        return (
            self.call_id
            if self.call_id is not None
            else f"call_{self.place.sequence}_{self.place.ordinal}"
        )


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One content event with its body as received."""

    sequence: EventSeq
    type: EventType
    format: ContentFormat
    body: str
    items: tuple[DecodedItem, ...]
    """As the body decodes; a result's own call id is among them."""
    trust: Trust
    at: datetime | None
    """When it happened; None where an imported file does not say."""
    answers: Call | None = None
    """For a result: the call it answers."""
    is_error: bool = False
    erased: bool = False
    model: str = ""
    stop_reason: str = ""
    usage: Usage | None = None

    @property
    def is_note(self) -> bool:
        """User-role content that is not believed to be the user's."""
        if self.type is EventType.GUARD_SPOKE:
            return True
        return self.type is EventType.INPUT_RECEIVED and self.trust.rank > Trust.USER.rank

    def calls(self) -> Iterator[tuple[DecodedItem, Call]]:
        """The calls of an answer, each with what its result names it by."""
        for item in self.items:
            if item.kind is ItemKind.TOOL_CALL:
                place = ItemId(self.sequence, item.ordinal)
                yield item, Call(item.call_id, item.name or "", place)

    @property
    def result(self) -> DecodedItem:
        """For a result or a summary: everything its body holds as one item."""
        found = next((i for i in self.items if i.kind is ItemKind.TOOL_RESULT), None)
        if found is not None:
            return found
        parts = tuple(part for item in self.items for part in item.parts)
        return DecodedItem(0, ItemKind.TOOL_RESULT, parts)


def entries_of(log: SessionLog, facts: SessionFacts) -> Iterator[tuple[LogEntry, bool]]:
    """Content events in order, each with whether an import's repair made it."""
    calls: dict[ItemId, Call] = {}
    after = EventSeq(0)
    while events := log.events(after=after, limit=_WINDOW):
        after = events[-1].sequence
        wanted = [event for event in events if RULE_OF_EVENT[event.type].content and event.body]
        texts = log.texts([event.body.id for event in wanted if event.body])
        for event in wanted:
            body = texts[event.body.id] if event.body else None
            entry = _entry(log, facts, event, body, calls)
            for _, call in entry.calls():
                calls[call.place] = call
            yield entry, bool(event.payload.get("synthetic")) and "source" not in event.payload


def exported_tools(facts: SessionFacts) -> list[tuple[str, PinnedTool]]:
    """Tools as the original declares them, by the name its calls carry; what the platform added is not among them."""
    return [
        (tool.name if facts.imported else tool.wire_name, tool)
        for tool in facts.plan.tools
        if tool.callable and not tool.control and not tool.synthesised
    ]


def system_text(plan: Plan) -> str:
    """What the agent's configuration and the persona say, without anything of the platform's own."""
    return "\n\n".join(text for text in (plan.instructions, *plan.persona) if text)


def _entry(
    log: SessionLog,
    facts: SessionFacts,
    event: EventRecord,
    body: str | None,
    calls: Mapping[ItemId, Call],
) -> LogEntry:
    payload = event.payload
    format = ContentFormat(payload.get("format", ContentFormat.TEXT))
    answers = payload.get("answers")
    items = _erased_items(log, event) if body is None else _decoded(event.type, format, body)
    return LogEntry(
        sequence=event.sequence,
        type=event.type,
        format=format,
        body=body or "",
        items=items,
        trust=event.trust,
        at=_time_of(event, imported=facts.imported),
        answers=calls.get(parse_item_id(answers)) if answers else None,
        is_error=bool(payload.get("is_error")) or any(item.is_error for item in items),
        erased=body is None,
        model=payload.get("response_model") or "",
        stop_reason=payload.get("stop_reason") or "",
        usage=(facts.usage or {}).get(payload.get("request") or ""),
    )


def _decoded(type: EventType, format: ContentFormat, body: str) -> tuple[DecodedItem, ...]:
    role: Role = "assistant" if type is EventType.RESPONSE_COMPLETED else "user"
    try:
        return decode(format, body, role=role).items
    except ContentError:
        return (DecodedItem(0, ItemKind.USER_MESSAGE, (TextPart(body),)),)


def _erased_items(log: SessionLog, event: EventRecord) -> tuple[DecodedItem, ...]:
    """What the facts of an erased event still tell: kinds, names and ids."""
    unit = log.unit_of_item(event.sequence)
    found = [i for i in unit.items if i.id.sequence == event.sequence] if unit else []
    return tuple(
        DecodedItem(
            ordinal=item.id.ordinal,
            kind=item.kind,
            parts=item.parts or ((TextPart(ERASED_TEXT),) if item.arguments is None else ()),
            call_id=item.call_id,
            name=item.name,
            arguments=item.arguments,
            is_error=item.is_error,
        )
        for item in found
    )


def _time_of(event: EventRecord, *, imported: bool) -> datetime | None:
    otherwise = None if imported else event.recorded_at
    try:
        moment = datetime.fromisoformat(event.payload.get("at") or "")
    except ValueError:
        return otherwise
    return moment if moment.tzinfo is not None else otherwise
