"""`POST runs/{id}/end`: outcomes; open calls are closed, reasoning is dropped (design 2, 4, 5)."""

from __future__ import annotations

from collections.abc import Sequence
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
from ctxengine.service.child_seed import works_for_a_run
from ctxengine.service.clock import utc_now
from ctxengine.service.drafts import INTERRUPTED, platform_result
from ctxengine.service.memory_source import remember_turn
from ctxengine.service.probe.cache_seen import learn_cache
from ctxengine.service.probe.feedback import learn_from_run
from ctxengine.service.probe.when_idle import probe_when_idle
from ctxengine.service.races import redo_once
from ctxengine.service.refusals import refusing
from ctxengine.service.snapshots import fence
from ctxengine.service.specs import Actor, EndRun
from ctxengine.service.turns.close_turns import close_missing_turns
from ctxengine.service.wiring import counter_of, log_of
from ctxengine.service.working_set.ask_packet import ask_ahead


def end_run(*, actor: Actor, run_id: UUID, spec: EndRun) -> None:
    """End a run. Ending one that is over already changes nothing.

    Raises:
        ServiceError: 404; `stale_head` (409).
    """
    run = run_of(actor, run_id)
    session = session_of(actor, run.session_id)
    redo_once(lambda: _end(session, run, spec.outcome))


def _end(session: SessionRow, run: RunRow, outcome: str) -> None:
    log, now = log_of(session), utc_now()
    with refusing():
        head = log.head()
        run.refresh_from_db(fields=["state"])
        if run.state == "ended":
            return
        closing = interruptions(session, run, log, first=EventSeq(head.sequence + 1))
        with transaction.atomic():
            before_turn_closes(session)
            finish_run(
                run=run, log=log, outcome=outcome, at=now, closing=closing, expected=head.sequence
            )
        close_turn(session, run, log, at=now)


def interruptions(
    session: SessionRow, run: RunRow, log: PostgresLog, *, first: EventSeq
) -> list[EventDraft]:
    """Results for the run's open calls, the first of them at sequence `first`. They are counted here, so hold no lock."""
    derivation = Derivation(counter_of(session.provider, session.model))
    mine = [call for call in log.open_calls() if call.run == str(run.id)]
    return [
        platform_result(
            log,
            call=call,
            text=INTERRUPTED,
            sequence=EventSeq(first + place),
            derivation=derivation,
            run=str(run.id),
        )
        for place, call in enumerate(mine)
    ]


def finish_run(
    *,
    run: RunRow,
    log: PostgresLog,
    outcome: str,
    at: datetime,
    closing: Sequence[EventDraft] = (),
    expected: EventSeq | None = None,
) -> None:
    """Mark the run ended; call it in the transaction of the act that ends the run, and `close_turn` behind it.

    Args:
        closing: results that close the run's open calls, made at the head `expected`.
    """
    log.lock()
    ended = EventDraft(
        type=EventType.RUN_ENDED,
        trust=Trust.PLATFORM,
        run=str(run.id),
        payload={"outcome": outcome, "opaque_dropped": drop_checkpoint(run)},
    )
    log.append([*closing, ended], expected=expected, at=at)
    RunRow.objects.filter(tenant_id=run.tenant_id, id=run.id).update(
        state="ended", outcome=outcome, ended_at=at
    )


def before_turn_closes(session: SessionRow) -> None:
    """Call first in a transaction that ends a run: a repeatable write may wrap it together with its `close_turn`.

    Keeping the turn takes the person's fence, and everybody takes that before the session's lock.
    """
    if not works_for_a_run(session):
        fence(session.tenant_id, session.principal)


def close_turn(session: SessionRow, run: RunRow, log: PostgresLog, *, at: datetime) -> None:
    """Record the ended run's turn, have a due packet written, let the run teach, and keep it for recall, outside any lock.

    What a parent told its child is nothing the principal asked.
    """
    close_missing_turns(session, log)
    ask_ahead(session, log)
    learn_from_run(session, run)
    learn_cache(session, run)
    probe_when_idle(session)
    if not works_for_a_run(session):
        remember_turn(session, run, log, at=at)
