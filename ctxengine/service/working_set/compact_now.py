"""Compacting a `working_set` session by hand: the packet that the next run's plan wants, made ahead of it (spec 10)."""

from __future__ import annotations

from dataclasses import replace

from django.db import transaction

from ctxengine.engine.history.working_set_plan import Planned, Wish, plan_run
from ctxengine.engine.history.working_set_record import PlanReason
from ctxengine.ledger.models import SessionRow
from ctxengine.service.access import still_open_session
from ctxengine.service.audit import record_audit
from ctxengine.service.clock import utc_now
from ctxengine.service.compacted import Compacted
from ctxengine.service.factor import factor_in_force
from ctxengine.service.refusals import refusing
from ctxengine.service.specs import Actor, Compact, ServiceError
from ctxengine.service.turns.close_turns import close_missing_turns
from ctxengine.service.warm import plan_of_session
from ctxengine.service.wiring import log_of
from ctxengine.service.working_set.ground import planning_of, profile_in_force
from ctxengine.service.working_set.plan_run import drafts_of


def compact_working_set(*, actor: Actor, session: SessionRow, spec: Compact) -> Compacted:
    """Make the packet that a run starting now would need. A packet is a cache: it shows where a plan wants just its range.

    Raises:
        ServiceError: 409 `nothing_to_compact` where that plan has no packet, `stale_head`, `session_ended`; the reason of
            `Refusal` where none can be made; 422 `invalid_target` for a range or a merge of the caller's own.
    """
    if spec.through is not None or spec.merge or spec.summariser == "model":
        raise ServiceError(
            "invalid_target",
            422,
            "The packets of a working_set session follow from its plan and its turns: leave through, merge and summariser out.",
        )
    log = log_of(session)
    close_missing_turns(session, log)
    with refusing():
        head = log.head()
        still_open_session(session)
        plan = plan_of_session(session, log)
        profile, profile_id = profile_in_force(session, plan)
        below = head.content_sequence + 1
        planning = planning_of(
            log,
            plan,
            profile,
            profile_id=profile_id,
            factor_millionths=factor_in_force(session.tenant_id, plan.provider, plan.model),
            below=below,
        )
        wish = Wish(PlanReason.START, below, {}, head.sequence + 1)
        planned = plan_run(replace(planning, by_hand=True), wish)
        made = planned.packet
        if made is None:
            return _standing(planned)
        told = Compacted(
            "previewed" if spec.preview else "compacted",
            None if spec.preview else head.sequence + 1,
            made.tokens_before,
            made.tokens_after,
            made.replaced_through_sequence,
            made.depth,
        )
        if spec.preview:
            return told
        # The plan itself is the next run's business: only the packet is written.
        (packet, _) = drafts_of(session, plan, planning, planned, run=None, asked_by=actor.label)
        with transaction.atomic():
            log.append([packet], expected=head.sequence, at=utc_now(), key=actor.idempotency_key)
            record_audit(
                actor=actor,
                action="history.compacted",
                target=str(session.id),
                reason=spec.note,
                before={"tokens": told.tokens_before},
                after={"tokens": told.tokens_after, "through": told.replaced_through},
            )
    return told


def _standing(planned: Planned) -> Compacted:
    record = planned.record
    if record.refused:
        raise ServiceError(
            record.refused, 409, "No packet can be made of the turns that the plan wants in one."
        )
    if record.packet is None:
        raise ServiceError(
            "nothing_to_compact", 409, "Every closed turn fits, whole or as its card."
        )
    return Compacted("unchanged", record.packet, replaced_through=record.packet_last, depth=1)
