"""Planning the working set of a run: from profile, closed turns and directive to the recorded plan (spec 4; design 7.16).

Pure: the log is read, nothing is written. The stable history comes from the ledger and the profile alone; the directive decides
nothing but which turns are promoted behind it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ctxengine.engine.budget.arithmetic import Frame
from ctxengine.engine.budget.policy import BudgetPolicy
from ctxengine.engine.capacity.profile import CapacityProfile
from ctxengine.engine.compaction.acts import Marks
from ctxengine.engine.compaction.packet import FRAME_TOKENS, CompactionResult
from ctxengine.engine.compaction.soundness import Refusal
from ctxengine.engine.compaction.summarise import Range, Surroundings
from ctxengine.engine.events import EventType
from ctxengine.engine.history.handoff import Handoff, newest_handoff
from ctxengine.engine.history.projection import PROMOTED_TURNS_TEXT
from ctxengine.engine.history.working_set import (
    BATCH_TURNS,
    Before,
    TurnCost,
    WorkingSet,
    plan_working_set,
)
from ctxengine.engine.history.working_set_packets import (
    PacketStore,
    first_kept,
    first_readable,
    packet_store,
    write_packet,
)
from ctxengine.engine.history.working_set_record import (
    PlannedSet,
    PlanReason,
    ProfileUsed,
    in_thousandths,
    planned_of,
    stretches_of,
)
from ctxengine.engine.history.working_set_room import RoomFigures, room_of, with_room
from ctxengine.engine.history.working_set_sent import (
    SENT_ROOM,
    SentTurns,
    holds_sent_turns,
    plan_to_continue,
    sent_turns,
)
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.log.records import EventRecord
from ctxengine.engine.ports import SessionLog, TokenCounter
from ctxengine.engine.turns.closed import ClosedTurns, cards_of, closed_turns
from ctxengine.engine.turns.relevance import Values

_LOOKED_AT = 8
"""Newest plans among which the one is looked for that the newest request was built under."""
TAKEN_BACK = "taken_back"
"""Why no packet is made of a range: an operator undid the one over it, and none was made by hand since."""


@dataclass(frozen=True, slots=True)
class Planning:
    """What a plan rests on beside the directive."""

    log: SessionLog
    counter: TokenCounter
    policy: BudgetPolicy
    fixed: Frame
    """The plan's budget under the factor of the run."""
    profile: CapacityProfile
    profile_id: str | None = None
    skills: bool = False
    """Whether the plan has skills that can be loaded."""
    marks: Marks = field(default_factory=Marks)
    undone: Collection[int] = frozenset()
    """Compactions an operator took back."""
    surroundings: Surroundings | None = None
    """What a packet must know beside its range; None where the policy wants none."""
    by_hand: bool = False
    """Whether somebody asks for the packet itself: then an undoing does not stand in its way."""


class Wish(NamedTuple):
    """What is to be planned."""

    reason: PlanReason
    boundary: int
    """The run's own message: history lies below."""
    values: Mapping[int, Values]
    """Of each closed turn, for the run's directive."""
    next_sequence: int
    """Place of the first event that the plan brings along."""
    open_turn: int = 0
    """What the open turn takes already."""
    most: int | None = None
    """Tokens for closed turns, where it is known what is left beside the open turn as it stands."""
    keep: tuple[int, ...] = ()
    """Turns promoted so far: a plan made inside a run promotes no other."""
    request: str = ""
    """The request that did not fit."""


class Planned(NamedTuple):
    """A plan, and the packet it brings along where it needs a new one."""

    record: PlannedSet
    packet: CompactionResult | None = None


def plan_run(planning: Planning, wish: Wish) -> Planned:
    """Plan one run, or replan it."""
    log = planning.log
    closed = closed_turns(log)
    costs = closed.costs
    handoff = newest_handoff(log)
    figures, event = _figures(planning, costs, handoff, wish)
    by_hand = _pinned_turns(costs, planning.marks)
    event, found = _to_continue(planning, closed, event, figures, handoff, wish)
    if event is not None:
        # Before the plan: what stands in front of a turn that is dropped has to find its place in it.
        full_from = event.payload["full_from"]
        found = found.without_naming([number for number in by_hand if number < full_from])
    chosen = plan_working_set(
        costs,
        figures.room,
        wish.values,
        by_hand=by_hand,
        behind=handoff.turns if handoff else 0,
        before=_before(event, found),
    )
    if wish.reason is not PlanReason.START:
        chosen = _without_new(chosen, costs, (*wish.keep, *by_hand))
    sent = tuple(turn for turn in found.turns if turn.number in chosen.sent)
    record = _record(planning, wish, chosen, costs, figures, handoff)
    record = record.model_copy(update={"sent": sent})
    record = record.model_copy(update={"gone": _gone(log, closed, record)})
    covered = _covered(planning, record, costs, wish.next_sequence)
    record = covered.record
    return Planned(
        record.model_copy(update={"rewritten": _rewritten(planning, record, costs)}),
        covered.packet,
    )


def _to_continue(
    planning: Planning,
    closed: ClosedTurns,
    event: EventRecord | None,
    figures: RoomFigures,
    handoff: Handoff | None,
    wish: Wish,
) -> tuple[EventRecord | None, SentTurns]:
    """The plan whose forms hold on, and the turns that stand as sent under it; none in a room too small for such turns."""
    if event is None:
        return None, SentTurns()
    large = holds_sent_turns(figures.tokens, closed.costs[handoff.turns if handoff else 0 :])
    taken = large and wish.reason in (PlanReason.START, PlanReason.LEG)
    line = planning.counter.text(PROMOTED_TURNS_TEXT)
    sent = sent_turns(planning.log, closed, event, take=taken, line_tokens=line)
    return (event, sent) if large or sent.turns else (None, SentTurns())


def _before(event: EventRecord | None, sent: SentTurns) -> Before | None:
    if event is None:
        return None
    told = planned_of(event.payload)
    return Before(
        told.packet_through,
        told.full_from,
        told.card_blocks or tuple(range(told.full_from - 1, told.packet_through, -1)[:1]),
        told.room.tokens,
        {turn.number: turn.tokens for turn in sent.turns},
        frozenset(stretch.number for turn in sent.turns for stretch in turn.promoted),
        sent.named,
    )


def _figures(
    planning: Planning, costs: Sequence[TurnCost], handoff: Handoff | None, wish: Wish
) -> tuple[RoomFigures, EventRecord | None]:
    """The arithmetic of the plan, and the event of the one whose forms may hold on."""
    behind = handoff.turns if handoff else 0
    count = len(costs) - behind
    before = costs[behind : behind + count - count % BATCH_TURNS]
    figures = _arithmetic(planning, before, wish)
    event = plan_to_continue(
        planning.log,
        reason=wish.reason,
        provider=planning.profile.provider,
        model=planning.profile.model,
        handoff=handoff.sequence if handoff else None,
        usable=figures.usable,
    )
    measured = planning.profile.usable * 1_000_000 // figures.factor_millionths
    # One heavy turn makes no small room of a large one: where turns stand as sent, they do as long as what turns take as a rule
    # leaves enough.
    large = event is not None and event.payload["room"]["tokens"] >= SENT_ROOM
    if (large or figures.tokens >= SENT_ROOM) and measured > figures.usable:
        # No form hangs on what a turn is expected to take, and what is too much gives way when it is: what is refused is the
        # window's business (design 7.3), so nothing is kept for turns that are larger than most.
        before = costs[behind:] if count < BATCH_TURNS else before
        typical = _arithmetic(planning, before, wish, typical=True)
        figures = typical if typical.tokens >= SENT_ROOM else figures
    left = figures.tokens if wish.most is None else wish.most
    if handoff is not None:
        left -= handoff.tokens + FRAME_TOKENS
    if left != figures.tokens:
        figures = with_room(figures, left, planning.policy)
    return figures, event


def _arithmetic(
    planning: Planning, before: Sequence[TurnCost], wish: Wish, *, typical: bool = False
) -> RoomFigures:
    return room_of(
        planning.profile,
        planning.fixed,
        planning.policy,
        turn_sizes=[turn.open for turn in before[-2 * BATCH_TURNS :]],
        skills=planning.skills,
        open_turn=wish.open_turn,
        typical=typical,
    )


def _pinned_turns(costs: Sequence[TurnCost], marks: Marks) -> tuple[int, ...]:
    if not marks.pinned:
        return ()
    return tuple(
        turn.number
        for turn in costs
        if any(turn.first <= sequence <= turn.last for sequence in marks.pinned)
    )


def _without_new(
    chosen: WorkingSet, costs: Sequence[TurnCost], kept: Collection[int]
) -> WorkingSet:
    """The plan without promotions that the run has not had from its start."""
    promoted = tuple(number for number in chosen.promoted if number in kept)
    dropped = sum(costs[n - 1].full for n in chosen.promoted if n not in kept)
    return chosen.model_copy(update={"promoted": promoted, "tokens": chosen.tokens - dropped})


def _record(
    planning: Planning,
    wish: Wish,
    chosen: WorkingSet,
    costs: Sequence[TurnCost],
    figures: RoomFigures,
    handoff: Handoff | None,
) -> PlannedSet:
    profile = planning.profile
    full = costs[chosen.full_from - 1 : chosen.full_from]
    through = chosen.packet_through
    return PlannedSet(
        version=chosen.version,
        reason=wish.reason,
        turns=chosen.turns,
        behind=chosen.behind,
        behind_through=handoff.through if handoff else 0,
        handoff=handoff.sequence if handoff else None,
        packet_through=through,
        told_last=costs[through - 1].last if through else 0,
        full_from=chosen.full_from,
        card_blocks=chosen.card_blocks,
        cut=full[0].first if full else wish.boundary,
        promoted=stretches_of(chosen, costs),
        by_hand=chosen.by_hand,
        unpinned=chosen.unpinned,
        batch=chosen.batch,
        replanned=chosen.replanned,
        values=in_thousandths(chosen.values),
        tokens=chosen.tokens,
        room=figures.model_copy(update={"packet": chosen.packet_tokens}) if through else figures,
        profile=ProfileUsed(
            id=planning.profile_id,
            provider=profile.provider,
            model=profile.model,
            source=profile.provenance.source,
            declared_window=profile.declared_window,
            verified_window=profile.verified_window,
            horizon=profile.horizon.tokens,
            confidence_thousandths=round(profile.horizon.confidence * 1000),
        ),
        request=wish.request,
    )


def _gone(log: SessionLog, closed: ClosedTurns, record: PlannedSet) -> tuple[int, ...]:
    """Card turns whose card was erased before the plan was made."""
    numbers = range(max(record.behind, record.packet_through) + 1, record.full_from)
    cards = cards_of(log, numbers, closed=closed) if numbers else ()
    return tuple(n for n, card in zip(numbers, cards, strict=True) if card is None)


# --- packets ----------------------------------------------------------------------------------------------------------


def _covered(
    planning: Planning, record: PlannedSet, costs: Sequence[TurnCost], next_sequence: int
) -> Planned:
    """The plan with the packet that stands for its range: a stored one, or one made now, or as far as one reaches."""
    if not record.packet_through:
        return Planned(record)
    store = packet_store(planning.log, planning.undone)
    first, through = costs[record.behind].first, record.told_last
    stored = first_kept(planning.log, store.over(first, through, record.room.packet))
    if stored is not None:
        return Planned(_standing(record, stored.sequence, through, costs))
    refused = TAKEN_BACK
    if planning.by_hand or store.may_be_made(first, through):
        made = _made(planning, record, store, first, costs)
        if isinstance(made, CompactionResult):
            return Planned(_standing(record, next_sequence, through, costs), made)
        refused = made.value
    # Nothing that failed takes the place of what stood before (design 7.9): the longest packet stays, a line tells the rest.
    short = [
        event
        for event in store.shorter(first, through)
        if event.payload["tokens_after"] <= record.room.packet
    ]
    kept = first_kept(planning.log, short)
    record = record.model_copy(update={"refused": refused})
    if kept is None:
        return Planned(record)
    last = kept.payload["replaced_through_sequence"]
    return Planned(_standing(record, kept.sequence, last, costs))


def _made(
    planning: Planning,
    record: PlannedSet,
    store: PacketStore,
    first: int,
    costs: Sequence[TurnCost],
) -> CompactionResult | Refusal:
    if planning.surroundings is None:
        return Refusal.NO_SUMMARISER
    if not record.room.packet:
        return Refusal.NO_ROOM
    covered = costs[record.behind : record.packet_through]
    return write_packet(
        planning.log,
        Range(
            EventSeq(first),
            EventSeq(record.told_last + 1),
            sum(turn.full for turn in covered),
        ),
        first_readable(planning.log, store.shorter(first, record.told_last)),
        planning.surroundings,
        counter=planning.counter,
        budget_tokens=record.room.packet,
        excluded=frozenset(planning.marks.excluded),
    )


def _standing(
    record: PlannedSet, sequence: int, last: int, costs: Sequence[TurnCost]
) -> PlannedSet:
    """The plan with a packet that reaches up to the event `last`."""
    return record.model_copy(
        update={
            "packet": int(sequence),
            "packet_last": last,
            "packet_turn": max(turn.number for turn in costs if turn.last <= last),
        }
    )


# --- what it costs the cache --------------------------------------------------------------------------------------------


def _rewritten(planning: Planning, record: PlannedSet, costs: Sequence[TurnCost]) -> int:
    """Tokens of the stable history that the plan before this one showed in other bytes; 0 where it only grows."""
    event = _shown_last(planning.log)
    if event is None:
        return 0
    before = planned_of(event.payload)
    card_turns = (before.packet_through, before.full_from)
    same = (before.handoff, before.packet, before.packet_last) == (
        record.handoff,
        record.packet,
        record.packet_last,
    ) and card_turns == (record.packet_through, record.full_from)
    same = same and before.card_blocks == record.card_blocks
    same = same and before.sent == record.sent[: len(before.sent)]
    first_turn = before.turns == 0
    if same or first_turn:
        return 0
    return record.tokens - sum(costs[turn.number - 1].full for turn in record.promoted)


def _shown_last(log: SessionLog) -> EventRecord | None:
    """The newest plan that a request was built under: what is planned anew before any was costs nothing."""
    newest = log.newest(EventType.WORKING_SET_PLANNED)
    request = log.newest(EventType.REQUEST_STARTED)
    if newest is None or request is None or newest.sequence < request.sequence:
        return newest
    plans = log.latest({EventType.WORKING_SET_PLANNED}, limit=_LOOKED_AT)
    return next((event for event in plans if event.sequence < request.sequence), newest)
