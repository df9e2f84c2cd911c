"""Replanning a working set inside its run: only what forces it does (design 7.10, 7.12 and 7.16).

Each replan is an event written before the request that needs it is built. Closed history gives way first, to zero if need be;
the run's own results are shortened only after that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from django.db import transaction

from ctxengine.engine.cache.bound_reasoning import binds_reasoning
from ctxengine.engine.capacity.feedback import with_refusal
from ctxengine.engine.capacity.profile import CapacityProfile
from ctxengine.engine.errors import BudgetExceeded
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.history.projection import Projection
from ctxengine.engine.history.working_set_packets import packet_lost
from ctxengine.engine.history.working_set_plan import Wish, plan_run
from ctxengine.engine.history.working_set_pressure import (
    recorded_values,
    same_forms,
    smaller_rooms,
)
from ctxengine.engine.history.working_set_record import PlannedSet, PlanReason, planned_of
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.inputs import Prepared
from ctxengine.engine.legs.leg import Leg, planned_within
from ctxengine.engine.log.records import EventRecord
from ctxengine.engine.plan.epochs import EpochReason
from ctxengine.engine.plan.plan import Plan
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import RunRow, SessionRow
from ctxengine.service.bound_reasoning import counted, drop_reasoning
from ctxengine.service.clock import utc_now
from ctxengine.service.probe.profiles import hold_profile, keep_profile, profile_of
from ctxengine.service.specs import Actor
from ctxengine.service.working_set.ground import planning_of, profile_again
from ctxengine.service.working_set.plan_run import ENGINE, drafts_of


class Replanned(Exception):
    """The run's working set was planned anew; read the log again and build from it."""


def renew_if_due(
    actor: Actor, session: SessionRow, run: RunRow, log: PostgresLog, plan: Plan
) -> None:
    """Replan where a refusal, a security rotation, an act on its packet or another choice of legs followed the plan in force.

    Raises:
        Replanned: a new plan was written.
    """
    if session.engine != ENGINE:
        return
    before = _in_force(log, run)
    if before is None:
        return
    refused = log.newest(EventType.WINDOW_LEARNED)
    if refused is not None and refused.run == str(run.id) and refused.sequence > before.sequence:
        _after_refusal(actor, session, run, log, plan, before, refused)
    reason = _cause(log, run, before)
    if reason is not None:
        replanned = _replanned(session, run, log, plan, before, reason=reason)
        _write(actor, session, run, log, plan, replanned)
        raise Replanned


def _cause(log: PostgresLog, run: RunRow, before: EventRecord) -> PlanReason | None:
    """What came in behind the plan in force that it does not know of."""
    turned = log.newest(EventType.EPOCH_ROTATED)
    security = EpochReason.TOOL_REMOVED_FOR_SECURITY.value
    if (
        turned is not None
        and turned.sequence > before.sequence
        and security in turned.payload["reasons"]
    ):
        return PlanReason.SECURITY
    record = planned_of(before.payload)
    if record.packet is not None and packet_lost(
        log,
        before.sequence,
        record.behind_through + 1,
        record.packet_last,
        packet=record.packet,
    ):
        return PlanReason.BY_HAND
    chosen = log.newest(EventType.LEGS_CHOSEN) if "legs" in run.settings else None
    if chosen is not None and chosen.run == str(run.id) and chosen.sequence > before.sequence:
        return PlanReason.LEG
    return None


def relieve(
    actor: Actor,
    session: SessionRow,
    run: RunRow,
    log: PostgresLog,
    plan: Plan,
    projection: Projection | None,
    pressed: Prepared | BudgetExceeded,
) -> None:
    """Shrink closed history where the open turn no longer fits beside it; nothing where there is none left to shrink.

    Args:
        pressed: a step that would shorten the run's own results, or that could not be built at all.

    Raises:
        Replanned: a smaller plan was written.
    """
    if session.engine != ENGINE or projection is None:
        return
    before = _in_force(log, run)
    if before is None:
        return
    for most in smaller_rooms(pressed, projection, before.payload["room"]["tokens"]):
        record = planned_of(before.payload)
        smaller = _replanned(session, run, log, plan, before, reason=PlanReason.PRESSURE, most=most)
        if not same_forms(smaller.record, record):
            _write(actor, session, run, log, plan, smaller)
            raise Replanned


def _in_force(log: PostgresLog, run: RunRow) -> EventRecord | None:
    newest = log.newest(EventType.WORKING_SET_PLANNED)
    return newest if newest is not None and newest.run == str(run.id) else None


def _after_refusal(
    actor: Actor,
    session: SessionRow,
    run: RunRow,
    log: PostgresLog,
    plan: Plan,
    before: EventRecord,
    refused: EventRecord,
) -> None:
    """The refusal contradicts the profile: what it taught holds for this plan, and for later ones where it is believed."""
    told = refused.payload
    profile = profile_again(planned_of(before.payload).profile)
    learnt = with_refusal(profile, rejected_tokens=told["rejected"], stated_maximum=told["maximum"])
    replanned = _replanned(
        session,
        run,
        log,
        plan,
        before,
        reason=PlanReason.OVER_LENGTH,
        profile=learnt,
        request=told["request"],
    )
    if told["taught"]:
        with transaction.atomic():
            # Locks are taken in one order: the session's before the profile's.
            log.lock()
            hold_profile(session.tenant_id, plan.provider, plan.model)
            known = profile_of(session.tenant_id, plan.provider, plan.model)
            keep_profile(
                tenant_id=session.tenant_id,
                profile=with_refusal(
                    known, rejected_tokens=told["rejected"], stated_maximum=told["maximum"]
                ),
                session_id=session.id,
            )
    _write(actor, session, run, log, plan, replanned)
    raise Replanned


class _Replan(NamedTuple):
    """A replan about to be written."""

    record: PlannedSet
    drafts: Sequence[EventDraft]
    head: EventSeq


def _replanned(
    session: SessionRow,
    run: RunRow,
    log: PostgresLog,
    plan: Plan,
    before: EventRecord,
    *,
    reason: PlanReason,
    profile: CapacityProfile | None = None,
    most: int | None = None,
    request: str = "",
) -> _Replan:
    """A plan for the run as it stands, with the figures it began with but for what is given."""
    head = log.head()
    record = planned_of(before.payload)
    boundary = EventSeq(run.seed_event_sequence or 1)
    planning = planning_of(
        log,
        plan,
        profile or profile_again(record.profile),
        profile_id=record.profile.id,
        factor_millionths=run.settings.get("factor_millionths", 1_000_000),
        below=head.content_sequence + 1,
    )
    legs = [Leg.model_validate(leg) for leg in run.settings.get("legs", ())]
    planning = replace(planning, fixed=planned_within(planning.fixed, legs, plan.policy))
    wish = Wish(
        reason=reason,
        boundary=boundary,
        values=recorded_values(record),
        next_sequence=head.sequence + 1,
        open_turn=head.tokens - log.at(boundary).tokens,
        most=most,
        keep=tuple(turn.number for turn in record.promoted),
        request=request,
    )
    planned = plan_run(planning, wish)
    drafts = drafts_of(session, plan, planning, planned, run=str(run.id))
    return _Replan(planned.record, drafts, head.sequence)


def _write(
    actor: Actor,
    session: SessionRow,
    run: RunRow,
    log: PostgresLog,
    plan: Plan,
    replan: _Replan,
) -> None:
    """Append it; reasoning of the open run is bound to the bytes before it on some models, and goes with them."""
    with transaction.atomic():
        log.lock()
        dropped = drop_reasoning(run) if binds_reasoning(plan.model) else 0
        log.append(
            counted(replan.drafts, dropped),
            expected=replan.head,
            at=utc_now(),
            key=actor.idempotency_key,
        )
