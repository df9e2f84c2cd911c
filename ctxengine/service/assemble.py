"""`POST runs/{id}/assemble`: project, allocate, yield, build, record (design 5 and 6).

The same run at the same content head is the same step: its request is rebuilt from what was recorded, whatever the clock says
now.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any
from uuid import UUID

from ctxengine.engine.cache.trail import trail_of
from ctxengine.engine.errors import BudgetExceeded
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.ports import TokenCounter
from ctxengine.engine.request import ModelRequest
from ctxengine.engine.standing import NOTHING_STANDING
from ctxengine.engine.step import (
    Memory,
    Prepared,
    SessionFacts,
    StepInputs,
    floors_of,
    prepare,
    shared_frame,
)
from ctxengine.ledger.ahead import Read, read_ahead
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import RequestRow, RunRow, SessionRow
from ctxengine.ledger.rows import asks_row_by, row_by
from ctxengine.ledger.warm import WarmLog
from ctxengine.service.access import head_of_open, open_run_and_session
from ctxengine.service.bound_reasoning import (
    build_bound,
    inputs_before,
)
from ctxengine.service.boundary.admit import admit, does_not_fit
from ctxengine.service.boundary.ask import prepare_boundary
from ctxengine.service.boundary_pass import make_room
from ctxengine.service.cache_use import public_cache
from ctxengine.service.checkpoints import asks_opaque
from ctxengine.service.clock import utc_now
from ctxengine.service.compactors import compactor_of
from ctxengine.service.delta import Taken, delta_of, taken_apart
from ctxengine.service.fresh_blocks import sent_before
from ctxengine.service.jobs.wait_for import wait_for
from ctxengine.service.left_before import asks_left_before, left_before
from ctxengine.service.legs.choose_legs import choose_legs, legs_of
from ctxengine.service.legs.leg_bodies import BuiltLeg, assembled_legs, rebuild_legs
from ctxengine.service.legs.step_legs import step_legs
from ctxengine.service.markers import reaching
from ctxengine.service.memory_source import with_embedded
from ctxengine.service.projections import decision_in_force
from ctxengine.service.races import redo_once
from ctxengine.service.rebuild import rebuild_request
from ctxengine.service.record_step import record_step
from ctxengine.service.refusals import refusal_of, refusing
from ctxengine.service.request_rows import exceeded_drafts
from ctxengine.service.skills import loaded_skills
from ctxengine.service.specs import Actor, Assemble, Assembled, ServiceError
from ctxengine.service.summaries.ask import AnswerLater, ask_under_pressure, wanted_by_pressure
from ctxengine.service.tails import tail_of_run
from ctxengine.service.wanted_inputs import given_memory, wanted_inputs
from ctxengine.service.warm import Warmth, warmth_of
from ctxengine.service.wiring import (
    counter_of,
    renderer_of,
    session_facts,
)
from ctxengine.service.working_set.replan import Replanned, relieve, renew_if_due


def assemble(*, actor: Actor, run_id: UUID, spec: Assemble) -> Assembled:
    """Build the run's next request, or hand out again the one this step already has.

    Raises:
        ServiceError: `run_ended`, `calls_pending`, `budget_exceeded`, `stale_head` (409), `not_found` (404).
        AnswerLater: a model has to summarise first, and the caller does not wait, or not long enough.
    """
    deadline = time.monotonic() + spec.wait_s
    while True:
        run, session = open_run_and_session(actor, run_id)
        choose_legs(actor=actor, session=session, run=run, wanted=spec.legs)
        make_room(actor=actor, session=session, run=run)
        try:
            prepare_boundary(actor=actor, session=session, run=run)
            return redo_once(partial(_assemble, actor, session, run, spec))
        except AnswerLater as later:
            left = deadline - time.monotonic()
            if spec.compaction != "wait" or left <= 0:
                raise
            wait_for(later.job, left)


def _assemble(actor: Actor, session: SessionRow, run: RunRow, spec: Assemble) -> Assembled:
    with warmth_of(session) as warmth:
        while True:
            try:
                with read_ahead(*_asked(warmth.log(session), session, run)):
                    return _assemble_warm(actor, session, run, spec, warmth)
            except Replanned:
                # Each replan leaves less of closed history, or answers one refusal or rotation: this ends.
                run.refresh_from_db()


def _asked(log: WarmLog, session: SessionRow, run: RunRow) -> list[Read]:
    """What the ordinary step reads, the head before all."""
    return [
        *log.asks_step(run.id),
        asks_row_by(RequestRow, **_step_key(session, run)),
        asks_opaque(run),
        asks_left_before(session),
    ]


def _step_key(session: SessionRow, run: RunRow) -> dict[str, Any]:
    """By what a request of the run at the session's head is found."""
    return {
        "tenant_id": session.tenant_id,
        "run_id": run.id,
        "content_sequence": session.content_sequence,
        "act_sequence": session.act_sequence,
    }


def _assemble_warm(
    actor: Actor, session: SessionRow, run: RunRow, spec: Assemble, warmth: Warmth
) -> Assembled:
    began = time.perf_counter()
    log = warmth.log(session)
    with refusing():
        head = head_of_open(log, session, run)
        _refuse_pending(log, run)
        known = row_by(RequestRow, **_step_key(session, run))
        if known is not None:
            built = rebuild_request(session, known)
            if "opaque" in built.absent:
                # Checkpoints are dispensable: without one the step goes out again, but for its reasoning.
                built = rebuild_request(session, known, without_lost_reasoning=True)
            again = rebuild_legs(session, known, without_lost_reasoning=True)
            return _answer(actor, session, known, built, spec, again, warmth)
        plan = warmth.pinned(log, session)
        facts = session_facts(session, plan)
        now = utc_now()
        memory = given_memory(spec)
        memory = with_embedded(session, log, memory)
        wanted = wanted_inputs(session, run, plan, spec, head.content_sequence, head.sequence, now)
        wanted = wanted.model_copy(update={"acts": head.act_sequence, "legs": legs_of(run)})
        counter = warmth.memo.counter(counter_of(plan.provider, plan.model))
        prepared, declined = _prepare(
            actor, session, log, facts, wanted, memory, counter, warmth, run
        )
        try:
            prepared, built = build_bound(
                run, plan, prepared, renderer=renderer_of(session.provider), memo=warmth.memo
            )
        except BudgetExceeded as error:
            # What was allocated did not hold: it is told like one that never fitted.
            error.steps = error.steps or prepared.allocation.yields
            record_exceeded(actor, log, error, wanted, plan, run)
            raise
        admit(actor, session, run, built, prepared)
        left = left_before(session)
        trail = trail_of(built)
        built = reaching(left, built, trail, now)
        prepared, legs = step_legs(
            actor, session, run, log, plan, prepared, built, warmth, head.sequence
        )
        row = record_step(
            actor,
            session,
            run,
            log,
            prepared,
            built,
            memory,
            wanted,
            now,
            began,
            warmth,
            left,
            trail,
            declined,
            legs,
        )
    return _answer(actor, session, row, built, spec, legs, warmth)


def _refuse_pending(log: PostgresLog, run: RunRow) -> None:
    waiting = [call.wire_call_id for call in log.open_calls() if call.run == str(run.id)]
    if waiting:
        raise ServiceError(
            "calls_pending",
            409,
            f"{len(waiting)} tool calls have no result yet: {', '.join(waiting[:10])}. Report them to tool-results first.",
            calls=waiting,
        )


def _prepare(
    actor: Actor,
    session: SessionRow,
    log: WarmLog,
    facts: SessionFacts,
    wanted: StepInputs,
    memory: Memory,
    counter: TokenCounter,
    warmth: Warmth,
    run: RunRow,
) -> tuple[Prepared, EventDraft | None]:
    """The decision, and the event that says why no model writes the summary that it needs, where that was wanted.

    Raises:
        AnswerLater: a model writes it first.
        Replanned: the run's working set had to be planned anew; read the log again.
    """
    plan_total = shared_frame(facts.plan, wanted.factor_millionths, wanted.legs).total
    standing = warmth.standing(log, plan_total=plan_total) if wanted.acts else NOTHING_STANDING
    floors = floors_of(log.newest_yields(), plan_total, standing.undone)
    skills = (
        loaded_skills(log, until=wanted.head, counter=counter, nonce_key=facts.nonce_key)
        if facts.plan.skills
        else ()
    )

    earlier = inputs_before(run) if facts.plan.fresh_rows == "appended" else None
    sent = sent_before(log, facts.plan, earlier, excluded=standing.marks.excluded)
    if earlier is not None:
        wanted = wanted.model_copy(update={"fresh_place": earlier.content_head + 1})

    def attempt(*, defer: bool = False) -> Prepared:
        below = wanted.content_head + 1
        return prepare(
            log,
            facts,
            wanted,
            memory=memory,
            floors=floors,
            counter=counter,
            skills=skills,
            standing=standing,
            compactor=compactor_of(log, facts.plan, standing, below=below, defer=defer),
            sent=sent,
            projection=projection,
            tail=tail,
        )

    renew_if_due(actor, session, run, log, facts.plan)
    marks = standing.marks
    wanted = wanted.model_copy(
        update={
            "projection": decision_in_force(wanted.engine, log, run),
            "pinned": marks.pinned,
            "folded": marks.folded,
            "excluded": marks.excluded,
        }
    )
    projection = warmth.projection(log, facts, wanted, counter)
    told = partial(warmth.told, log)
    tail = tail_of_run(run, log, facts.plan, wanted, projection, counter, told)

    try:
        prepared = attempt(defer=facts.plan.policy.compaction == "model")
        relieve(actor, session, run, log, facts.plan, projection, prepared)
        asked = prepared.compaction.wanted if prepared.compaction else None
        if asked is None:
            return prepared, None
        summary = wanted_by_pressure(prepared, asked, floors, run=str(run.id))
        declined = ask_under_pressure(
            actor, log, facts.plan, summary, content_head=wanted.content_head
        )
        return attempt(), declined
    except BudgetExceeded as error:
        relieve(actor, session, run, log, facts.plan, projection, error)
        record_exceeded(actor, log, error, wanted, facts.plan, run)
        if wanted.engine == "boundary":
            raise does_not_fit(error) from error
        raise refusal_of(error) from error


def record_exceeded(
    actor: Actor,
    log: PostgresLog,
    error: BudgetExceeded,
    wanted: StepInputs,
    plan: Plan,
    run: RunRow,
) -> None:
    """Write the pressure and `context.budget.exceeded` once per step; asking again gives the same error and no other event."""
    newest = log.newest(EventType.BUDGET_EXCEEDED)
    if newest is not None and newest.payload["content_sequence"] == wanted.content_head:
        return
    units = log.units(EventSeq(wanted.boundary), EventSeq(wanted.content_head + 1))
    drafts = exceeded_drafts(error, units, plan.policy, run=str(run.id), step=wanted.content_head)
    log.append(drafts, expected=None, at=utc_now(), key=actor.idempotency_key)


def _taken_before(session: SessionRow, request_id: UUID, warmth: Warmth) -> Taken | None:
    """The request that a caller has already, taken apart; None where the session has no such request."""
    if warmth.taken is not None and warmth.taken[0] == request_id:
        return warmth.taken[1]
    row = row_by(RequestRow, tenant_id=session.tenant_id, id=request_id, session_id=session.id)
    return None if row is None else taken_apart(rebuild_request(session, row))


def _answer(
    actor: Actor,
    session: SessionRow,
    row: RequestRow,
    built: ModelRequest,
    spec: Assemble,
    legs: Sequence[BuiltLeg],
    warmth: Warmth,
) -> Assembled:
    delta = None
    if spec.base_request_id is not None:
        base, new = _taken_before(session, spec.base_request_id, warmth), taken_apart(built)
        delta = delta_of(base, new)
        # Whoever asks for a difference names this one next.
        warmth.taken = (row.id, new)
    return Assembled(
        request_id=row.id,
        body=built.body,
        manifest=row.manifest,
        budget=row.budget,
        cache=public_cache(row.cache),
        prefix_sha256=row.prefix_sha256,
        wire_prefix_sha256=row.wire_prefix_sha256,
        request_sha256=row.request_sha256,
        delta=delta,
        legs=assembled_legs(legs),
    )
