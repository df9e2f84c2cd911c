"""`POST sessions/{id}/end`: no further run may start (design 5)."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.trust.levels import Trust
from ctxengine.ledger.models import RunRow, SessionRow
from ctxengine.service.access import session_of
from ctxengine.service.clock import utc_now
from ctxengine.service.end_run import finish_run
from ctxengine.service.offer_facts import facts_offer
from ctxengine.service.specs import Actor
from ctxengine.service.wiring import log_of


def end_session(*, actor: Actor, session_id: UUID) -> None:
    """End a session; an open run ends as interrupted. Ending it again changes nothing.

    Raises:
        ServiceError: 404.
    """
    session = session_of(actor, session_id)
    log, now = log_of(session), utc_now()
    with transaction.atomic():
        log.lock()
        session.refresh_from_db(fields=["state"])
        if session.state == "ended":
            return
        rows = RunRow.objects.filter(tenant_id=session.tenant_id, session_id=session.id)
        for run in rows.exclude(state="ended"):
            finish_run(session=session, run=run, log=log, outcome="interrupted", at=now)
        ended = EventDraft(
            type=EventType.SESSION_ENDED, trust=Trust.PLATFORM, payload={"outcome": "ended"}
        )
        offered = facts_offer(session, log)
        drafts = [offered, ended] if offered is not None else [ended]
        log.append(drafts, expected=None, at=now, key=actor.idempotency_key)
        SessionRow.objects.filter(tenant_id=session.tenant_id, id=session.id).update(state="ended")
