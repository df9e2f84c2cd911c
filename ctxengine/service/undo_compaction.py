"""Undoing a compaction: what it replaced is history again, byte for byte (design 8; field note 28)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from django.db import transaction

from ctxengine.engine.boundary.checkpoint import Checkpoint, made_checkpoints
from ctxengine.engine.budget.policy import BudgetPolicy
from ctxengine.engine.compaction.acts import BOUNDARY_KINDS, HistoryActs
from ctxengine.engine.compaction.net_cost import NetCost, net_cost
from ctxengine.engine.compaction.packet import PACKET_REASON
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.history.working_set_packets import in_reserve, undone_with
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.legs.leg import ONE
from ctxengine.engine.log.records import EventRecord
from ctxengine.engine.standing import history_acts
from ctxengine.engine.step import fixed_frame
from ctxengine.engine.trust.levels import Trust
from ctxengine.engine.trust.model_view import model_view
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import SessionRow
from ctxengine.service.access import not_found, plan_row_of, session_of, still_open_session
from ctxengine.service.audit import record_audit
from ctxengine.service.bound_reasoning import (
    counted,
    drop_reasoning,
    open_run,
    reasoning_at_stake,
)
from ctxengine.service.clock import utc_now
from ctxengine.service.cost_model import cost_model_of
from ctxengine.service.races import redo_once
from ctxengine.service.refusals import refusing
from ctxengine.service.specs import Actor, ServiceError, UndoCompaction
from ctxengine.service.wiring import log_of, plan_from


def undo_compaction(*, actor: Actor, session_id: UUID, event: int, spec: UndoCompaction) -> int:
    """Take a compaction back; gives the event that did it. Undoing it again changes nothing.

    Raises:
        ServiceError: 404 when that event is no compaction; 409 `compaction_merged` or `compaction_covered` when another one
            rests on it and must be undone first; 409 `session_ended`.
    """
    session = session_of(actor, session_id)
    return redo_once(lambda: _undo(actor, session, event, spec))


def _undo(actor: Actor, session: SessionRow, event: int, spec: UndoCompaction) -> int:
    log = log_of(session)
    with refusing():
        head = log.head()
        still_open_session(session)
        made = _compaction(log, event)
        acts = history_acts(log)
        if event in acts.undone:
            return _undoing(log, event)
        later = log.latest({EventType.COMPACTED}, after=EventSeq(event))
        bar = undo_bar(
            acts, made_checkpoints(log), made, compactions=later, named=named_packet(log)
        )
        if bar is not None:
            raise ServiceError(bar.code, 409, bar.says, first=bar.first)
        draft = EventDraft(
            type=EventType.COMPACTION_UNDONE,
            trust=Trust.PLATFORM,
            payload={
                "compaction": event,
                "came_with": list(made.payload["came_with"]),
                "note": model_view(spec.note),
                "verdict": undoing_cost(session, log, made).model_dump(),
            },
        )
        run = open_run(session)
        at_stake = reasoning_at_stake(run, session.model) and packets_undone_with(log, made) != ()
        with transaction.atomic():
            log.lock()
            dropped = drop_reasoning(run) if at_stake else 0
            log.append(
                counted([draft], dropped),
                expected=head.sequence,
                at=utc_now(),
                key=actor.idempotency_key,
            )
            record_audit(
                actor=actor,
                action="compaction.undone",
                target=f"{log.session}:{event}",
                reason=spec.note,
                before={"tokens": made.payload["tokens_after"]},
                after={"tokens": made.payload["tokens_before"]},
            )
    return head.sequence + 1


def packets_undone_with(log: PostgresLog, made: EventRecord) -> tuple[int, ...] | None:
    """See `undone_with`; None for a compaction that is no packet."""
    if made.payload["reason"] != PACKET_REASON:
        return None
    return undone_with(log, made, history_acts(log).undone)


def undoing_cost(session: SessionRow, log: PostgresLog, made: EventRecord) -> NetCost:
    """What undoing a compaction takes: its tokens come back in each later request, and history behind them is re-cached.

    No request holds more behind its prefix than the window leaves: neither figure goes beyond that.
    """
    row = plan_row_of(session)
    payload, head = made.payload, log.head()
    run = open_run(session)
    factor = (run.settings if run else {}).get("factor_millionths", ONE)
    room = max(0, fixed_frame(plan_from(log, row), factor).body)
    behind = head.tokens - log.at(EventSeq(payload["first_sequence"])).tokens
    after = payload["tokens_after"]
    shown = packets_undone_with(log, made) != ()
    return net_cost(
        saved_tokens=after - max(min(payload["tokens_before"], room), after) if shown else 0,
        recached_tokens=min(max(0, behind), room) if shown else 0,
        expected_steps=BudgetPolicy.model_validate(row.policy).expected_steps,
        forced_by="operator",
        prices=cost_model_of(row),
        prompt_tokens=row.prefix_tokens + min(head.tokens, room),
    )


def _compaction(log: PostgresLog, event: int) -> EventRecord:
    found = log.events(after=EventSeq(event - 1), limit=1) if event > 0 else ()
    if not found or found[0].sequence != event or found[0].type is not EventType.COMPACTED:
        raise not_found("compaction")
    return found[0]


def _undoing(log: PostgresLog, event: int) -> int:
    for undoing in log.latest({EventType.COMPACTION_UNDONE}):
        if event in {undoing.payload["compaction"], *undoing.payload["came_with"]}:
            return undoing.sequence
    raise not_found("compaction")


def named_packet(log: PostgresLog) -> int | None:
    """The packet that the newest plan of a session shows."""
    newest = log.newest(EventType.WORKING_SET_PLANNED)
    return newest.payload["packet"] if newest is not None else None


class UndoBar(NamedTuple):
    """What must be undone before a compaction can be."""

    code: str
    says: str
    first: int
    """The event of that other one."""


def undo_bar(
    acts: HistoryActs,
    checkpoints: Sequence[Checkpoint],
    made: EventRecord,
    *,
    compactions: Sequence[EventRecord] = (),
    named: int | None = None,
) -> UndoBar | None:
    """Why a compaction cannot be undone now, though it stands; None where it can.

    Args:
        checkpoints: those of the session that nobody has undone, newest first.
        compactions: the session's, those made later at least, newest first.
        named: the packet of the newest plan.
    """
    if made.payload["kind"] in BOUNDARY_KINDS:
        return _rested_on(checkpoints, made)
    return _covered(acts, made) or _replaced(compactions, acts, made, named)


def _replaced(
    compactions: Sequence[EventRecord], acts: HistoryActs, made: EventRecord, named: int | None
) -> UndoBar | None:
    """A packet can be undone while no newer one over the same turns stands, but in reserve: that one would go with it."""
    if made.payload["reason"] != PACKET_REASON:
        return None
    told = ("reason", "first_sequence", "replaced_through_sequence")
    for other in compactions:
        if other.sequence <= made.sequence:
            return None
        same = all(other.payload[name] == made.payload[name] for name in told)
        stands = other.sequence == named or not in_reserve(other, [made])
        if same and stands and other.sequence not in acts.undone:
            says = f"Compaction {other.sequence} was made over the same turns later; undo that one first."
            return UndoBar("compaction_covered", says, int(other.sequence))
    return None


def _rested_on(checkpoints: Sequence[Checkpoint], made: EventRecord) -> UndoBar | None:
    """A checkpoint can be undone while no later one rests on it."""
    later = [int(point.sequence) for point in checkpoints if point.sequence > made.sequence]
    if not later:
        return None
    says = f"Checkpoint {later[0]} rests on this one; undo that one first."
    return UndoBar("compaction_covered", says, later[0])


def _covered(acts: HistoryActs, made: EventRecord) -> UndoBar | None:
    """A compaction can be undone while nothing was built on it: no merge, no later cut."""
    for other in acts.compactions:
        if made.sequence in other.payload["merges"]:
            says = (
                f"Compaction {made.sequence} was merged into {other.sequence}; undo that one first."
            )
            return UndoBar("compaction_merged", says, int(other.sequence))
    later = [
        int(other.sequence)
        for other in acts.compactions
        if other.payload["first_sequence"] > made.payload["replaced_through_sequence"]
    ]
    if not later or made.payload["merges"]:
        return None
    says = f"Compaction {later[-1]} covers what came after it; undo that one first."
    return UndoBar("compaction_covered", says, later[-1])
