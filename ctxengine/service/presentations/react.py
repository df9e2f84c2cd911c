"""What a user thinks of a card and chooses on it: events about the card's own event (capacity spec 10)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.items import ContentFormat
from ctxengine.engine.trust.levels import Trust
from ctxengine.ledger.models import SessionRow
from ctxengine.service.access import session_of
from ctxengine.service.card_specs import GiveFeedback, SelectOnCard
from ctxengine.service.child_seed import works_for_a_run
from ctxengine.service.clock import utc_now
from ctxengine.service.presentations.read import card_at, presentation_of
from ctxengine.service.refusals import refusing
from ctxengine.service.specs import Actor
from ctxengine.service.wiring import log_of


def give_feedback(
    *, actor: Actor, session_id: UUID, event: int, spec: GiveFeedback
) -> dict[str, Any]:
    """Note what the user thinks of a card; gives the card with everything said of it.

    Raises:
        ServiceError: 404 where the session, or a card at that event, does not exist.
    """
    payload = {"presentation": event, "verdict": spec.verdict}
    return _react(actor, session_id, event, EventType.PRESENTATION_FEEDBACK, payload, spec.note)


def select_on_card(
    *, actor: Actor, session_id: UUID, event: int, spec: SelectOnCard
) -> dict[str, Any]:
    """Note what the user chose on a card; gives the card with everything said of it.

    Raises:
        ServiceError: 404 where the session, or a card at that event, does not exist.
    """
    return _react(
        actor,
        session_id,
        event,
        EventType.PRESENTATION_SELECTED,
        {"presentation": event},
        spec.choice,
    )


def _react(
    actor: Actor,
    session_id: UUID,
    event: int,
    type: EventType,
    payload: dict[str, Any],
    text: str,
) -> dict[str, Any]:
    session = session_of(actor, session_id)
    log = log_of(session)
    with refusing():
        card_at(log, event)
        draft = EventDraft(
            type=type,
            trust=_speaker(session),
            payload=payload,
            body=text or None,
            format=ContentFormat.TEXT if text else None,
            owner=session.principal,
        )
        log.append([draft], expected=None, at=utc_now(), key=actor.idempotency_key)
    return presentation_of(actor=actor, session_id=session_id, event=event)


def _speaker(session: SessionRow) -> Trust:
    """Cards of a child run are looked at by its parent, whose words are a model's."""
    return Trust.MODEL if works_for_a_run(session) else Trust.USER
