"""Between the log's values and their rows."""

from __future__ import annotations

from typing import Any

from ctxengine.engine.events import EventType, ItemFacts
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import ItemKind
from ctxengine.engine.log.records import BodyCommitment, EventRecord, ItemRecord, UnitFacts
from ctxengine.engine.trust.levels import Trust
from ctxengine.ledger.models import Event, ItemRow, UnitRow


def event_row(key: dict[str, str], event: EventRecord) -> Event:
    """An event as its row."""
    return Event(
        **key,
        sequence=event.sequence,
        type=event.type.value,
        run_id=event.run,
        trust=event.trust.value,
        payload=dict(event.payload),
        body_id=event.body.id if event.body else None,
        body_sha256=event.body.sha256 if event.body else "",
        body_length=event.body.length if event.body else 0,
        tokens=event.tokens,
        prev_hash=event.prev_hash,
        hash=event.hash,
        idempotency_key=event.idempotency_key,
        recorded_at=event.recorded_at,
    )


def event_record(row: Any) -> EventRecord:
    """A row as the event it holds."""
    body = (
        BodyCommitment(str(row.body_id), row.body_sha256, row.body_length) if row.body_id else None
    )
    return EventRecord(
        sequence=EventSeq(row.sequence),
        type=EventType(row.type),
        trust=Trust(row.trust),
        payload=row.payload,
        run=str(row.run_id) if row.run_id else None,
        body=body,
        tokens=row.tokens,
        prev_hash=row.prev_hash,
        hash=row.hash,
        recorded_at=row.recorded_at,
        idempotency_key=row.idempotency_key,
    )


def item_row(key: dict[str, str], item: ItemRecord) -> ItemRow:
    """An item's facts as their row."""
    facts = item.facts
    return ItemRow(
        **key,
        sequence=item.sequence,
        ordinal=facts.ordinal,
        unit_sequence=item.unit,
        kind=facts.kind.value,
        trust=item.trust.value,
        run_id=item.run,
        name=facts.name,
        call_id=facts.call_id,
        wire_call_id=facts.wire_call_id,
        source=facts.source,
        is_error=facts.is_error,
        tokens=facts.tokens,
        pointer_tokens=facts.pointer_tokens,
        bytes_len=facts.bytes_len,
        chars_len=facts.chars_len,
        digest=facts.digest,
        preview=facts.preview,
        excerpt_limit=facts.excerpt_limit,
    )


def item_record(row: ItemRow) -> ItemRecord:
    """A row as the item facts it holds."""
    return ItemRecord(
        sequence=EventSeq(row.sequence),
        unit=EventSeq(row.unit_sequence),
        trust=Trust(row.trust),
        run=str(row.run_id) if row.run_id else None,
        facts=ItemFacts(
            ordinal=row.ordinal,
            kind=ItemKind(row.kind),
            tokens=row.tokens,
            pointer_tokens=row.pointer_tokens,
            digest=row.digest,
            bytes_len=row.bytes_len,
            chars_len=row.chars_len,
            name=row.name,
            call_id=row.call_id,
            wire_call_id=row.wire_call_id,
            source=row.source,
            is_error=row.is_error,
            preview=row.preview,
            excerpt_limit=row.excerpt_limit,
        ),
    )


def unit_row(key: dict[str, str], unit: UnitFacts) -> UnitRow:
    """A unit's facts as their row."""
    return UnitRow(
        **key,
        sequence=unit.sequence,
        index=unit.index,
        last_sequence=unit.last_sequence,
        run_id=unit.run,
        kind=unit.kind,
        open_calls=unit.open_calls,
        tokens=unit.tokens,
        pointer_tokens=unit.pointer_tokens,
        result_tokens=unit.result_tokens,
        before_tokens=unit.before_tokens,
        before_pointer_tokens=unit.before_pointer_tokens,
        before_result_tokens=unit.before_result_tokens,
        before_turns=unit.before_turns,
        before_saved_tokens=unit.before_tokens - unit.before_pointer_tokens,
    )
