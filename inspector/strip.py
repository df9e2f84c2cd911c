"""The strip: one stacked column for each request, as geometry for an SVG (ui 5, P3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from ctxengine.engine.events import EventType
from ctxengine.ledger.queries.session import Act, Strip, StripColumn
from inspector.figures import dollars, number
from inspector.ruler import fresh_words

PLOT_TOP = 72
PLOT_HEIGHT = 150
CACHE_TOP = 230
AXIS_TOP = 250
HEIGHT = 274
_LEFT_PERCENT = 5.0
_SPAN_PERCENT = 94.5


class Layer(NamedTuple):
    """One class of row in a column, from the bottom up."""

    name: str
    fill: str
    title: str


LAYERS = (
    Layer("prefix", "f-config", "prefix"),
    Layer("summary", "f-model", "summary or omission"),
    Layer("conversation", "f-user", "conversation"),
    Layer("results", "f-external", "tool results"),
    Layer("fresh", "f-platform", "fresh rows"),
    Layer("input", "f-input", "user input"),
)


@dataclass(frozen=True, slots=True)
class Block:
    """A filled rectangle."""

    x: str
    y: float
    width: str
    height: float
    fill: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class ColumnView:
    """One request."""

    id: UUID
    label: str
    title: str
    hit: Block
    """The whole column, so that thin ones can be pointed at."""
    blocks: tuple[Block, ...]
    cache: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Band:
    """An epoch over its columns."""

    block: Block
    label: str
    x_text: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Tick:
    """A text at a place."""

    x: str
    y: float
    label: str


@dataclass(frozen=True, slots=True)
class MarkerView:
    """An act above the column that it first shows in."""

    x: str
    glyph: str
    fill: str
    title: str
    sequence: int
    label: str
    """Request it first shows in."""


class ActPlace(NamedTuple):
    """An act and the request it first shows in."""

    sequence: int
    label: str


@dataclass(frozen=True, slots=True)
class ActGroup:
    """The acts of one kind in the window, by the requests that they first show in."""

    glyph: str
    title: str
    places: tuple[ActPlace, ...]


@dataclass(frozen=True, slots=True)
class StripView:
    """Everything that the template draws."""

    columns: tuple[ColumnView, ...]
    bands: tuple[Band, ...]
    markers: tuple[MarkerView, ...]
    acts: tuple[ActGroup, ...]
    runs: tuple[Tick, ...]
    grid: tuple[Tick, ...]
    usable_y: float | None
    usable_tokens: int
    scale_tokens: int
    has_cache: bool


_GLYPHS: dict[str, tuple[str, str, str]] = {
    EventType.EPOCH_ROTATED: ("R", "m-accent", "epoch rotated"),
    EventType.YIELD_APPLIED: ("Y", "m-warn", "tokens yielded"),
    EventType.BUDGET_PRESSURE: ("P", "m-warn", "budget pressure"),
    EventType.BUDGET_EXCEEDED: ("X", "m-bad", "budget exceeded"),
    EventType.SUMMARY_IMPORTED: ("S", "m-accent", "summary imported"),
    EventType.RESPONSE_FAILED: ("F", "m-bad", "request failed"),
    EventType.CALL_REFUSED: ("–", "m-warn", "call refused"),
    EventType.COMPACTED: ("C", "m-warn", "history compacted"),
    EventType.COMPACTION_UNDONE: ("U", "m-accent", "compaction undone"),
    EventType.TOOL_REVOKED: ("T", "m-bad", "tool revoked"),
    EventType.TOOL_RESTORED: ("t", "m-accent", "tool restored"),
    EventType.AUTHORITY_CHANGED: ("A", "m-accent", "authority changed"),
    EventType.WINDOW_LEARNED: ("W", "m-warn", "window learned"),
}
_RANKS = (
    EventType.BUDGET_EXCEEDED,
    EventType.RESPONSE_FAILED,
    EventType.TOOL_REVOKED,
    EventType.COMPACTED,
    EventType.COMPACTION_UNDONE,
    EventType.YIELD_APPLIED,
    EventType.EPOCH_ROTATED,
    EventType.WINDOW_LEARNED,
    EventType.AUTHORITY_CHANGED,
    EventType.TOOL_RESTORED,
    EventType.SUMMARY_IMPORTED,
    EventType.CALL_REFUSED,
    EventType.BUDGET_PRESSURE,
)
"""Gravest first."""


def strip_view(strip: Strip, prefix_tokens: dict[int, int]) -> StripView:
    """Place a window of columns."""
    columns = strip.columns
    usable = max((column.usable for column in columns), default=0)
    peak = max((column.total for column in columns), default=0)
    # A window far above what was used would flatten every column to a line.
    scale = usable if peak and usable <= 3 * peak else max(peak, 1)
    return StripView(
        columns=tuple(_column(columns, place, scale) for place in range(len(columns))),
        bands=_bands(columns, prefix_tokens),
        markers=_markers(columns, strip.acts),
        acts=_acts(columns, strip.acts),
        runs=_runs(columns),
        grid=tuple(
            Tick("0", _y(scale * part / 4, scale), number(scale * part / 4)) for part in range(5)
        ),
        usable_y=_y(usable, scale) if 0 < usable <= scale else None,
        usable_tokens=usable,
        scale_tokens=scale,
        has_cache=any(column.usage.reported for column in columns),
    )


def _step(columns: tuple[StripColumn, ...]) -> float:
    # Few requests keep slim columns instead of filling the whole width.
    return min(_SPAN_PERCENT / max(1, len(columns)), 5.0)


def _x(columns: tuple[StripColumn, ...], place: int) -> float:
    return _LEFT_PERCENT + place * _step(columns)


def _y(tokens: float, scale: int) -> float:
    return round(PLOT_TOP + PLOT_HEIGHT * (1 - tokens / scale), 2)


def _column(columns: tuple[StripColumn, ...], place: int, scale: int) -> ColumnView:
    column = columns[place]
    x, step = _x(columns, place), _step(columns)
    width = f"{step * 0.84:.3f}%"
    left = f"{x:.3f}%"
    blocks: list[Block] = []
    below = 0
    for layer in LAYERS:
        tokens = int(getattr(column, layer.name))
        if tokens:
            top = _y(below + tokens, scale)
            height = round(_y(below, scale) - top, 2)
            blocks.append(Block(left, top, width, height, layer.fill, layer.title))
            below += tokens
    if column.given_up:
        top = max(float(PLOT_TOP), _y(below + column.given_up, scale))
        height = round(_y(below, scale) - top, 2)
        blocks.append(Block(left, top, width, height, "f-given", "given up"))
    return ColumnView(
        id=column.id,
        label=column.label,
        title=_title(column),
        hit=Block(left, PLOT_TOP, f"{step:.3f}%", AXIS_TOP - PLOT_TOP, "f-hit"),
        blocks=tuple(blocks),
        cache=_cache(column, left, x, step),
    )


def _title(column: StripColumn) -> str:
    parts = [
        f"{layer.title} {number(getattr(column, layer.name))}"
        for layer in LAYERS
        if getattr(column, layer.name)
    ]
    return f"Request {column.label}: {number(column.total)} tokens ({', '.join(parts)})"


def _cache(column: StripColumn, left: str, x: float, step: float) -> tuple[Block, ...]:
    prompt = column.usage.prompt
    if not prompt:
        return ()
    blocks: list[Block] = []
    before = 0.0
    for tokens, fill, title in (
        (column.usage.read, "f-ok", "read from cache"),
        (column.usage.write, "f-written", "written to cache"),
        (column.usage.fresh, "f-fresh", fresh_words(column.usage)),
    ):
        if tokens:
            part = step * 0.84 * tokens / prompt
            label = f"{title} {number(tokens)}"
            blocks.append(Block(f"{x + before:.3f}%", CACHE_TOP, f"{part:.3f}%", 12, fill, label))
            before += part
    return tuple(blocks)


def _bands(columns: tuple[StripColumn, ...], prefix_tokens: dict[int, int]) -> tuple[Band, ...]:
    bands: list[Band] = []
    start = 0
    for place in range(1, len(columns) + 1):
        if place < len(columns) and columns[place].epoch == columns[start].epoch:
            continue
        column = columns[start]
        left = _x(columns, start)
        width = (place - start) * _step(columns)
        tokens = prefix_tokens.get(column.epoch)
        words = f"Epoch {column.epoch}"
        if width > 16 and tokens is not None:
            words += f" · prefix {column.prefix_sha256[:8]} · {number(tokens)}"
        fill = "f-band-odd" if column.epoch % 2 else "f-band-even"
        bands.append(
            Band(
                Block(f"{left:.3f}%", 30, f"{width - 0.1:.3f}%", 18, fill),
                words if width > 5 else "",
                f"{left + 0.5:.3f}%",
                column.epoch,
            )
        )
        start = place
    return tuple(bands)


def _markers(columns: tuple[StripColumn, ...], acts: tuple[Act, ...]) -> tuple[MarkerView, ...]:
    """One sign above a column that acts changed: that of the gravest; its title names them all."""
    by_place: dict[int, list[Act]] = {}
    for act in acts:
        place = _place_of(columns, act)
        if place is not None and act.type in _GLYPHS:
            by_place.setdefault(place, []).append(act)
    placed: list[MarkerView] = []
    for place, together in by_place.items():
        first = min(together, key=lambda act: _RANKS.index(act.type))
        glyph, fill, _ = _GLYPHS[first.type]
        words = ", ".join(dict.fromkeys(_act_words(act) for act in together))
        middle = _x(columns, place) + 0.42 * _step(columns)
        placed.append(
            MarkerView(f"{middle:.3f}%", glyph, fill, words, first.sequence, columns[place].label)
        )
    return tuple(placed)


def _act_words(act: Act) -> str:
    """What an act is, and of a rotation what it cost."""
    words = _GLYPHS[act.type][2]
    if act.type != EventType.EPOCH_ROTATED:
        return words
    tokens = act.payload.get("recached_tokens", 0)
    if not tokens:
        return f"{words}, nothing re-cached"
    price = act.payload.get("price_usd")
    return f"{words}, {number(tokens)} prefix tokens re-cached" + (
        f" for {dollars(price)}" if price else ""
    )


def _acts(columns: tuple[StripColumn, ...], acts: tuple[Act, ...]) -> tuple[ActGroup, ...]:
    """Each kind with the requests it shows in, each named once, by the first event of the kind."""
    groups: dict[str, dict[str, ActPlace]] = {}
    for act in acts:
        place = _place_of(columns, act)
        if place is not None and act.type in _GLYPHS:
            label = columns[place].label
            groups.setdefault(act.type, {}).setdefault(label, ActPlace(act.sequence, label))
    return tuple(
        ActGroup(_GLYPHS[kind][0], _GLYPHS[kind][2], tuple(places.values()))
        for kind, places in groups.items()
    )


def _place_of(columns: tuple[StripColumn, ...], act: Act) -> int | None:
    """The column of the request that the act names; otherwise the first one that saw it."""
    named = act.payload.get("request") or act.payload.get("forced_by")
    for place, column in enumerate(columns):
        if str(column.id) == named:
            return place
    for place, column in enumerate(columns):
        if max(column.content_sequence, column.act_sequence) >= act.sequence:
            return place
    return len(columns) - 1 if columns else None


def _runs(columns: tuple[StripColumn, ...]) -> tuple[Tick, ...]:
    ticks: list[Tick] = []
    last = -100.0
    for place, column in enumerate(columns):
        first = place == 0 or column.run_number != columns[place - 1].run_number
        x = _x(columns, place)
        # Numbers closer than this would overlap on a narrow screen.
        if first and x - last >= 2.4:
            words = f"run {column.run_number}" if not ticks else str(column.run_number)
            ticks.append(Tick(f"{x:.3f}%", AXIS_TOP + 14, words))
            last = x + (2.4 if len(ticks) == 1 else 0)
    return tuple(ticks)
