"""The curves of a replayed cell: one step after the other, as geometry for server-drawn SVG (ui 4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inspector.figures import number
from inspector.metric_views import Block, Key, Mark
from inspector.metric_views import Step as Column

HEIGHT, _TOP = 120.0, 14.0
MOST_COLUMNS = 240
"""Steps drawn; of a longer cell, neighbours share a column and the largest one speaks for it."""
_GAP = 0.12

StepData = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Bar:
    """One stacked quantity of a curve."""

    css: str
    label: str
    reading: Callable[[StepData], float]


@dataclass(frozen=True, slots=True)
class Curve:
    """A drawn curve; the table of steps has the same figures."""

    title: str
    why: str
    columns: tuple[Column, ...]
    grid: tuple[Mark, ...]
    limit: float | None
    """Height of the budget's line."""
    legend: tuple[Key, ...]
    nothing: str
    """Said instead, where there are no columns."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a curve shows."""

    title: str
    why: str
    bars: tuple[Bar, ...]
    label: Callable[[float], str]
    nothing: str = "No request was built."
    """What it means that every step has nothing of it."""


def _fate(name: str) -> Callable[[StepData], float]:
    return lambda step: float(step["fidelity"].get(name, 0))


CURVES: tuple[Plan, ...] = (
    Plan(
        "Input tokens",
        "what the provider reads from its cache, writes to it and takes fresh",
        (
            Bar("f-ok", "read", lambda step: step["read"]),
            Bar("f-written", "written", lambda step: step["written"]),
            Bar("f-fresh", "fresh", lambda step: step["fresh"]),
        ),
        number,
    ),
    Plan(
        "Cost of the input",
        "at the list prices of the day; a tall column is a cache that was missed",
        (Bar("f-accent", "US dollars", lambda step: (step["cost"] or 0) / 1_000_000),),
        lambda value: f"${value:.4f}".rstrip("0").rstrip(".") if value else "$0",
        "No price is known for this model.",
    ),
    Plan(
        "Facts that the answer used",
        "whole in the request, named there for a recall, or gone",
        (
            Bar("f-ok", "whole", _fate("whole")),
            Bar("f-warn", "reachable", _fate("reachable")),
            Bar("f-bad", "gone", _fate("gone")),
        ),
        number,
        "No answer used a fact that stood earlier in the session.",
    ),
)


def curves_of(
    steps: Sequence[StepData], *, budget: int | None, href: Callable[[int], str]
) -> tuple[Curve, ...]:
    """Draw all curves of a cell.

    Args:
        budget: tokens of a whole request, drawn as a line where it is known.
        href: address of a step's request; empty where none was built.
    """
    return tuple(
        _drawn(plan, steps, budget if plan is CURVES[0] else None, href) for plan in CURVES
    )


def _drawn(
    plan: Plan, steps: Sequence[StepData], budget: int | None, href: Callable[[int], str]
) -> Curve:
    shown = _thinned(plan, steps)
    sums = [_sum(plan, step) for step in shown]
    if not any(sums):
        shown = []
    high = max([*sums, float(budget or 0)], default=0.0) or 1.0
    marks = {plan.label(high * share): share for share in (1.0, 0.5, 0.0)}
    width = 100 / max(1, len(shown))
    columns = tuple(
        Column(
            x=_pct(place * width),
            width=_pct(width),
            title=_words(plan, step),
            href=href(step["number"]) if not step["refused"] else "",
            blocks=_blocks(plan, step, place * width, width, high),
        )
        for place, step in enumerate(shown)
    )
    return Curve(
        title=plan.title,
        why=plan.why,
        columns=columns,
        # A label that says the same as another one is left out: between 0 and 1 facts there is nothing to mark.
        grid=tuple(
            Mark(f"{_TOP + HEIGHT * (1 - share):.2f}", label) for label, share in marks.items()
        ),
        limit=round(_TOP + HEIGHT * (1 - budget / high), 2) if budget else None,
        legend=tuple(Key(bar.css, bar.label) for bar in plan.bars),
        nothing=plan.nothing,
    )


def _thinned(plan: Plan, steps: Sequence[StepData]) -> list[StepData]:
    if len(steps) <= MOST_COLUMNS:
        return list(steps)
    each = -(-len(steps) // MOST_COLUMNS)
    parts = (steps[at : at + each] for at in range(0, len(steps), each))
    return [max(part, key=lambda step: _sum(plan, step)) for part in parts]


def _sum(plan: Plan, step: StepData) -> float:
    return sum(bar.reading(step) for bar in plan.bars)


def _words(plan: Plan, step: StepData) -> str:
    if step["refused"]:
        return f"Step {step['number']}: refused, {step['refused']}"
    parts = ", ".join(f"{bar.label} {plan.label(bar.reading(step))}" for bar in plan.bars)
    return f"Step {step['number']} of turn {step['turn']}: {parts}"


def _blocks(
    plan: Plan, step: StepData, left: float, width: float, high: float
) -> tuple[Block, ...]:
    if step["refused"]:
        place = (_pct(left + width * _GAP / 2), _TOP, _pct(width * (1 - _GAP)), HEIGHT)
        return (Block("f-mute", *place),)
    blocks, base = [], 0.0
    for bar in plan.bars:
        value = bar.reading(step)
        if value <= 0:
            continue
        height = HEIGHT * value / high
        top = _TOP + HEIGHT * (1 - base / high) - height
        x, wide = _pct(left + width * _GAP / 2), _pct(width * (1 - _GAP))
        blocks.append(Block(bar.css, x, round(top, 2), wide, round(max(height, 0.75), 2)))
        base += value
    return tuple(blocks)


def _pct(value: float) -> str:
    return f"{value:.3f}%"
