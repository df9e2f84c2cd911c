"""From raw bodies to items, at append and again on every rebuild."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

from ctxengine.engine.content.decode import Role, decode
from ctxengine.engine.events import EventType, ItemFacts
from ctxengine.engine.ids import EventSeq, ItemId, RunId
from ctxengine.engine.items import (
    ContentFormat,
    DecodedItem,
    Item,
    ItemKind,
    TextPart,
    Unit,
    unit_of,
)
from ctxengine.engine.log.records import ItemRecord

ERASED_TEXT = "[erased]"


def decode_event(type: EventType, format: ContentFormat, text: str) -> tuple[DecodedItem, ...]:
    """The items of an event's body; a result and a summary are one item whatever they hold.

    Raises:
        ContentError: the body is not written in that format.
    """
    role: Role = "assistant" if type is EventType.RESPONSE_COMPLETED else "user"
    items = decode(format, text, role=role).items
    if type is EventType.TOOL_RESULT:
        return (_merged(items, ItemKind.TOOL_RESULT),)
    if type is EventType.SUMMARY_IMPORTED:
        return (_merged(items, ItemKind.SUMMARY),)
    return items


def _merged(items: Sequence[DecodedItem], kind: ItemKind) -> DecodedItem:
    result = next((item for item in items if item.kind is ItemKind.TOOL_RESULT), None)
    parts = (
        result.parts if result is not None else tuple(part for item in items for part in item.parts)
    )
    return DecodedItem(
        ordinal=0,
        kind=kind,
        parts=parts,
        is_error=result.is_error if result is not None else False,
    )


class DecodeOnce:
    """Decodes each event's body once, however many items it has."""

    def __init__(self, decode: Callable[[ItemRecord], Sequence[DecodedItem] | None]) -> None:
        """Wrap `decode`, which reads the body of a record's event."""
        self._decode = decode
        self._known: dict[EventSeq, Sequence[DecodedItem] | None] = {}

    def __call__(self, record: ItemRecord) -> Sequence[DecodedItem] | None:
        """The decoded items of the record's event."""
        if record.sequence not in self._known:
            self._known[record.sequence] = self._decode(record)
        return self._known[record.sequence]


def hydrate(record: ItemRecord, decoded: Sequence[DecodedItem] | None) -> Item:
    """One item with its content; `decoded` is None where the body was erased."""
    facts = record.facts
    content = decoded[facts.ordinal] if decoded is not None else _tombstone(facts)
    return Item(
        id=ItemId(record.sequence, facts.ordinal),
        kind=facts.kind,
        trust=record.trust,
        run=RunId(record.run) if record.run else None,
        parts=content.parts,
        tokens=facts.tokens,
        digest=facts.digest,
        bytes_len=facts.bytes_len,
        wire_call_id=facts.wire_call_id or None,
        call_id=facts.call_id or None,
        name=facts.name or None,
        arguments=content.arguments,
        is_error=facts.is_error,
        source=facts.source,
        pointer_tokens=facts.pointer_tokens,
        phase=content.phase,
        excerpt_limit=facts.excerpt_limit,
    )


def hydrate_units(
    records: Sequence[ItemRecord],
    decoded_of: Callable[[ItemRecord], Sequence[DecodedItem] | None],
) -> tuple[Unit, ...]:
    """Units from item records ordered by (unit, sequence, ordinal)."""
    return tuple(
        unit_of([hydrate(record, decoded_of(record)) for record in group])
        for _, group in groupby(records, key=lambda record: record.unit)
    )


def _tombstone(facts: ItemFacts) -> DecodedItem:
    call = facts.kind is ItemKind.TOOL_CALL
    return DecodedItem(
        ordinal=facts.ordinal,
        kind=facts.kind,
        parts=() if call else (TextPart(ERASED_TEXT),),
        arguments="{}" if call else None,
    )
