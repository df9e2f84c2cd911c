"""What the metrics page draws: tables whose figures are links, and charts with a table behind each."""

from __future__ import annotations

from dataclasses import dataclass

from ctxengine.ledger.queries.metrics import GroupBy, MetricsFilter
from ctxengine.service.metrics.report import Metrics
from inspector.contexts import Shell, Tile


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    name: str
    """Its name in CSV."""
    title: str
    numeric: bool = True
    ratio: bool = False
    """CSV gives its numerator and denominator too."""


@dataclass(frozen=True, slots=True)
class Datum:
    """One figure: as data, as text, and where what it counts is listed."""

    value: object
    text: str
    note: str = ""
    href: str = ""
    tone: str = ""
    """`warn` or `bad`."""
    parts: tuple[int, int] | None = None
    """Numerator and denominator of a ratio."""


@dataclass(frozen=True, slots=True)
class TableView:
    """A table with its own exports."""

    name: str
    title: str
    why: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Datum, ...], ...]
    empty: str


@dataclass(frozen=True, slots=True)
class Block:
    """A filled rectangle of a chart."""

    fill: str
    x: str
    y: float
    width: str
    height: float


@dataclass(frozen=True, slots=True)
class Step:
    """One step of time: its place, its words and its link."""

    x: str
    width: str
    title: str
    href: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """One series as broken lines; `dots` mark values that stand alone."""

    css: str
    runs: tuple[str, ...]
    dots: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """A text at a height or along the axis."""

    at: str
    label: str
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class Key:
    """An entry of a legend."""

    css: str
    label: str
    line: bool = False


@dataclass(frozen=True, slots=True)
class ChartView:
    """A chart over the steps of the range."""

    table: TableView
    latest: str
    """The whole range in one figure."""
    steps: tuple[Step, ...]
    lines: tuple[Line, ...]
    grid: tuple[Mark, ...]
    target: float | None
    axis: tuple[Mark, ...]
    legend: tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class MetricsPage:
    """P12: what sessions cost, reuse and give up."""

    shell: Shell
    where: MetricsFilter
    window: str
    """Name of the range; empty for one of its own."""
    windows: tuple[str, ...]
    chosen: dict[str, str]
    facets: dict[str, tuple[str, ...]]
    groupings: tuple[GroupBy, ...]
    tiles: tuple[Tile, ...]
    charts: tuple[ChartView, ...]
    groups: TableView | None
    tables: tuple[TableView, ...]
    worst: tuple[TableView, ...]
    found: Metrics
    address: str
    narrowed: bool
