"""Who gives up tokens under pressure, in which order and how far (frozen-prefix spec, Yield order; design 6).

A yield that changes bytes already sent is made in one pass down to a low-water mark and written to the ledger before the
request is built; the floors it sets only rise. Everything here is arithmetic over the index: no content is read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ctxengine.engine.budget.arithmetic import Frame
from ctxengine.engine.budget.classes import BudgetClass
from ctxengine.engine.budget.policy import BudgetPolicy
from ctxengine.engine.errors import BudgetExceeded
from ctxengine.engine.history.suffix import largest_suffix, suffix_tokens
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.manifest import YieldStep
from ctxengine.engine.ports import SumColumn, UnitIndex, UnitSums


@dataclass(frozen=True, slots=True)
class Floors:
    """How far yields have gone in a session; sequences, 0 for not at all."""

    cut: EventSeq = EventSeq(0)
    """History starts here or later."""
    pointer: EventSeq = EventSeq(0)
    """Results of units before this one stand as pointers."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What a step wants, apart from carried history; all in tokens."""

    active: int
    """Completed exchanges of the open run, in normal form, opaque reasoning included."""
    user_input: int
    runtime: int
    working_state: int = 0
    skills: int = 0
    """Loaded skill bodies: a body never yields, its load fails instead."""
    corrections: int = 0
    knowledge: Sequence[int] = ()
    """Passages, best first; each stays whole or goes."""
    recall: Sequence[int] = ()
    """Lines, best first."""
    omission: int = 0
    """What the line that stands for left-out history costs."""
    row_nine: int = 0
    """What the summaries cost that stand before the present cut."""
    summary: int = 0
    """What the summary of a further cut may cost."""
    pinned: int = 0
    """Units before the cut that an operator wants whole."""
    newest: EventSeq = EventSeq(0)
    """Where the open run's newest results stand: the last to be shortened (0: there are none)."""

    @property
    def never_yield(self) -> int:
        """What cannot be given up."""
        placed = self.active + self.user_input + self.runtime
        return placed + self.working_state + self.skills + self.corrections + self.pinned

    def omission_beside(self, history: UnitSums) -> int:
        """What the line costs that would stand for this history: nothing where there is none."""
        return self.omission + self.row_nine if history.index else 0


@dataclass(frozen=True, slots=True)
class Raise:
    """A floor that rises: one `context.yield.applied` event."""

    budget_class: BudgetClass
    floor: EventSeq
    before: int
    after: int
    items: int
    floor_before: EventSeq = EventSeq(0)
    """Where the floor stood."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """The outcome: where history starts, what stays of the fresh rows, which floors must rise first."""

    floors: Floors
    active_pointer: EventSeq
    """Results of the open run's units before this one stand as pointers (0: none)."""
    knowledge_kept: int
    recall_kept: int
    room: int
    never_yield: int
    fresh: int
    history: int
    uncut: int
    yields: tuple[YieldStep, ...]
    raises: tuple[Raise, ...]

    @property
    def under_pressure(self) -> bool:
        """Whether any step of the ladder ran."""
        return any(step.outcome == "ran" for step in self.yields)


def allocate(
    *,
    fixed: Frame,
    policy: BudgetPolicy,
    demand: Demand,
    floors: Floors,
    index: UnitIndex,
    boundary: EventSeq,
    head: EventSeq,
) -> Allocation:
    """Decide who gets what.

    Args:
        boundary: the open run's seed; history lies strictly below.
        head: one past the newest event; the open run's units lie in [boundary, head).

    Raises:
        BudgetExceeded: what never yields does not fit even with the open run's own results as pointers.
    """
    run = _fit_active(fixed, policy, demand, floors, index, boundary, head)
    # Recall's floor holds against history, not against what never yields.
    line = demand.omission_beside(index.at(boundary))
    held = min(policy.recall_floor, fixed.body - run.never_yield - line)
    knowledge = _within_cap(demand.knowledge, policy, BudgetClass.KNOWLEDGE)
    recall = _within_cap(demand.recall, policy, BudgetClass.RECALL)
    ladder = _Ladder(fixed, policy, index, boundary, run.floors, run.never_yield, demand)
    knowledge_step = ladder.drop_fresh(BudgetClass.KNOWLEDGE, knowledge, recall, keep=0)
    knowledge = knowledge[: knowledge_step.kept]
    recall_step = ladder.drop_fresh(
        BudgetClass.RECALL, recall, knowledge, keep=_floor_count(recall, held)
    )
    recall = recall[: recall_step.kept]
    fresh = sum(knowledge) + sum(recall)
    result_step, result_raise = ladder.point_results(fresh)
    if run.raised is not None and run.step is not None:
        # The run's own pass stands behind all carried results, so it has shortened them as well.
        result_step, result_raise = run.step, run.raised
    history_step, history_raise = ladder.cut_history(fresh)
    return Allocation(
        floors=ladder.floors,
        active_pointer=run.floors.pointer if run.floors.pointer > boundary else EventSeq(0),
        knowledge_kept=len(knowledge),
        recall_kept=len(recall),
        room=ladder.room(fresh),
        never_yield=run.never_yield,
        fresh=fresh,
        history=ladder.history(),
        uncut=index.at(boundary).tokens,
        yields=(knowledge_step.step, recall_step.step, result_step, history_step),
        raises=tuple(entry for entry in (result_raise, history_raise) if entry is not None),
    )


@dataclass(frozen=True, slots=True)
class _FreshStep:
    step: YieldStep
    kept: int


class _Ladder:
    """The four steps over one step's figures; `floors` rises as they run."""

    def __init__(
        self,
        fixed: Frame,
        policy: BudgetPolicy,
        index: UnitIndex,
        boundary: EventSeq,
        floors: Floors,
        never_yield: int,
        demand: Demand,
    ) -> None:
        self.fixed = fixed
        self.policy = policy
        self.index = index
        self.boundary = boundary
        self.floors = floors
        self.never_yield = never_yield
        self.omission = demand.omission
        self.summary = demand.summary
        self._row_nine = demand.row_nine
        self._cut_before = floors.cut
        self.rewriting = False

    def room(self, fresh: int) -> int:
        return max(0, self.fixed.body - self.never_yield - fresh - self._omission_cost())

    def _omission_cost(self) -> int:
        if self.floors.cut <= 0:
            return 0
        further = self.summary if self.floors.cut != self._cut_before else 0
        return self.omission + self._row_nine + further

    def history(self) -> int:
        return suffix_tokens(
            self.index,
            cut=self.floors.cut,
            boundary=self.boundary,
            pointer_floor=self.floors.pointer,
        )

    def target(self, fresh: int, beside: int = 0) -> int:
        """How much history one pass leaves, with room kept for what will stand `beside` it."""
        room = max(0, self.room(fresh) - beside)
        if self.policy.low_water >= 1.0:
            return room
        return min(room, max(math.floor(room * self.policy.low_water), self.policy.history_floor))

    def excess(self, fresh: int) -> int:
        return self.history() - self.room(fresh)

    def drop_fresh(
        self, name: BudgetClass, entries: Sequence[int], others: Sequence[int], *, keep: int
    ) -> _FreshStep:
        """Give up the lowest-ranked entries of a fresh row, no more than the excess asks for."""
        kept = len(entries)
        before = sum(entries)
        while kept > keep and self.excess(sum(entries[:kept]) + sum(others)) > 0:
            kept -= 1
        after = sum(entries[:kept])
        pressed = self.excess(before + sum(others)) > 0
        return _FreshStep(_step(name, pressed, before, after, len(entries) - kept), kept)

    def point_results(self, fresh: int) -> tuple[YieldStep, Raise | None]:
        """Turn carried tool results into pointers, oldest first."""
        end = self.index.at(self.boundary)
        start = self.index.at(min(self.boundary, max(self.floors.cut, self.floors.pointer)))
        before = end.result_tokens - start.result_tokens
        if self.excess(fresh) <= 0:
            return _step(BudgetClass.TOOL_RESULTS, False, before, before, 0), None
        allowed = self.fixed.tool_results_cap
        if before <= allowed:
            return _step(BudgetClass.TOOL_RESULTS, True, before, before, 0), None
        needed = self.history() - self.target(fresh)
        by_need = self.index.first(SumColumn.SAVED, start.saved_tokens + needed, self.boundary)
        by_cap = self.index.first(SumColumn.RESULTS, end.result_tokens - allowed, self.boundary)
        place = by_need if by_need.index <= by_cap.index else by_cap
        if place.saved_tokens <= start.saved_tokens:
            return _step(BudgetClass.TOOL_RESULTS, True, before, before, 0), None
        history_before = self.history()
        self.rewriting = True
        self.floors = Floors(cut=self.floors.cut, pointer=place.sequence)
        after = end.result_tokens - place.result_tokens
        count = place.index - start.index
        raised = Raise(
            BudgetClass.TOOL_RESULTS, place.sequence, history_before, self.history(), count
        )
        return _step(BudgetClass.TOOL_RESULTS, True, before, after, count), raised

    def cut_history(self, fresh: int) -> tuple[YieldStep, Raise | None]:
        """Move the cut: the last step, down to the low-water mark."""
        before = self.history()
        # A pass that rewrites bytes goes down to the mark at once: the next steps then only append.
        passing = self.rewriting and before > self.target(fresh)
        if self.excess(fresh) <= 0 and not passing:
            return _step(BudgetClass.HISTORY, False, before, before, 0), None
        first_cut = self.floors.cut == 0
        tokens = self.target(fresh, self.summary) - (self.omission if first_cut else 0)
        start = self.index.at(self.floors.cut)
        place = largest_suffix(
            self.index,
            floor=self.floors.cut,
            boundary=self.boundary,
            tokens=max(0, tokens),
            pointer_floor=self.floors.pointer,
        )
        self.floors = Floors(cut=place.sequence, pointer=self.floors.pointer)
        after = self.history()
        count = place.index - start.index
        raised = Raise(BudgetClass.HISTORY, place.sequence, before, after, count, self._cut_before)
        return _step(BudgetClass.HISTORY, True, before, after, count), raised


def _step(name: BudgetClass, pressed: bool, before: int, after: int, items: int) -> YieldStep:
    outcome = "not_needed" if not pressed else ("ran" if items else "nothing_to_give")
    return YieldStep(
        budget_class=name.value,
        outcome=outcome,
        tokens_before=before,
        tokens_after=after,
        items=items,
    )


def _within_cap(entries: Sequence[int], policy: BudgetPolicy, name: BudgetClass) -> tuple[int, ...]:
    cap = policy.cap(name)
    kept: list[int] = []
    for tokens in entries[: cap.items] if cap.items is not None else entries:
        if cap.tokens is not None and sum(kept) + tokens > cap.tokens:
            break
        kept.append(tokens)
    return tuple(kept)


def _floor_count(entries: Sequence[int], floor_tokens: int) -> int:
    """How many of the best lines fit recall's floor."""
    total = 0
    for count, tokens in enumerate(entries):
        total += tokens
        if total > floor_tokens:
            return count
    return len(entries)


@dataclass(frozen=True, slots=True)
class _ActiveFit:
    floors: Floors
    never_yield: int
    step: YieldStep | None = None
    raised: Raise | None = None


def _fit_active(
    fixed: Frame,
    policy: BudgetPolicy,
    demand: Demand,
    floors: Floors,
    index: UnitIndex,
    boundary: EventSeq,
    head: EventSeq,
) -> _ActiveFit:
    """Room for what never yields; the open run's own results may shrink to pointers, oldest first.

    Like every yield that changes bytes already sent it is one pass with a floor. The pass spares the newest results as long
    as what is needed can be had without them.
    """
    start, end = index.at(boundary), index.at(head)
    inside = index.at(min(max(floors.pointer, boundary), head))
    never_yield = demand.never_yield - (inside.saved_tokens - start.saved_tokens)
    # Where history does not fit beside the run, the line that says so must.
    history = suffix_tokens(index, cut=floors.cut, boundary=boundary, pointer_floor=floors.pointer)
    uncut = floors.cut == 0 and never_yield + history <= fixed.body
    line = 0 if uncut else demand.omission_beside(start)
    excess = never_yield + line - fixed.body
    if excess <= 0:
        return _ActiveFit(floors, never_yield)
    saveable = end.saved_tokens - inside.saved_tokens
    if saveable < excess:
        alone = demand.user_input > fixed.body
        raise BudgetExceeded(
            BudgetClass.USER_INPUT.value if alone else "never_yield",
            demand.user_input if alone else never_yield + line - saveable,
            max(0, fixed.body),
            "Shorten the message, end the run, or route the session to a model with a larger window.",
        )
    place = index.first(SumColumn.SAVED, inside.saved_tokens + excess, head)
    if policy.low_water < 1.0:
        active = demand.active - (demand.never_yield - never_yield)
        room = fixed.body - line - (never_yield - active)
        mark = inside.saved_tokens + active - math.floor(room * policy.low_water)
        marked = index.first(SumColumn.SAVED, mark, min(head, max(demand.newest, boundary)))
        place = max(place, marked, key=lambda found: found.index)
    # Results of history stand before those of the run and are shortened with them.
    since = index.at(max(floors.cut, floors.pointer))
    before, after = end.result_tokens - since.result_tokens, end.result_tokens - place.result_tokens
    count = place.index - since.index
    saved = place.saved_tokens - inside.saved_tokens
    return _ActiveFit(
        Floors(floors.cut, place.sequence),
        never_yield - saved,
        _step(BudgetClass.TOOL_RESULTS, True, before, after, count),
        Raise(BudgetClass.TOOL_RESULTS, place.sequence, never_yield, never_yield - saved, count),
    )
