"""Planning the working set of a run: from profile, closed turns and directive to the recorded plan (spec 4; design 7.16).

Pure: the log is read, nothing is written. The stable history comes from the ledger and the profile alone; the directive decides
nothing but which turns are promoted behind it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

from ctxengine.engine.budget.arithmetic import Frame
from ctxengine.engine.budget.policy import BudgetPolicy
from ctxengine.engine.capacity.profile import CapacityProfile
from ctxengine.engine.compaction.acts import Marks
from ctxengine.engine.compaction.packet import FRAME_TOKENS, CompactionResult
from ctxengine.engine.compaction.soundness import Refusal
from ctxengine.engine.compaction.summarise import Range, Surroundings
from ctxengine.engine.event_types import ERASURES
from ctxengine.engine.events import EventType
from ctxengine.engine.history.handoff import Handoff, newest_handoff
from ctxengine.engine.history.projection import PROMOTED_TURNS_TEXT
from ctxengine.engine.history.turn_costs import TurnCost
from ctxengine.engine.history.working_set import (
    BATCH_TURNS,
    Before,
    WorkingSet,
    plan_working_set,
)
from ctxengine.engine.history.working_set_packet_text import PacketGround, write_packet
from ctxengine.engine.history.working_set_packets import (
    PacketStore,
    first_kept,
    first_readable,
    packet_store,
)
from ctxengine.engine.history.working_set_record import (
    PlannedSet,
    PlanReason,
    ProfileUsed,
    in_thousandths,
    planned_of,
    stretches_of,
)
from ctxengine.engine.history.working_set_rewritten import rewritten_by
from ctxengine.engine.history.working_set_room import RoomFigures, room_of, with_room
from ctxengine.engine.history.working_set_sent import (
    LATELY,
    SENT_ROOM,
    SentTurns,
    holds_sent_turns,
    plan_to_continue,
    pressed_last,
    sent_turns,
    tokens_as_sent,
)
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.log.records import EventRecord
from ctxengine.engine.ports import SessionLog, TokenCounter
from ctxengine.engine.turns.closed import ClosedTurns, closed_turns
from ctxengine.engine.turns.relevance import Values

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
    newest = log.newest(EventType.WORKING_SET_PLANNED)
    # Turns in the packet of the plan before stay there, but for one that is promoted or a plan that begins anew.
    costs = closed.costs_from(newest.payload["packet_through"] + 1 if newest is not None else 1)
    handoff = newest_handoff(log)
    figures, event = _figures(planning, costs, handoff, wish)
    chosen, event, found = _chosen(planning, closed, costs, event, figures, handoff, wish)
    newest = pressed_last(log, event) if wish.reason is PlanReason.START else None
    if newest is not None and event is not None and not _holds(chosen, event):
        # The forms before the heavy turn fit no more: what was sent last is gone on from, so that not all is written twice.
        chosen, event, found = _chosen(planning, closed, costs, newest, figures, handoff, wish)
    standing = set(chosen.sent)
    record = _record(planning, wish, chosen, costs, figures, handoff)
    record = record.showing({t.number: t.promoted for t in found.turns if t.number in standing})
    record = record.model_copy(update={"gone": _gone(log, closed, event, record)})
    covered = _covered(planning, record, costs, wish.next_sequence)
    record = covered.record
    return Planned(
        record.model_copy(update={"rewritten": rewritten_by(log, record, costs)}),
        covered.packet,
    )


def _chosen(
    planning: Planning,
    closed: ClosedTurns,
    costs: Sequence[TurnCost],
    event: EventRecord | None,
    figures: RoomFigures,
    handoff: Handoff | None,
    wish: Wish,
) -> tuple[WorkingSet, EventRecord | None, SentTurns]:
    """The forms, the plan that they go on from, and the turns that stood as sent under it."""
    behind = handoff.turns if handoff else 0
    by_hand = _pinned_turns(costs, planning.marks)
    lately = costs[max(behind, len(costs) - LATELY) :]
    event, found = _to_continue(planning, closed, lately, event, figures, wish)
    if event is not None:
        # Before the plan: what stands in front of a turn that is dropped has to find its place in it.
        full_from = event.payload["full_from"]
        found = found.without_naming([number for number in by_hand if number < full_from])
    chosen = plan_working_set(
        costs,
        figures.room,
        wish.values,
        by_hand=by_hand,
        behind=behind,
        before=_before(planning, closed, event, found),
    )
    if wish.reason is not PlanReason.START:
        chosen = _without_new(chosen, costs, (*wish.keep, *by_hand))
    return chosen, event, found


def _holds(chosen: WorkingSet, event: EventRecord) -> bool:
    """Whether all turns keep the forms of the plan before."""
    told = event.payload
    return (chosen.packet_through, chosen.full_from) == (told["packet_through"], told["full_from"])


def _to_continue(
    planning: Planning,
    closed: ClosedTurns,
    costs: Sequence[TurnCost],
    event: EventRecord | None,
    figures: RoomFigures,
    wish: Wish,
) -> tuple[EventRecord | None, SentTurns]:
    """The plan whose forms hold on, and the turns that stand as sent under it; none in a room too small for such turns.

    Args:
        costs: of the newest turns behind a reset.
    """
    if event is None:
        return None, SentTurns()
    large = holds_sent_turns(figures.tokens, costs)
    taken = large and wish.reason in (PlanReason.START, PlanReason.LEG)
    sent = sent_turns(planning.log, closed, event, take=taken)
    return (event, sent) if large or sent.turns else (None, SentTurns())


def _before(
    planning: Planning, closed: ClosedTurns, event: EventRecord | None, sent: SentTurns
) -> Before | None:
    if event is None:
        return None
    told = planned_of(event.payload)
    line = planning.counter.text(PROMOTED_TURNS_TEXT)
    return Before(
        told.packet_through,
        told.full_from,
        told.card_blocks or tuple(range(told.full_from - 1, told.packet_through, -1)[:1]),
        told.room.tokens,
        {t.number: tokens_as_sent(t, closed, line_tokens=line) for t in sent.turns},
        frozenset(stretch.number for turn in sent.turns for stretch in turn.promoted),
        sent.named,
    )


def _figures(
    planning: Planning, costs: Sequence[TurnCost], handoff: Handoff | None, wish: Wish
) -> tuple[RoomFigures, EventRecord | None]:
    """The arithmetic of the plan, and the event of the one whose forms may hold on."""
    behind = handoff.turns if handoff else 0
    count = len(costs) - behind
    end = behind + count - count % BATCH_TURNS
    before = costs[max(behind, end - 2 * BATCH_TURNS) : end]
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


def _gone(
    log: SessionLog, closed: ClosedTurns, before: EventRecord | None, record: PlannedSet
) -> tuple[int, ...]:
    """Card turns whose card was erased before the plan was made; cards are looked at where there is anything new to see."""
    numbers = _card_turns(record)
    if before is not None and _card_turns(planned_of(before.payload)) == numbers:
        erasures = (log.newest(kind) for kind in ERASURES)
        if all(erased is None or erased.sequence < before.sequence for erased in erasures):
            return tuple(before.payload["gone"])
    bodies = {n: e.body.id for n in numbers if (e := closed.event(n)) is not None and e.body}
    texts = log.texts(bodies.values()) if numbers else {}
    return tuple(n for n in numbers if n not in bodies or texts.get(bodies[n]) is None)


def _card_turns(record: PlannedSet) -> range:
    return range(max(record.behind, record.packet_through) + 1, record.full_from)


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
    kept = first_kept(planning.log, store.longest(first, through, record.room.packet))
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
    ground = PacketGround(
        planning.log,
        Range(
            EventSeq(first),
            EventSeq(record.told_last + 1),
            sum(turn.full for turn in covered),
        ),
        first_readable(planning.log, _to_grow_from(store, first, record.told_last)),
        planning.surroundings,
        planning.counter,
        frozenset(planning.marks.excluded),
    )
    return write_packet(ground, budget_tokens=record.room.packet)


def _to_grow_from(store: PacketStore, first: int, through: int) -> Sequence[EventRecord]:
    """Packets whose material may be taken over, the best first: one of just this range that a model's prose makes too large."""
    return [*store.to_refit(first, through), *store.shorter(first, through)]


def _standing(
    record: PlannedSet, sequence: int, last: int, costs: Sequence[TurnCost]
) -> PlannedSet:
    """The plan with a packet that reaches up to the event `last`."""
    return record.model_copy(
        update={
            "packet": int(sequence),
            "packet_last": last,
            "packet_turn": bisect_right(costs, last, key=attrgetter("last")),
        }
    )
