"""Trends as geometry for server-drawn SVG: stacked bars and lines over the steps of a range (ui 4, 7)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil, floor, log10

from ctxengine.ledger.queries.metrics import Bucket
from ctxengine.service.metrics.figures import Figures
from inspector.metric_links import Links
from inspector.metric_views import (
    Block,
    ChartView,
    Column,
    Datum,
    Key,
    Line,
    Mark,
    Step,
    TableView,
)

HEIGHT = 120.0
_TOP = 10.0
_GAP = 0.16
"""Share of a step that stays empty between bars."""

Reading = Callable[[Figures], float | None]
Point = tuple[datetime, Figures]


@dataclass(frozen=True, slots=True)
class Series:
    """One quantity of a chart."""

    css: str
    label: str
    reading: Reading


@dataclass(frozen=True, slots=True)
class Drawing:
    """How a chart reads its figures."""

    name: str
    title: str
    why: str
    columns: tuple[Column, ...]
    row: Callable[[Figures, Links], tuple[Datum, ...]]
    """Cells of one step, for the table behind the chart."""
    label: Callable[[float], str]
    """A height in words."""
    bars: tuple[Series, ...] = ()
    lines: tuple[Series, ...] = ()
    least: float = 0.0
    most: float | None = None
    """Upper end of the scale; None: what the data need."""
    counts: bool = False
    """Whether the values are whole numbers, so that half of the scale must be one too."""
    mirrored: bool = False
    """Whether the scale runs as far below nought as above."""
    target: float | None = None
    target_word: str = "target"
    filters: tuple[tuple[str, str], ...] = ()
    """What the list behind a step is narrowed to."""


def chart(drawing: Drawing, trend: Sequence[Point], totals: Figures, links: Links) -> ChartView:
    """Draw one trend."""
    low, high = _scale(drawing, trend)
    width = 100 / max(1, len(trend))
    steps = []
    for place, (at, figures) in enumerate(trend):
        here = links.at(at)
        cells = drawing.row(figures, here)
        words = ", ".join(
            f"{c.title} {d.text}" for c, d in zip(drawing.columns, cells, strict=True)
        )
        steps.append(
            Step(
                x=_pct(place * width),
                width=_pct(width),
                title=f"{moment(at, links.where.bucket)}: {words}",
                href=here.requests(**dict(drawing.filters)) if figures.requests else "",
                blocks=_blocks(drawing, figures, place * width, width, high),
            )
        )
    return ChartView(
        table=_table(drawing, trend, links),
        latest=drawing.row(totals, links)[0].text,
        steps=tuple(steps),
        lines=tuple(_line(series, trend, width, low, high) for series in drawing.lines),
        grid=_grid(drawing, low, high),
        target=None if drawing.target is None else round(_y(drawing.target, low, high), 2),
        axis=_axis([at for at, _ in trend], links.where.bucket),
        legend=_legend(drawing),
    )


def moment(at: datetime, bucket: Bucket) -> str:
    """A step in words, UTC."""
    day = f"{at.day} {at:%b}"
    return f"{day} {at:%H:%M}" if bucket is Bucket.HOUR else day


def _scale(drawing: Drawing, trend: Sequence[Point]) -> tuple[float, float]:
    lines = [series.reading(figures) for _, figures in trend for series in drawing.lines]
    values = [value for value in lines if value is not None]
    values += [sum(series.reading(f) or 0 for series in drawing.bars) for _, f in trend]
    if drawing.target is not None:
        values.append(drawing.target)
    if drawing.mirrored:
        reach = _round_up(max((abs(value) for value in values), default=0) or 0.01)
        return -reach, reach
    if drawing.most is not None:
        top = max(values, default=drawing.most)
        return drawing.least, drawing.most if top <= drawing.most else ceil(top * 10) / 10
    top = max(values, default=0)
    reach = _round_up(max(top - drawing.least, 0) or 1)
    return drawing.least, drawing.least + (reach + reach % 2 if drawing.counts else reach)


def _round_up(value: float) -> float:
    """The next figure of the form 1, 2, 3, 5 or 10 times a power of ten."""
    power = float(10 ** floor(log10(value)))
    return next(step * power for step in (1, 2, 3, 5, 10) if step * power >= value * (1 - 1e-9))


def _y(value: float, low: float, high: float) -> float:
    return _TOP + HEIGHT * (1 - (value - low) / ((high - low) or 1))


def _blocks(
    drawing: Drawing, figures: Figures, left: float, width: float, high: float
) -> tuple[Block, ...]:
    blocks = []
    base = 0.0
    for series in drawing.bars:
        value = series.reading(figures) or 0
        if value <= 0:
            continue
        height = HEIGHT * value / high
        top = _TOP + HEIGHT * (1 - base / high) - height
        blocks.append(
            Block(
                series.css,
                _pct(left + width * _GAP / 2),
                round(top, 2),
                _pct(width * (1 - _GAP)),
                round(max(height, 0.75), 2),
            )
        )
        base += value
    return tuple(blocks)


def _line(series: Series, trend: Sequence[Point], width: float, low: float, high: float) -> Line:
    runs: list[list[tuple[float, float]]] = [[]]
    for place, (_, figures) in enumerate(trend):
        value = series.reading(figures)
        if value is None:
            runs.append([])
            continue
        runs[-1].append(((place + 0.5) * width, round(_y(value, low, high), 2)))
    drawn = tuple(" ".join(f"{x:.3f},{y}" for x, y in run) for run in runs if len(run) > 1)
    few = len(trend) <= 40
    dots = tuple((_pct(x), y) for run in runs if few or len(run) == 1 for x, y in run)
    return Line(series.css, drawn, dots)


def _grid(drawing: Drawing, low: float, high: float) -> tuple[Mark, ...]:
    places = (low, (low + high) / 2, high)
    return tuple(Mark(f"{_y(at, low, high):.2f}", drawing.label(at)) for at in places)


def _axis(moments: Sequence[datetime], bucket: Bucket) -> tuple[Mark, ...]:
    if not moments:
        return ()
    last = len(moments) - 1
    places = [(0, "start"), (last // 2, "middle"), (last, "end")] if last > 1 else [(0, "start")]
    x = {"start": 0.0, "middle": 100 * (last // 2 + 0.5) / len(moments), "end": 100.0}
    return tuple(
        Mark(_pct(x[anchor]), moment(moments[at], bucket), anchor) for at, anchor in places
    )


def _legend(drawing: Drawing) -> tuple[Key, ...]:
    keys = [Key(series.css, series.label) for series in drawing.bars]
    keys += [Key(series.css, series.label, True) for series in drawing.lines]
    if drawing.target is not None:
        keys.append(Key("l-target", f"{drawing.target_word} {drawing.label(drawing.target)}", True))
    return tuple(keys) if len(keys) > 1 else ()


def _table(drawing: Drawing, trend: Sequence[Point], links: Links) -> TableView:
    rows = []
    for at, figures in trend:
        here = links.at(at)
        when = Datum(
            at.isoformat(),
            moment(at, links.where.bucket),
            href=here.requests() if figures.requests else "",
        )
        rows.append((when, *drawing.row(figures, here)))
    return TableView(
        drawing.name,
        drawing.title,
        drawing.why,
        (Column("step", "Step", False), *drawing.columns),
        tuple(rows),
        "Nothing in this range.",
    )


def _pct(value: float) -> str:
    return f"{value:.3f}%"
