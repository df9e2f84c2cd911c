"""The probe's ladder as a plot: prompt size across, one dot a sample, the horizon as a line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ctxengine.engine.capacity.profile import CapacityProfile, Grade, Observation

WIDTH, HEIGHT = 720, 150
_LEFT, _RIGHT, _TOP, _ROW = 76, 16, 18, 32
_LEAST_TOKENS = 1_000
_GRADES = (Grade.STRICT, Grade.LOOSE, Grade.FAIL)
_WORDS = {
    Grade.STRICT: "called",
    Grade.LOOSE: "wrote it",
    Grade.FAIL: "did not",
}


@dataclass(frozen=True, slots=True)
class Dot:
    """One sample."""

    x: float
    y: float
    css: str
    title: str


@dataclass(frozen=True, slots=True)
class Tick:
    """A size on the axis."""

    x: float
    label: str


@dataclass(frozen=True, slots=True)
class RungLine:
    """One rung in the table behind the plot."""

    tokens: int
    actual: int
    strict: int
    loose: int
    failed: int
    median_ms: int


@dataclass(frozen=True, slots=True)
class LadderPlot:
    """Everything the template draws."""

    width: int
    height: int
    dots: tuple[Dot, ...]
    ticks: tuple[Tick, ...]
    rows: tuple[tuple[int, int, str], ...]
    """Height of the line, base of its label, and the label, of each grade."""
    horizon_x: float | None
    rungs: tuple[RungLine, ...]
    words: str
    """The plot in one sentence, for those who do not see it."""


def ladder_plot(profile: CapacityProfile) -> LadderPlot:
    """Draw the samples of a profile."""
    seen = profile.provenance.observations
    most = max([profile.declared_window, *(sample.actual_tokens for sample in seen)])
    least = min([_LEAST_TOKENS, *(sample.actual_tokens for sample in seen)])

    def across(tokens: int) -> float:
        span = math.log(max(2, most)) - math.log(max(1, least))
        share = (math.log(max(least, tokens, 1)) - math.log(max(1, least))) / max(span, 1e-9)
        return round(_LEFT + share * (WIDTH - _LEFT - _RIGHT), 1)

    heights = [_TOP + place * _ROW for place in range(len(_GRADES))]
    rows = tuple((y, y + 4, _WORDS[grade]) for y, grade in zip(heights, _GRADES, strict=True))
    horizon = profile.horizon
    measured = bool(horizon.confirmed_at) and horizon.tokens > 0
    return LadderPlot(
        width=WIDTH,
        height=HEIGHT,
        dots=_dots(seen, across),
        ticks=_ticks(least, most, across),
        rows=rows,
        horizon_x=across(horizon.tokens) if measured else None,
        rungs=_rungs(seen),
        words=(
            f"{len(seen)} samples; instructions were followed up to {horizon.tokens:,} tokens of {profile.declared_window:,}."
        ),
    )


def _dots(seen: Sequence[Observation], across: Any) -> tuple[Dot, ...]:
    dots = []
    placed: dict[tuple[int, Grade], int] = {}
    for sample in seen:
        key = (sample.tokens, sample.grade)
        place = placed.get(key, 0)
        placed[key] = place + 1
        css = {Grade.STRICT: "f-ok", Grade.LOOSE: "f-warn", Grade.FAIL: "m-bad"}[sample.grade]
        dots.append(
            Dot(
                x=across(sample.actual_tokens),
                # Samples of one rung stand beside one another, not upon one another.
                y=_TOP + _GRADES.index(sample.grade) * _ROW + (place % 5 - 2) * 4.5,
                css=css,
                title=f"{sample.actual_tokens:,} tokens: {sample.grade.value}, {sample.latency_ms:,} ms",
            )
        )
    return tuple(dots)


def _ticks(least: int, most: int, across: Any) -> tuple[Tick, ...]:
    ticks = []
    size = 1_000
    while size <= most:
        if size >= least:
            ticks.append(Tick(across(size), _size_words(size)))
        size *= 2 if most < 64_000 else 4
    if not ticks or across(most) - ticks[-1].x > 44:
        ticks.append(Tick(across(most), _size_words(most)))
    return tuple(ticks)


def _rungs(seen: Sequence[Observation]) -> tuple[RungLine, ...]:
    lines = []
    for size in sorted({sample.tokens for sample in seen}):
        mine = [sample for sample in seen if sample.tokens == size]
        times = sorted(sample.latency_ms for sample in mine)
        lines.append(
            RungLine(
                tokens=size,
                actual=min(sample.actual_tokens for sample in mine),
                strict=sum(sample.grade is Grade.STRICT for sample in mine),
                loose=sum(sample.grade is Grade.LOOSE for sample in mine),
                failed=sum(sample.grade is Grade.FAIL for sample in mine),
                median_ms=times[len(times) // 2],
            )
        )
    return tuple(lines)


def _size_words(tokens: int) -> str:
    """A size as short as an axis has room for: 64k, 1M, 1.5M."""
    return f"{tokens / 1_000_000:.3g}M" if tokens >= 1_000_000 else f"{tokens // 1_000}k"
