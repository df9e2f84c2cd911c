"""What a replay is asked for, checked once for every door."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field, StringConstraints

from ctxengine.service.spec_base import Spec

LEAST_BUDGET, MOST_BUDGET = 1_024, 100_000_000
MOST_GAP_S = 10_000_000.0
MOST_CELLS = 40
"""Most cells of one replay."""

_Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=250)]


class ReplaySettings(Spec):
    """What all cells of a replay have in common."""

    budget: int | None = Field(default=None, ge=LEAST_BUDGET, le=MOST_BUDGET)
    """Tokens of a whole request, output reserve included; None: what the session's own policy and the model allow."""
    ttl: Literal["5m", "1h"] | None = None
    """Life asked for the history's cache entries; None: the session's own, else five minutes."""
    turn_gap: float | None = Field(default=None, ge=0, le=MOST_GAP_S)
    """Seconds between turns instead of the transcript's own."""
    low_water: float | None = Field(default=None, gt=0, le=1)
    """Share of history's room that one yield pass leaves, instead of the policy's."""


class ReplayWanted(Spec):
    """A session under several engines and models."""

    session: UUID
    engines: tuple[_Name, ...] = Field(min_length=1, max_length=20)
    models: tuple[_Name, ...] = Field(min_length=1, max_length=20)
    """As NAME or PROVIDER/NAME."""
    settings: ReplaySettings = ReplaySettings()
