"""Who gives up tokens under pressure, in which order and how far (frozen-prefix spec, Yield order; design 6).

A yield that changes bytes already sent is made in one pass down to a low-water mark and written to the ledger before the
request is built; the floors it sets only rise. Everything here is arithmetic over the index: no content is read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ctxengine.engine.budget.active import fit_active, yield_step
from ctxengine.engine.budget.arithmetic import Frame
from ctxengine.engine.budget.classes import BudgetClass
from ctxengine.engine.budget.demand import Demand, Floors, Raise
from ctxengine.engine.budget.policy import BudgetPolicy
from ctxengine.engine.errors import BudgetExceeded
from ctxengine.engine.history.suffix import largest_suffix, suffix_tokens
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.manifest import YieldStep
from ctxengine.engine.ports import SumColumn, UnitIndex

_LEAST_WINDOW = 60
"""A line of recall cut shorter than this tells nothing (tokens, envelope included)."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """The outcome: where history starts, what stays of the fresh rows, which floors must rise first."""

    floors: Floors
    active_pointer: EventSeq
    """Results of the open run's units before this one stand as pointers (0: none)."""
    knowledge_kept: int
    recall_kept: int
    """Lines of recall that stay."""
    room: int
    never_yield: int
    fresh: int
    history: int
    uncut: int
    yields: tuple[YieldStep, ...]
    raises: tuple[Raise, ...]
    recall_window: int = 0
    """Tokens the one line that stays of recall is cut to; 0: it is whole."""

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
        BudgetExceeded: what never yields does not fit even with the open run's own results as pointers; its `steps` say what
            would have been given up.
    """
    try:
        run = fit_active(fixed, policy, demand, floors, index, boundary, head)
    except BudgetExceeded as error:
        error.steps = _all_given_up(policy, demand, floors, index, boundary, head)
        raise
    # Recall's floor holds against history, not against what never yields.
    line = demand.omission_beside(index.at(boundary))
    held = min(policy.recall_floor, fixed.body - run.never_yield - line)
    knowledge = _within_cap(demand.knowledge, policy, BudgetClass.KNOWLEDGE)
    recall = _within_cap(demand.recall, policy, BudgetClass.RECALL)
    ladder = _Ladder(fixed, policy, index, boundary, run.floors, run.never_yield, demand)
    knowledge_step = ladder.drop_fresh(BudgetClass.KNOWLEDGE, knowledge, recall, keep=0)
    knowledge = knowledge[: knowledge_step.kept]
    recall_step, recall = ladder.trim_recall(recall, knowledge, held)
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
        recall_window=recall_step.window,
    )


@dataclass(frozen=True, slots=True)
class _FreshStep:
    step: YieldStep
    kept: int
    window: int = 0


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
        self.demand = demand
        self._cut_before = floors.cut
        self.rewriting = False

    def room(self, fresh: int) -> int:
        return max(0, self._left(fresh))

    def _left(self, fresh: int) -> int:
        """What is left for history; below zero where the fresh rows alone are too much."""
        return self.fixed.body - self.never_yield - fresh - self._omission_cost()

    def _omission_cost(self) -> int:
        if self.floors.cut <= 0:
            return 0
        return self.demand.told(further=self.floors.cut != self._cut_before)

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
        return self.history() - self._left(fresh)

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
        return _FreshStep(yield_step(name, pressed, before, after, len(entries) - kept), kept)

    def trim_recall(
        self, lines: Sequence[int], knowledge: Sequence[int], held: int
    ) -> tuple[_FreshStep, tuple[int, ...]]:
        """Drop the lowest-ranked lines down to the floor; where the best line alone is over it, that one is cut to it."""
        keep = _floor_count(lines, held)
        shortens = bool(lines) and keep == 0 and held >= _LEAST_WINDOW
        done = self.drop_fresh(BudgetClass.RECALL, lines, knowledge, keep=1 if shortens else keep)
        kept = tuple(lines[: done.kept])
        if not shortens or done.kept != 1 or self.excess(kept[0] + sum(knowledge)) <= 0:
            return done, kept
        step = yield_step(BudgetClass.RECALL, True, sum(lines), held, len(lines))
        return _FreshStep(step, 1, held), (held,)

    def point_results(self, fresh: int) -> tuple[YieldStep, Raise | None]:
        """Turn carried tool results into pointers, oldest first."""
        end = self.index.at(self.boundary)
        start = self.index.at(min(self.boundary, max(self.floors.cut, self.floors.pointer)))
        before = end.result_tokens - start.result_tokens
        if self.excess(fresh) <= 0:
            return yield_step(BudgetClass.TOOL_RESULTS, False, before, before, 0), None
        allowed = self.fixed.tool_results_cap
        if before <= allowed:
            return yield_step(BudgetClass.TOOL_RESULTS, True, before, before, 0), None
        needed = self.history() - self.target(fresh)
        by_need = self.index.first(SumColumn.SAVED, start.saved_tokens + needed, self.boundary)
        by_cap = self.index.first(SumColumn.RESULTS, end.result_tokens - allowed, self.boundary)
        place = by_need if by_need.index <= by_cap.index else by_cap
        if place.saved_tokens <= start.saved_tokens:
            return yield_step(BudgetClass.TOOL_RESULTS, True, before, before, 0), None
        history_before = self.history()
        self.rewriting = True
        self.floors = Floors(cut=self.floors.cut, pointer=place.sequence)
        after = end.result_tokens - place.result_tokens
        count = place.index - start.index
        raised = Raise(
            BudgetClass.TOOL_RESULTS, place.sequence, history_before, self.history(), count
        )
        return yield_step(BudgetClass.TOOL_RESULTS, True, before, after, count), raised

    def cut_history(self, fresh: int) -> tuple[YieldStep, Raise | None]:
        """Move the cut: the last step, down to the low-water mark."""
        before = self.history()
        # A pass that rewrites bytes goes down to the mark at once: the next steps then only append.
        passing = self.rewriting and before > self.target(fresh)
        if self.excess(fresh) <= 0 and not passing:
            return yield_step(BudgetClass.HISTORY, False, before, before, 0), None
        first_cut = self.floors.cut == 0
        beside = self.demand.told(further=True) - (0 if first_cut else self._omission_cost())
        tokens = self.target(fresh, beside)
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
        return yield_step(BudgetClass.HISTORY, True, before, after, count), raised


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


def _all_given_up(
    policy: BudgetPolicy,
    demand: Demand,
    floors: Floors,
    index: UnitIndex,
    boundary: EventSeq,
    head: EventSeq,
) -> tuple[YieldStep, ...]:
    """The ladder of a step that cannot be built: everything that can yield would, and it is not enough."""
    start, end = index.at(min(floors.cut, boundary)), index.at(boundary)
    since, last = index.at(max(floors.cut, floors.pointer)), index.at(head)
    knowledge = _within_cap(demand.knowledge, policy, BudgetClass.KNOWLEDGE)
    recall = _within_cap(demand.recall, policy, BudgetClass.RECALL)
    results = last.result_tokens - since.result_tokens
    pointed = max(0, results - (last.saved_tokens - since.saved_tokens))
    history = suffix_tokens(index, cut=floors.cut, boundary=boundary, pointer_floor=floors.pointer)
    given: tuple[tuple[BudgetClass, int, int, int], ...] = (
        (BudgetClass.KNOWLEDGE, sum(knowledge), 0, len(knowledge)),
        (BudgetClass.RECALL, sum(recall), 0, len(recall)),
        (BudgetClass.TOOL_RESULTS, results, pointed, last.index - since.index if results else 0),
        (BudgetClass.HISTORY, history, 0, end.index - start.index),
    )
    return tuple(yield_step(name, True, before, after, n) for name, before, after, n in given)


__all__ = ["Allocation", "Demand", "Floors", "Raise", "allocate"]
