"""What a step wants and what earlier yields have settled: the figures an allocation starts from (design 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ctxengine.engine.budget.classes import BudgetClass
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.ports import UnitSums


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
    """The most that a line for left-out history costs."""
    row_nine: int = 0
    """What row 9 costs before the present cut where summaries stand in it, the lines between them included; else 0."""
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
        return self.told(further=False) if history.index else 0

    def told(self, *, further: bool) -> int:
        """What row 9 costs at the present cut, or at the most at a further one."""
        now = self.row_nine or self.omission
        if not further:
            return now
        # Where no summary can be made of the rest, a line tells of it beside the summaries that stand already.
        return now + max(self.summary, self.omission if self.row_nine else 0)

    @property
    def by_class(self) -> dict[BudgetClass, int]:
        """Who holds what never yields; the open run's exchanges and pinned units are conversation."""
        return {
            BudgetClass.USER_INPUT: self.user_input,
            BudgetClass.HISTORY: self.active + self.pinned,
            BudgetClass.SKILL_BODIES: self.skills,
            BudgetClass.WORKING_STATE: self.working_state,
            BudgetClass.RECALL: self.corrections,
            BudgetClass.RUNTIME: self.runtime,
        }


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
