"""`POST runs/{id}/end`: outcomes; open calls are closed, reasoning is dropped (design 2, 4, 5)."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.db import transaction

from ctxengine.engine.derive import Derivation
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.trust.levels import Trust
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import RunRow, SessionRow
from ctxengine.service.access import run_of, session_of
from ctxengine.service.checkpoints import drop_checkpoint
from ctxengine.service.clock import utc_now
from ctxengine.service.drafts import INTERRUPTED, platform_result
from ctxengine.service.memory_source import remember_turn
from ctxengine.service.refusals import refusing
from ctxengine.service.specs import Actor, EndRun
from ctxengine.service.wiring import counter_of, log_of


def end_run(*, actor: Actor, run_id: UUID, spec: EndRun) -> None:
    """End a run. Ending one that is over already changes nothing.

    Raises:
        ServiceError: 404.
    """
    run = run_of(actor, run_id)
    if run.state == "ended":
        return
    session = session_of(actor, run.session_id)
    log = log_of(session)
    with refusing(), transaction.atomic():
        log.lock()
        run.refresh_from_db(fields=["state"])
        if run.state == "ended":
            return
        finish_run(session=session, run=run, log=log, outcome=spec.outcome, at=utc_now())


def finish_run(
    *, session: SessionRow, run: RunRow, log: PostgresLog, outcome: str, at: datetime
) -> None:
    """Close what is open and mark the run ended; call it inside the transaction of the act that ends the run."""
    derivation = Derivation(counter_of(session.provider, session.model))
    head = log.head()
    drafts: list[EventDraft] = []
    for call in log.open_calls():
        if call.run != str(run.id):
            continue
        drafts.append(
            platform_result(
                log,
                call=call,
                text=INTERRUPTED,
                sequence=EventSeq(head.sequence + 1 + len(drafts)),
                derivation=derivation,
                run=str(run.id),
            )
        )
    dropped = drop_checkpoint(run)
    drafts.append(
        EventDraft(
            type=EventType.RUN_ENDED,
            trust=Trust.PLATFORM,
            run=str(run.id),
            payload={"outcome": outcome, "opaque_dropped": dropped},
        )
    )
    log.append(drafts, expected=head.sequence, at=at)
    RunRow.objects.filter(tenant_id=run.tenant_id, id=run.id).update(
        state="ended", outcome=outcome, ended_at=at
    )
    remember_turn(session, run, log, at=at)
