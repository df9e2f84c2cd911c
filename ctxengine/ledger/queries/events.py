"""Events of a session with the state of their chain."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from ctxengine.engine.log.chain import event_hash
from ctxengine.ledger.models import Body, Event
from ctxengine.ledger.queries.items import body_text
from ctxengine.ledger.records import event_record

_TYPES = """
WITH RECURSIVE found AS (
  (SELECT type FROM event WHERE tenant_id = %(tenant)s AND session_id = %(session)s ORDER BY type LIMIT 1)
  UNION ALL
  SELECT (SELECT e.type FROM event e
          WHERE e.tenant_id = %(tenant)s AND e.session_id = %(session)s AND e.type > found.type ORDER BY e.type LIMIT 1)
  FROM found WHERE found.type IS NOT NULL
)
SELECT type FROM found WHERE type IS NOT NULL
"""


@dataclass(frozen=True, slots=True)
class EventLine:
    """One event."""

    sequence: int
    type: str
    run_id: UUID | None
    trust: str
    payload: dict[str, Any]
    body_id: UUID | None
    body_length: int
    """Bytes."""
    prev_hash: str
    hash: str
    recorded_at: datetime
    linked: bool | None
    """Whether it names the hash of the event before it; None when that event is not at hand."""
    intact: bool
    """Whether its own hash is that of its fields."""


@dataclass(frozen=True, slots=True)
class EventPage:
    """A window of events, newest first."""

    events: tuple[EventLine, ...]
    before: int | None
    """Sequence to ask for next (exclusive); None when the first event is shown."""
    broken: tuple[int, ...]
    """Sequences in the window that do not link to the one before, or whose hash is not their own."""


@dataclass(frozen=True, slots=True)
class EventBody:
    """The body of one event, exactly as received."""

    sequence: int
    text: str
    sha256: str
    erased_at: datetime | None


def event_page(
    tenant_id: UUID,
    session_id: UUID,
    *,
    before: int | None = None,
    at_least: int = 0,
    kind: str = "",
    size: int = 100,
) -> EventPage:
    """A window of events. One query; a second one when a type filter hides the neighbours."""
    rows = Event.objects.filter(tenant_id=tenant_id, session_id=session_id, sequence__gte=at_least)
    if kind:
        rows = rows.filter(type=kind)
    if before is not None:
        rows = rows.filter(sequence__lt=before)
    found = list(rows.order_by("-sequence")[: size + 1])
    shown = found[:size]
    hashes = _hashes_before(tenant_id, session_id, found, filtered=bool(kind))
    lines = tuple(_line(event, hashes) for event in shown)
    return EventPage(
        lines,
        shown[-1].sequence if len(found) > size else None,
        tuple(line.sequence for line in lines if line.linked is False or not line.intact),
    )


def event_types(tenant_id: UUID, session_id: UUID) -> tuple[str, ...]:
    """Types that occur in the session. One query, which steps along the index from type to type and reads no event twice."""
    with connection.cursor() as cursor:
        cursor.execute(_TYPES, {"tenant": tenant_id, "session": session_id})
        return tuple(kind for (kind,) in cursor.fetchall())


def event_body(tenant_id: UUID, session_id: UUID, sequence: int) -> EventBody | None:
    """The body of one event; None when there is no such event or it has no body. Two queries."""
    event = Event.objects.filter(
        tenant_id=tenant_id, session_id=session_id, sequence=sequence
    ).first()
    if event is None or event.body_id is None:
        return None
    body = Body.objects.filter(tenant_id=tenant_id, session_id=session_id, id=event.body_id).first()
    if body is None:
        return None
    text = "" if body.erased_at else body_text(body)
    return EventBody(sequence, text, event.body_sha256, body.erased_at)


def _hashes_before(
    tenant_id: UUID, session_id: UUID, found: list[Event], *, filtered: bool
) -> dict[int, str]:
    known = {event.sequence: event.hash for event in found}
    if filtered:
        wanted = [event.sequence - 1 for event in found]
        rows = Event.objects.filter(tenant_id=tenant_id, session_id=session_id, sequence__in=wanted)
        known.update(rows.values_list("sequence", "hash"))
    return known


def _line(event: Event, hashes: dict[int, str]) -> EventLine:
    before = hashes.get(event.sequence - 1)
    # The first event of a session has nothing before it to link to.
    linked = None if before is None or event.sequence == 1 else before == event.prev_hash
    return EventLine(
        sequence=event.sequence,
        type=event.type,
        run_id=event.run_id,
        trust=event.trust,
        payload=event.payload,
        body_id=event.body_id,
        body_length=event.body_length,
        prev_hash=event.prev_hash,
        hash=event.hash,
        recorded_at=event.recorded_at,
        linked=linked,
        intact=_intact(event),
    )


def _intact(event: Event) -> bool:
    try:
        record = event_record(event)
    except ValueError:
        # A type or trust level that no table knows cannot have been hashed by us.
        return False
    expected = event_hash(record, tenant=str(event.tenant_id), session=str(event.session_id))
    return expected == event.hash
