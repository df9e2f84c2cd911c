"""A packet that a model is to write: the turns it covers, as the job's row keeps them (ids and figures, never content)."""

from __future__ import annotations

from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from ctxengine.engine.compaction.summarise import Range
from ctxengine.engine.history.working_set_ahead import TurnsAhead
from ctxengine.engine.ids import EventSeq

KIND = "compaction.packet"
"""Name in the table of job kinds."""


class WantedPacket(BaseModel):
    """What the job works from."""

    model_config = ConfigDict(frozen=True)

    cause: Literal["ahead", "hand"]
    """`ahead` of a plan's next growth, or because somebody asked."""
    first_turn: int
    last_turn: int
    first: int
    """First event of these turns."""
    below: int
    """One past the last."""
    tokens: int
    """What the turns would cost a request whole."""
    budget_tokens: int
    """Most tokens of the packet, its frame included."""
    run: str | None = None
    """The run whose plan the packet is written ahead of; None for one by hand."""
    note: str = ""
    """Why somebody asked."""

    @property
    def range(self) -> Range:
        """The events it covers."""
        return Range(EventSeq(self.first), EventSeq(self.below), self.tokens)

    @property
    def through(self) -> int:
        """The last event it covers."""
        return self.below - 1

    def as_arguments(self) -> dict[str, Any]:
        """Plain data for the job's row."""
        return self.model_dump(mode="json")


def wanted_ahead(turns: TurnsAhead, *, run: str | None) -> WantedPacket:
    """The packet of a plan's next growth."""
    return WantedPacket(cause="ahead", run=run, **_figures(turns))


def wanted_by_hand(turns: TurnsAhead, *, note: str) -> WantedPacket:
    """The packet that somebody asked for."""
    return WantedPacket(cause="hand", note=note, **_figures(turns))


def _figures(turns: TurnsAhead) -> dict[str, Any]:
    return {
        "first_turn": turns.first,
        "last_turn": turns.last,
        "first": turns.range.first,
        "below": turns.range.below,
        "tokens": turns.range.tokens,
        "budget_tokens": turns.budget_tokens,
    }


def flight_key(session: UUID, wanted: WantedPacket) -> str:
    """At most one packet of a range is made at once for each cause: what somebody asks for is no job that was under way."""
    return f"packet:{session}:{wanted.first}:{wanted.through}:{wanted.cause}"
