"""Asking for a packet that a model writes: ahead of the plan that will want it, or by hand (capacity spec 4; design 7.9, 7.14).

No run waits for one. What is not there when a plan wants it is taken from the ledger, as without a model.
"""

from __future__ import annotations

from ctxengine.engine.budget.policy import BudgetPolicy
from ctxengine.engine.compaction.soundness import Refusal
from ctxengine.engine.events import EventType
from ctxengine.engine.history.working_set_ahead import last_ahead, turns_ahead
from ctxengine.engine.history.working_set_packet_text import LEAST_TOLD_TOKENS
from ctxengine.engine.history.working_set_packets import first_kept, packet_store
from ctxengine.engine.history.working_set_record import planned_of
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.standing import history_acts
from ctxengine.engine.turns.closed import closed_turns
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import Job, JobState, SessionRow
from ctxengine.service.access import plan_row_of
from ctxengine.service.jobs.enqueue import enqueue
from ctxengine.service.specs import Actor
from ctxengine.service.summaries.ask import require_reachable
from ctxengine.service.working_set.plan_run import ENGINE
from ctxengine.service.working_set.wanted_packet import (
    KIND,
    WantedPacket,
    flight_key,
    wanted_ahead,
)

CAUSE = "the packet will have to reach further"
_ENDED_WITHOUT = (JobState.FAILED, JobState.CANCELLED)


def ask_ahead(session: SessionRow, log: PostgresLog, plan: Plan | None = None) -> Job | None:
    """Have the packet written that the newest plan's next growth will want; None where nothing is due.

    Call it when a turn has closed or a run was planned, outside any lock. Each range is asked for once: where that failed or
    was called off, it is left at that, unless only its source had changed. Nothing is due while no packet is left to go on
    from, for a job would read the whole history then.

    Args:
        plan: the session's plan, where the caller has it.
    """
    if session.engine != ENGINE:
        return None
    newest, closed = (
        log.newest(kind) for kind in (EventType.WORKING_SET_PLANNED, EventType.TURN_CLOSED)
    )
    if newest is None or closed is None or newest.payload["packet"] is None:
        return None
    record = planned_of(newest.payload)
    if closed.payload["number"] < (last_ahead(record) or 0):
        return None
    policy = plan.policy if plan is not None else _policy(session)
    if policy.compaction != "model":
        return None
    turns = turns_ahead(record, closed_turns(log))
    if turns is None or turns.budget_tokens < LEAST_TOLD_TOKENS:
        return None
    wanted = wanted_ahead(turns, run=newest.run)
    store = packet_store(log, history_acts(log).undone)
    if not store.may_be_made(wanted.first, wanted.through) or store.reaches(
        wanted.first, wanted.through
    ):
        return None
    if first_kept(log, store.shorter(wanted.first, wanted.through)) is None:
        return None
    if _left_at_that(session, wanted) or not _is_open(session):
        return None
    return _enqueued(Actor(session.tenant_id, "system"), session, wanted)


def ask_by_hand(
    actor: Actor, session: SessionRow, plan: Plan, wanted: WantedPacket, *, tokens_read: int
) -> Job:
    """The job that writes a packet somebody asked for.

    Args:
        tokens_read: what the model reads for it.

    Raises:
        ServiceError: 409 `no_summariser`, with the provider's code.
    """
    require_reachable(plan, tokens_read)
    return _enqueued(actor, session, wanted)


def _enqueued(actor: Actor, session: SessionRow, wanted: WantedPacket) -> Job:
    by_hand = wanted.cause == "hand"
    return enqueue(
        actor=actor,
        kind=KIND,
        arguments=wanted.as_arguments(),
        session_id=session.id,
        subject=f"turns {wanted.first_turn} to {wanted.last_turn}",
        single_flight=flight_key(session.id, wanted),
        cause=f"asked for by {actor.label}" if by_hand else CAUSE,
    )


def _policy(session: SessionRow) -> BudgetPolicy:
    """The policy of the session's plan, without the plan's texts: these may be erased."""
    return BudgetPolicy.model_validate(plan_row_of(session).policy)


def _left_at_that(session: SessionRow, wanted: WantedPacket) -> bool:
    """Whether the newest job that was asked for ahead ended without it; what became of one by hand says nothing of that."""
    rows = Job.objects.filter(
        tenant_id=session.tenant_id, kind=KIND, single_flight=flight_key(session.id, wanted)
    )
    last = rows.order_by("-created_at").first()
    if last is None or last.state not in _ENDED_WITHOUT:
        return False
    return bool(last.error.get("code") != Refusal.SOURCE_CHANGED.value)


def _is_open(session: SessionRow) -> bool:
    rows = SessionRow.objects.filter(tenant_id=session.tenant_id, id=session.id)
    return rows.filter(state="open").exists()
