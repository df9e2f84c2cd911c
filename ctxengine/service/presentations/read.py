"""Reading a session's cards back, with what the user thought of them and chose (capacity spec 10)."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from ctxengine.engine.events import EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.redaction.redact import redact
from ctxengine.engine.trust.model_view import model_view
from ctxengine.engine.turns.presentation import PresentationRecord, records_of
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import Event
from ctxengine.ledger.records import event_record
from ctxengine.service.access import session_of
from ctxengine.service.specs import Actor, ServiceError
from ctxengine.service.wiring import log_of


def presentations_page(
    *, actor: Actor, session_id: UUID, after: int, limit: int
) -> list[dict[str, Any]]:
    """Cards behind an event, oldest first, at most `limit`.

    Raises:
        ServiceError: 404.
    """
    session = session_of(actor, session_id)
    log = log_of(session)
    sequences = Event.objects.filter(
        tenant_id=actor.tenant_id,
        session_id=session.id,
        type=EventType.PRESENTATION_EMITTED,
        sequence__gt=after,
    )
    found = records_of(log, [event_record(row) for row in sequences.order_by("sequence")[:limit]])
    if not found:
        return []
    told = _reactions(log, actor, session.id, [record.sequence for record in found])
    return [presentation_json(record, told.get(record.sequence, [])) for record in found]


def presentation_of(*, actor: Actor, session_id: UUID, event: int) -> dict[str, Any]:
    """One card.

    Raises:
        ServiceError: 404 where the session, or a card at that event, does not exist.
    """
    session = session_of(actor, session_id)
    log = log_of(session)
    record = card_at(log, event)
    return presentation_json(record, _reactions(log, actor, session.id, [event]).get(event, []))


def card_at(log: PostgresLog, event: int) -> PresentationRecord:
    """The card that stands in an event.

    Raises:
        ServiceError: 404 where that event shows none.
    """
    found = log.events(after=EventSeq(event - 1), limit=1) if event > 0 else ()
    if (
        not found
        or found[0].sequence != event
        or found[0].type is not EventType.PRESENTATION_EMITTED
    ):
        raise ServiceError("not_found", 404, f"No card stands in event {event} of this session.")
    return records_of(log, found)[0]


def presentation_json(
    record: PresentationRecord, reactions: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """A card as REST shows it: a masked text to read, and the payload exactly as it is kept."""
    erased = record.payload is None
    return {
        "id": record.id,
        "turn": int(record.turn),
        "run": record.run,
        "source": record.source,
        "origin": record.origin,
        "tool": record.tool,
        "semantic_type": record.semantic_type,
        "schema_version": record.schema_version,
        "title": _shown(record.title),
        "digest": _shown(record.digest),
        "payload": _shown(record.payload),
        "payload_base64": None
        if record.payload is None
        else base64.b64encode(record.payload.encode()).decode(),
        "payload_sha256": record.payload_sha256,
        "identity_sha256": record.identity_sha256,
        "derived_from": list(record.derived_from),
        "trust": record.trust.value,
        "erased": erased,
        "reactions": list(reactions),
    }


def _reactions(
    log: PostgresLog, actor: Actor, session_id: UUID, wanted: Sequence[int]
) -> dict[int, list[dict[str, Any]]]:
    """What users said of these cards, by card, oldest first."""
    rows = Event.objects.filter(
        tenant_id=actor.tenant_id,
        session_id=session_id,
        type__in=[EventType.PRESENTATION_FEEDBACK, EventType.PRESENTATION_SELECTED],
        payload__presentation__in=list(wanted),
    ).order_by("sequence")
    told: dict[int, list[dict[str, Any]]] = {}
    events = list(rows)
    texts = log.texts([str(row.body_id) for row in events if row.body_id is not None])
    for row in events:
        text = texts.get(str(row.body_id)) if row.body_id is not None else ""
        told.setdefault(row.payload["presentation"], []).append(
            {
                "event": row.sequence,
                "kind": "feedback" if row.type == EventType.PRESENTATION_FEEDBACK else "selection",
                "verdict": row.payload.get("verdict", ""),
                "text": _shown(text),
                "at": row.recorded_at.isoformat(),
            }
        )
    return told


def _shown(text: str | None) -> str | None:
    """Secrets masked; None for what was erased."""
    return None if text is None else model_view(redact(text).text)
