"""Room for what never yields, and the refusal where there is none (frozen-prefix spec, Yield order)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ctxengine.engine.budget.arithmetic import Frame
from ctxengine.engine.budget.classes import BudgetClass
from ctxengine.engine.budget.demand import Demand, Floors, Raise
from ctxengine.engine.budget.policy import BudgetPolicy
from ctxengine.engine.errors import BudgetExceeded
from ctxengine.engine.history.suffix import suffix_tokens
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.manifest import YieldStep
from ctxengine.engine.ports import SumColumn, UnitIndex

_REMEDY = {
    BudgetClass.USER_INPUT: "Shorten the message",
    BudgetClass.HISTORY: "End the run, unpin what was pinned",
    BudgetClass.SKILL_BODIES: "Open a session with fewer or shorter skills",
    BudgetClass.WORKING_STATE: "Let the user lift constraints",
    BudgetClass.RECALL: "Send fewer or shorter correction lines",
    BudgetClass.RUNTIME: "State fewer scopes",
}


@dataclass(frozen=True, slots=True)
class ActiveFit:
    """What never yields after the open run's own results gave what they had to."""

    floors: Floors
    never_yield: int
    step: YieldStep | None = None
    raised: Raise | None = None


def fit_active(
    fixed: Frame,
    policy: BudgetPolicy,
    demand: Demand,
    floors: Floors,
    index: UnitIndex,
    boundary: EventSeq,
    head: EventSeq,
) -> ActiveFit:
    """Make room for what never yields; the open run's own results may shrink to pointers, oldest first.

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
        return ActiveFit(floors, never_yield)
    saveable = end.saved_tokens - inside.saved_tokens
    if saveable < excess:
        saved = demand.never_yield - never_yield + saveable
        raise _overflow(fixed, demand, line, saved)
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
    return ActiveFit(
        Floors(floors.cut, place.sequence),
        never_yield - saved,
        yield_step(BudgetClass.TOOL_RESULTS, True, before, after, count),
        Raise(BudgetClass.TOOL_RESULTS, place.sequence, never_yield, never_yield - saved, count),
    )


def _overflow(fixed: Frame, demand: Demand, line: int, saved: int) -> BudgetExceeded:
    """The refusal, naming the largest class among those that cannot yield.

    Args:
        line: what the line for left-out history takes.
        saved: what pointers to the open run's results save at the most.
    """
    held = demand.by_class
    held[BudgetClass.HISTORY] += line - saved
    largest = max(held, key=lambda name: held[name])
    others = sum(held.values()) - held[largest]
    return BudgetExceeded(
        largest.value,
        held[largest],
        max(0, fixed.body - others),
        f"{_REMEDY[largest]}, or route the session to a model with a larger window.",
    )


def yield_step(name: BudgetClass, pressed: bool, before: int, after: int, items: int) -> YieldStep:
    """One line of the ladder's report; `pressed` says whether the step was asked for anything."""
    outcome = "not_needed" if not pressed else ("ran" if items else "nothing_to_give")
    return YieldStep(
        budget_class=name.value,
        outcome=outcome,
        tokens_before=before,
        tokens_after=after,
        items=items,
    )
