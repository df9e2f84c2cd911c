"""Writing down what a model's summary came to: its installation by compare-and-set, or why there is none."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from django.db import transaction

from ctxengine.engine.budget.classes import BudgetClass
from ctxengine.engine.cache.bound_reasoning import binds_reasoning
from ctxengine.engine.compaction.compactor import Outcome
from ctxengine.engine.compaction.net_cost import NetCost, net_cost
from ctxengine.engine.compaction.soundness import Refusal
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import Job, SessionRow, SideCallRow
from ctxengine.service.audit import record_audit
from ctxengine.service.bound_reasoning import counted, drop_reasoning, open_run
from ctxengine.service.clock import utc_now
from ctxengine.service.compactors import MadeFor, outcome_drafts, refusal_event
from ctxengine.service.jobs.context import JobContext
from ctxengine.service.jobs.stops import JobCancelled
from ctxengine.service.specs import ServiceError
from ctxengine.service.summaries.state import SessionState, look
from ctxengine.service.summaries.wanted import WantedSummary
from ctxengine.service.weigh import prices_of

MOST_LOOKS = 8
"""So often the session is read again because somebody appended between the look and the lock."""

_LATEST = 20


class Written(NamedTuple):
    """Whose summary it is, and the state it was made from."""

    context: JobContext
    session: SessionRow
    wanted: WantedSummary
    made_at: SessionState

    @property
    def forced_by(self) -> str:
        """What led to it: the one who asked, for one by hand, else the job."""
        by_hand = self.wanted.cause == "hand"
        return self.context.actor.label if by_hand else f"job:{self.context.job.id}"


def weighed(
    outcome: Outcome, state: SessionState, session: SessionRow, wanted: WantedSummary
) -> Outcome:
    """What was made, each summary with the verdict of its net-cost test."""
    weigh = _weighing(state, session, wanted, outcome.made[-1].tokens_after)
    made = tuple(
        result.model_copy(update={"verdict": weigh(result.tokens_before - result.tokens_after)})
        for result in outcome.made
    )
    return outcome._replace(made=made)


def _weighing(
    state: SessionState, session: SessionRow, wanted: WantedSummary, summary_tokens: int
) -> Callable[[int], NetCost]:
    """The net-cost test of a rewrite of this range, by what it saves: all that stands behind it is cached anew."""
    end = state.log.at(EventSeq(state.head.sequence + 1)).tokens
    behind = max(0, end - state.log.at(EventSeq(wanted.below)).tokens)
    by_hand = "operator" if wanted.forced else ""
    return partial(
        _net_cost,
        recached_tokens=summary_tokens + behind,
        expected_steps=state.plan.policy.expected_steps,
        forced_by="budget" if wanted.cause == "budget" else by_hand,
        prices=prices_of(session),
        prompt_tokens=state.plan.prefix_tokens + summary_tokens + behind,
    )


def _net_cost(saved_tokens: int, **figures: Any) -> NetCost:
    return net_cost(saved_tokens=saved_tokens, **figures)


def install(written: Written, outcome: Outcome, facts: dict[str, Any]) -> bool:
    """Install a summary and raise the floors that come with it; False where its source has changed.

    The session is read without its lock; the lock is held only to see that its head is still the one that was read, and to
    append. What was appended since the summary's source was read stays where it is.

    Raises:
        LeaseLost: another worker has the job; nothing was written.
        JobCancelled: somebody asked for its end; nothing was written.
        ServiceError: `stale_head` when others appended all the time; the job is tried again.
    """
    for _ in range(MOST_LOOKS):
        try:
            state = look(written.session, written.wanted)
        except ServiceError:
            return False
        if not _holds(written, state, outcome):
            return False
        with transaction.atomic():
            hold_unless_cancelled(written.context)
            if state.log.lock().sequence != state.head.sequence:
                continue
            _append(written, state, _up_to_date(outcome, state), facts)
            written.context.conclude(installed_by(state.log, written.context.job) or {})
            return True
    raise ServiceError("stale_head", 409, "Others appended to this session all the time.")


def hold_unless_cancelled(context: JobContext) -> None:
    """Keep the job until the commit, unless somebody wanted its end by now: the heartbeat tells that late."""
    context.hold()
    if context.lease.rows().filter(cancel_asked=True).exists():
        raise JobCancelled


def _holds(written: Written, state: SessionState, outcome: Outcome) -> bool:
    if not state.same_ground(written.made_at):
        return False
    if written.wanted.merge:
        # What it is made of are the summaries compared just now.
        return True
    return state.still_gives(written.wanted, outcome.made[-1], written.made_at)


def _up_to_date(outcome: Outcome, state: SessionState) -> Outcome:
    """Constraints and open tasks are those of now: they come from the state, whatever the model has written."""
    constraints = tuple(constraint.text for constraint in state.standing.state.constraints)
    tasks = tuple(task.title for task in state.standing.state.open_tasks)
    made = tuple(
        result.model_copy(
            update={
                "constraints": tuple(dict.fromkeys((*result.constraints, *constraints)))
                if result.merges
                else constraints,
                "open_tasks": tasks,
            }
        )
        for result in outcome.made
    )
    return outcome._replace(made=made)


def _append(written: Written, state: SessionState, outcome: Outcome, facts: dict[str, Any]) -> None:
    wanted, first = written.wanted, state.head.sequence + 1
    policy = state.plan.policy.label
    drafts = wanted.yield_drafts(
        model=written.session.model,
        plan_total=state.plan_total,
        policy=policy,
        forced_by=written.forced_by,
        weigh=_weighing(state, written.session, wanted, outcome.made[-1].tokens_after),
    )
    yields = [
        first + place
        for place, draft in enumerate(drafts)
        if draft.payload["class"] == BudgetClass.HISTORY.value
    ]
    drafts += outcome_drafts(
        outcome,
        first=first + len(drafts),
        yields=yields,
        made_for=MadeFor(state.plan_total, written.session.model, policy, written.forced_by),
        run=wanted.run,
        owner=written.session.principal,
        reason=wanted.reason,
        writer=facts,
    )
    if binds_reasoning(state.plan.model):
        # Summaries stand before the open run, and so before its reasoning.
        drafts = counted(drafts, drop_reasoning(open_run(written.session)))
    state.log.append(drafts, expected=state.head.sequence, at=utc_now())
    result = outcome.made[-1]
    if wanted.cause == "hand":
        record_audit(
            actor=written.context.actor,
            action="history.compacted",
            target=str(written.session.id),
            reason=wanted.reason,
            before={"tokens": result.tokens_before},
            after={
                "tokens": result.tokens_after,
                "through": result.replaced_through_sequence,
                "depth": result.depth,
            },
        )


def installed_by(log: PostgresLog, job: Job) -> dict[str, Any] | None:
    """What a job has installed, as its result; None where it has installed nothing."""
    for event in log.latest({EventType.COMPACTED}, limit=_LATEST):
        payload = event.payload
        writer = payload.get("writer")
        if writer and writer["job"] == str(job.id):
            return {
                "outcome": "compacted",
                "event": event.sequence,
                "tokens_before": payload["tokens_before"],
                "tokens_after": payload["tokens_after"],
                "replaced_through": payload["replaced_through_sequence"],
                "depth": payload["depth"],
                "writer": writer,
            }
    return None


def record_refusal(written: Written, refusal: Refusal, asked: dict[str, Any]) -> None:
    """Say in the log why there is no summary; nothing else changes."""
    draft = refusal_of_job(
        written.wanted,
        refusal,
        asked,
        forced_by=written.forced_by,
        content_head=written.made_at.head.content_sequence,
    )
    with transaction.atomic():
        written.context.hold()
        written.made_at.log.append([draft], expected=None, at=utc_now())


def refusal_of_job(
    wanted: WantedSummary,
    refusal: Refusal,
    asked: dict[str, Any],
    *,
    forced_by: str,
    content_head: int,
) -> EventDraft:
    """The event that says why a job made no summary."""
    return refusal_event(
        refusal,
        first=wanted.first,
        through=wanted.below - 1,
        tokens=wanted.tokens,
        content_head=content_head,
        forced_by=forced_by,
        run=wanted.run,
        asked=asked,
    )


def spend_of(job: Job) -> dict[str, Any]:
    """What a job's calls cost so far, attempts before this one included: calls, tokens, millionths of a US dollar."""
    rows = SideCallRow.objects.filter(tenant_id=job.tenant_id, job_id=job.id, purpose="summary")
    calls = list(rows.values_list("usage", "cost_microdollars"))
    costs = [cost for _, cost in calls if cost is not None]
    return {
        "calls": len(calls),
        "prompt_tokens": sum(int(usage.get("prompt_total") or 0) for usage, _ in calls),
        "output_tokens": sum(int(usage.get("output") or 0) for usage, _ in calls),
        "cost_microdollars": sum(costs) if costs else None,
    }
