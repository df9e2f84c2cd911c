"""Compacting a `working_set` session by hand: the packet that the next run's plan wants, made ahead of it (spec 10)."""

from __future__ import annotations

from dataclasses import replace

from django.db import transaction

from ctxengine.engine.compaction.soundness import Refusal
from ctxengine.engine.history.working_set_ahead import TurnsAhead, tokens_read, turns_between
from ctxengine.engine.history.working_set_packet_text import LEAST_TOLD_TOKENS
from ctxengine.engine.history.working_set_packets import first_kept, is_told, packet_store
from ctxengine.engine.history.working_set_plan import Planned, Planning, Wish, plan_run
from ctxengine.engine.history.working_set_record import PlanReason
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.log.records import EventRecord
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.ports import SessionLog
from ctxengine.engine.turns.closed import closed_turns
from ctxengine.ledger.models import SessionRow
from ctxengine.service.access import still_open_session
from ctxengine.service.audit import record_audit
from ctxengine.service.clock import utc_now
from ctxengine.service.compacted import Compacted
from ctxengine.service.factor import factor_in_force
from ctxengine.service.refusals import refusing
from ctxengine.service.specs import Actor, Compact, ServiceError
from ctxengine.service.summaries.ask import require_reachable
from ctxengine.service.turns.close_turns import close_missing_turns
from ctxengine.service.warm import plan_of_session
from ctxengine.service.wiring import log_of
from ctxengine.service.working_set.ask_packet import ask_by_hand
from ctxengine.service.working_set.ground import planning_of, profile_in_force
from ctxengine.service.working_set.plan_run import drafts_of
from ctxengine.service.working_set.wanted_packet import wanted_by_hand


def compact_working_set(*, actor: Actor, session: SessionRow, spec: Compact) -> Compacted:
    """Make the packet that a run starting now would need. A packet is a cache: it shows where a plan wants just its range.

    Where a model is to write it, a job does, over the same turns, and one taken from the ledger that stands there gives way.

    Raises:
        ServiceError: 409 `nothing_to_compact` where that plan has no packet, `stale_head`, `session_ended`, `no_summariser`;
            the reason of `Refusal` where none can be made; 422 `invalid_target` for a range or a merge of the caller's own.
    """
    if spec.through is not None or spec.merge:
        raise ServiceError(
            "invalid_target",
            422,
            "The packets of a working_set session follow from its plan and its turns: leave through and merge out.",
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
        if spec.summariser == "model":
            return _by_model(actor, session, planning, planned, plan, spec)
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


def _by_model(
    actor: Actor,
    session: SessionRow,
    planning: Planning,
    planned: Planned,
    plan: Plan,
    spec: Compact,
) -> Compacted:
    """The job that writes the packet, without a wait; one that no model wrote is no reason against it.

    Its preview is refused where the job would not be asked for.
    """
    record, log, made = planned.record, planning.log, planned.packet
    standing = _stored(log, record.packet) if made is None else None
    if made is None and (record.refused or standing is None or is_told(standing)):
        return _standing(planned)
    if record.room.packet < LEAST_TOLD_TOKENS:
        raise ServiceError(
            Refusal.NO_ROOM.value,
            409,
            f"The packet may take {record.room.packet:,} tokens here; a model writes none of fewer than {LEAST_TOLD_TOKENS:,}.",
        )
    turns = _turns(planning, planned)
    read = _tokens_read(planning, turns)
    if spec.preview:
        require_reachable(plan, read)
        after = (
            made.tokens_after if made else standing.payload["tokens_after"] if standing else None
        )
        tokens, through = turns.range.tokens, turns.range.below - 1
        return Compacted("previewed", None, tokens, after, through, 1, tokens_read=read)
    wanted = wanted_by_hand(turns, note=spec.note or "by hand")
    job = ask_by_hand(actor, session, plan, wanted, tokens_read=read)
    return Compacted("queued", tokens_before=turns.range.tokens, job=job)


def _turns(planning: Planning, planned: Planned) -> TurnsAhead:
    record = planned.record
    return turns_between(record, closed_turns(planning.log), record.packet_through)


def _tokens_read(planning: Planning, turns: TurnsAhead) -> int:
    log = planning.log
    store = packet_store(log, planning.undone)
    base = first_kept(log, store.shorter(turns.range.first, turns.range.below - 1))
    return tokens_read(turns, closed_turns(log), base)


def _stored(log: SessionLog, sequence: int | None) -> EventRecord | None:
    return log.events(after=EventSeq(sequence - 1), limit=1)[0] if sequence is not None else None


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
