"""`POST sessions/{id}/end`: no further run may start (design 5)."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.trust.levels import Trust
from ctxengine.ledger.models import RunRow, SessionRow
from ctxengine.service.access import session_of
from ctxengine.service.clock import utc_now
from ctxengine.service.end_run import (
    before_turn_closes,
    close_turn,
    finish_run,
    interruptions,
)
from ctxengine.service.offer_facts import facts_offer
from ctxengine.service.races import redo_once
from ctxengine.service.refusals import refusing
from ctxengine.service.specs import Actor
from ctxengine.service.wiring import log_of


def end_session(*, actor: Actor, session_id: UUID) -> None:
    """End a session; an open run ends as interrupted. Ending it again changes nothing.

    Raises:
        ServiceError: 404; `stale_head` (409).
    """
    session = session_of(actor, session_id)
    redo_once(lambda: _end(actor, session))


def _end(actor: Actor, session: SessionRow) -> None:
    log, now = log_of(session), utc_now()
    with refusing():
        head = log.head()
        # What is offered rests on the plan of the epoch that stands now.
        session.refresh_from_db(fields=["state", "epoch", "provider", "model"])
        if session.state == "ended":
            return
        rows = RunRow.objects.filter(tenant_id=session.tenant_id, session_id=session.id)
        run = rows.exclude(state="ended").first()
        closing = []
        if run is not None:
            closing = interruptions(session, run, log, first=EventSeq(head.sequence + 1))
        offered = facts_offer(session, log)
        ended = EventDraft(
            type=EventType.SESSION_ENDED, trust=Trust.PLATFORM, payload={"outcome": "ended"}
        )
        expected: EventSeq | None = head.sequence
        with transaction.atomic():
            if run is not None:
                before_turn_closes(session)
                finish_run(
                    run=run,
                    log=log,
                    outcome="interrupted",
                    at=now,
                    closing=closing,
                    expected=expected,
                )
                expected = None
            drafts = [offered, ended] if offered is not None else [ended]
            log.append(drafts, expected=expected, at=now, key=actor.idempotency_key)
            SessionRow.objects.filter(tenant_id=session.tenant_id, id=session.id).update(
                state="ended"
            )
        if run is not None:
            close_turn(session, run, log, at=now)
