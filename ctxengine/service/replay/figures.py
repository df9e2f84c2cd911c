"""What a replay found: one value per step, and the totals of a cell (one engine on one model)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ctxengine.engine.fidelity.view import Fidelity

MICRO = 1_000_000


@dataclass(frozen=True, slots=True)
class ReplayStep:
    """One step; all figures in tokens of raw counts unless they say otherwise."""

    number: int
    turn: int
    at: float
    """Seconds since the epoch, by the replay's clock."""
    gap: float
    """Seconds since the step before; 0 for the first."""
    tokens: int
    by_class: dict[str, int]
    read: int
    written: int
    fresh: int
    """Prompt tokens that were neither read nor written."""
    cost: int | None
    """Input in millionths of a US dollar; None where no price is known."""
    weight: float
    """Input in tokens at the full price, by the cache rules' own percentages."""
    why: str
    """Why the cache gave what it gave (`Prediction.why`)."""
    yields: tuple[str, ...] = ()
    """Classes that gave up tokens before this request."""
    compactions: int = 0
    """Summaries installed, or bytes rewritten by a peer, before this request."""
    fidelity: dict[str, Any] = field(default_factory=dict)
    markers: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    side_tokens: int = 0
    """What a call that writes a summary had to read."""
    over_budget: bool = False
    refused: str = ""
    """Code of the refusal where no request could be built."""
    refused_for: str = ""
    """Class that did not fit, where one did not."""
    request_sha256: str = ""

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


@dataclass(slots=True)
class CellTotals:
    """One engine on one model over one or many transcripts."""

    engine: str
    model: str
    provider: str
    budget: int | None
    ttl: str
    sessions: int = 0
    steps: int = 0
    refused: int = 0
    window: int | None = None
    """The window that the plan was made for (tokens), the same for every engine; None where transcripts had several."""
    skipped_sessions: int = 0
    """Transcripts whose plan does not fit this model and budget, or that cannot be rendered for it."""
    skips: Counter[str] = field(default_factory=Counter)
    """Why those were left out."""
    input_tokens: int = 0
    read: int = 0
    written: int = 0
    cost: int | None = 0
    weight: float = 0.0
    peak_tokens: int = 0
    compactions: int = 0
    yields: Counter[str] = field(default_factory=Counter)
    fidelity: Fidelity = field(default_factory=Fidelity)
    side_tokens: int = 0
    over_budget: int = 0
    warnings: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    clocks: Counter[str] = field(default_factory=Counter)
    by_class: Counter[str] = field(default_factory=Counter)
    """Tokens of all requests by class."""
    seconds: float = 0.0
    """Time the replay took on this machine."""

    def take(self, step: ReplayStep, fidelity: Fidelity) -> None:
        """Count a step."""
        self.fidelity.add(fidelity)
        if step.refused:
            self.refused += 1
            self.refusals[": ".join(filter(None, (step.refused, step.refused_for)))] += 1
            return
        self.steps += 1
        self.input_tokens += step.tokens
        self.read += step.read
        self.written += step.written
        self.cost = None if self.cost is None or step.cost is None else self.cost + step.cost
        self.weight += step.weight
        self.peak_tokens = max(self.peak_tokens, step.tokens)
        self.compactions += step.compactions
        self.yields.update(step.yields)
        self.by_class.update(step.by_class)
        self.side_tokens += step.side_tokens
        self.over_budget += step.over_budget
        self.warnings.update(_kind_of(warning) for warning in step.warnings)

    def add(self, other: CellTotals) -> None:
        """Take in another transcript's totals for the same engine and model."""
        for name in _SUMMED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.cost = None if self.cost is None or other.cost is None else self.cost + other.cost
        self.peak_tokens = max(self.peak_tokens, other.peak_tokens)
        self.window = self.window if self.window == other.window else None
        for name in _COUNTED:
            getattr(self, name).update(getattr(other, name))
        self.fidelity.add(other.fidelity)

    @property
    def skipped(self) -> str:
        """Why nothing at all was replayed; empty where something was."""
        if not self.sessions or self.skipped_sessions < self.sessions:
            return ""
        return "; ".join(reason for reason, _ in self.skips.most_common())

    def as_json(self) -> dict[str, Any]:
        """The line that the command prints and REST gives."""
        share = self.fidelity
        return {
            "engine": self.engine,
            "model": self.model,
            "provider": self.provider,
            "budget": self.budget,
            "window": self.window,
            "ttl": self.ttl,
            "cost": None if self.cost is None else self.cost / MICRO,
            "cached_ratio": _ratio(self.read, self.input_tokens),
            "peak_tokens": self.peak_tokens,
            "compactions": self.compactions,
            "fidelity": round(share.share, 4),
            "whole": share.whole,
            "reachable": share.reachable,
            "gone": share.gone,
            "by_kind": share.as_json()["by_kind"],
            "sessions": self.sessions,
            "steps": self.steps,
            "refused": self.refused,
            "skipped_sessions": self.skipped_sessions,
            "skipped": self.skipped,
            "input_tokens": self.input_tokens,
            "read": self.read,
            "written": self.written,
            "mean_tokens": self.input_tokens // self.steps if self.steps else 0,
            "cost_ratio": _ratio(self.weight, self.input_tokens),
            "side_tokens": self.side_tokens,
            "over_budget": self.over_budget,
            "yields": dict(sorted(self.yields.items())),
            "warnings": dict(sorted(self.warnings.items())),
            "refusals": dict(sorted(self.refusals.items())),
            "clocks": dict(sorted(self.clocks.items())),
            "by_class": dict(sorted(self.by_class.items())),
            "seconds": round(self.seconds, 3),
        }


_SUMMED = (
    "sessions",
    "steps",
    "refused",
    "skipped_sessions",
    "input_tokens",
    "read",
    "written",
    "weight",
    "compactions",
    "side_tokens",
    "over_budget",
    "seconds",
)
_COUNTED = ("yields", "warnings", "refusals", "clocks", "by_class", "skips")


def _ratio(part: float, whole: float) -> float:
    return round(part / whole, 4) if whole else 0.0


def _kind_of(warning: str) -> str:
    """A warning without its figures, so that equal ones are counted together."""
    return warning.split(":", 1)[0].split(".", 1)[0][:80]


@dataclass(slots=True)
class Cell:
    """One engine on one model over one transcript, step by step."""

    totals: CellTotals
    steps: list[ReplayStep] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What a reader of the figures has to know."""
    skipped: str = ""
    """Why nothing was replayed."""


def merged(cells: Iterable[CellTotals]) -> list[CellTotals]:
    """Totals of many transcripts, one for each engine, model and budget, in the order in which they first come."""
    found: dict[tuple[str, str, str, int | None], CellTotals] = {}
    for cell in cells:
        key = (cell.engine, cell.provider, cell.model, cell.budget)
        if key not in found:
            found[key] = replace(cell, fidelity=Fidelity())
            for name in _SUMMED:
                setattr(found[key], name, 0)
            for name in _COUNTED:
                setattr(found[key], name, Counter())
            found[key].cost = None if cell.cost is None else 0
        found[key].add(cell)
    return list(found.values())
