"""What the pages of models and capacity receive."""

from __future__ import annotations

from dataclasses import dataclass

from ctxengine.engine.capacity.profile import CapacityProfile
from ctxengine.ledger.queries.capacity import ModelDetail, ModelLine, ProbeGlance
from ctxengine.service.probe.forecast import ProbeForecast
from inspector.act_contexts import Figure
from inspector.contexts import Shell
from inspector.ladder_plot import LadderPlot


@dataclass(frozen=True, slots=True)
class ModelView:
    """One model with its profile read."""

    line: ModelLine
    profile: CapacityProfile
    measured: bool
    """False where the declared window stands in for a horizon."""
    stale: str
    """Why a new probe is due; empty for a fresh profile, and for one that nobody measured."""
    changed: bool
    """Whether another model was seen behind the name since it was measured."""
    key: str
    """The model as an address names it; empty for a name that no address can carry."""


@dataclass(frozen=True, slots=True)
class ModelsPage:
    """P11: all models."""

    shell: Shell
    models: tuple[ModelView, ...]


@dataclass(frozen=True, slots=True)
class ModelPage:
    """P11: one model."""

    shell: Shell
    view: ModelView
    detail: ModelDetail
    plot: LadderPlot | None
    probe: ProbeGlance | None
    key: str
    """The model as its address names it."""


@dataclass(frozen=True, slots=True)
class ProbePage:
    """A probe before it is started: whom it asks, what it takes, and the form that starts it."""

    shell: Shell
    key: str
    forecast: ProbeForecast
    figures: tuple[Figure, ...]
    sizes: str
    """The rungs, in words."""
    most: str
    """The highest prompt as it was typed."""
    exact: bool
    sibling: str
    """The model of the family that is asked in its place; empty where this very one is."""
    problem: str
    reason: str
    hosted: bool
    back: str
    allowed: bool
