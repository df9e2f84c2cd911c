"""A summary that a job is to make: the pass it belongs to, as the job's row keeps it (ids and figures, never content)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from ctxengine.engine.budget.yields import Floors, Raise
from ctxengine.engine.compaction.net_cost import NetCost
from ctxengine.engine.compaction.packet import Packet
from ctxengine.engine.compaction.summarise import Range
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.trust.levels import Trust

KIND = "compaction.summary"
"""Name in the table of job kinds."""


class WantedRaise(BaseModel):
    """A floor that rises together with the summary's installation."""

    model_config = ConfigDict(frozen=True)

    budget_class: str
    floor: int
    before: int
    after: int
    items: int


class WantedSummary(BaseModel):
    """What a job works from. The ledger may have moved on by the time it runs; then it refuses."""

    model_config = ConfigDict(frozen=True)

    cause: Literal["budget", "hand"]
    first: int
    below: int
    tokens: int
    """What the range costs a request now."""
    body_tokens: int
    """Size of the request's body, which bounds the summaries (tokens)."""
    cut: int
    """The cut in force when it was asked for."""
    pointer: int
    """The pointer floor in force then."""
    epoch: int
    factor_millionths: int = 1_000_000
    raises: tuple[WantedRaise, ...] = ()
    run: str | None = None
    reason: str = ""
    forced: bool = True
    """Whether it is installed even where it does not pay."""
    merge: bool = False
    """Tell the summaries in the range as one, instead of the range itself."""

    @property
    def range(self) -> Range:
        """The units it covers."""
        return Range(EventSeq(self.first), EventSeq(self.below), self.tokens)

    @property
    def floors(self) -> Floors:
        """The floors it was asked under."""
        return Floors(EventSeq(self.cut), EventSeq(self.pointer))

    def covers(self, packet: Packet) -> bool:
        """Whether a summary lies in the range."""
        return self.first <= packet.first and packet.through < self.below

    def as_arguments(self) -> dict[str, Any]:
        """Plain data for the job's row."""
        return self.model_dump(mode="json")

    def yield_drafts(
        self,
        *,
        model: str,
        plan_total: int,
        policy: str,
        forced_by: str,
        weigh: Callable[[int], NetCost],
    ) -> list[EventDraft]:
        """The events of the floors that rise with it.

        Args:
            weigh: the net-cost test of a rewrite that saves so many tokens.
        """
        return [
            EventDraft(
                type=EventType.YIELD_APPLIED,
                trust=Trust.PLATFORM,
                run=self.run,
                payload={
                    "class": raised.budget_class,
                    "floor_sequence": raised.floor,
                    "model": model,
                    "plan_total": plan_total,
                    "policy": policy,
                    "before": raised.before,
                    "after": raised.after,
                    "items": raised.items,
                    "forced_by": forced_by,
                    "verdict": weigh(raised.before - raised.after).model_dump(),
                },
            )
            for raised in self.raises
        ]


def wanted_raises(raises: Sequence[Raise]) -> tuple[WantedRaise, ...]:
    """Raises of an allocation, as a job keeps them."""
    return tuple(
        WantedRaise(
            budget_class=raised.budget_class.value,
            floor=raised.floor,
            before=raised.before,
            after=raised.after,
            items=raised.items,
        )
        for raised in raises
    )


def flight_key(session: object, first: int) -> str:
    """At most one summary of a range is made at once; a range is known by where it starts."""
    return f"summary:{session}:{first}"
