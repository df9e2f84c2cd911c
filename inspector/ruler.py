"""The ruler: a request's rows to scale, as geometry for an SVG (ui 4.2).

One function feeds header, bar and table, so that the parts always add up to the whole.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ctxengine.engine.layout import ROWS, Region
from ctxengine.engine.manifest import Budget, Manifest
from ctxengine.ledger.queries.usage import Usage
from inspector.figures import number
from inspector.trust import MARKS, lowest_first, mark_of

_SMALL_PERCENT = 0.34
"""Below this a segment is under about four pixels of a desk screen and joins its neighbours."""
_CHAR_PX, _LABEL_MARGIN_PX = 6.6, 14
"""About what a label takes; a label that would be cut is not drawn, its segment still has a title."""
_WORDS = {f"f-{mark.css}": mark.word for mark in MARKS.values()}
_WIDE_PX, _NARROW_PX = 1_150, 330
"""Width of a track on a desk and on a phone."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One part of a track."""

    label: str
    tokens: int
    fill: str
    """CSS class of the fill."""
    row: int = 0
    """Row number; 0 for parts that are no row."""
    x: str = "0%"
    width: str = "0%"
    show_label: bool = False
    narrow_label: bool = False
    """Whether the label still fits on a narrow screen."""

    @property
    def title(self) -> str:
        """What a reader of the graphic is told."""
        return f"{self.label}: {number(self.tokens)} tokens"


@dataclass(frozen=True, slots=True)
class Figure:
    """A named sum of the ruler."""

    label: str
    tokens: int
    fill: str = ""


@dataclass(frozen=True, slots=True)
class Ruler:
    """The tracks of a request and the figures beside them."""

    scale_tokens: int
    window: tuple[Segment, ...]
    """A, B, free, margin and reserve; together exactly `scale_tokens`."""
    magnified: tuple[Segment, ...]
    """The rows alone, to the scale of the request; empty when the window track shows them well."""
    cache: tuple[Segment, ...]
    cache_source: str
    """`reported`, `predicted` or empty when neither is known."""
    regions: tuple[Figure, ...]
    by_trust: tuple[Figure, ...]
    unexplained: int
    """Usable tokens against what total, reserve, margin and factor give: nought unless they contradict."""


def ruler_of(manifest: Manifest, budget: Budget, predicted: Usage, usage: Usage) -> Ruler:
    """Build the tracks from what the request recorded."""
    rows = _row_segments(manifest)
    used = sum(segment.tokens for segment in rows)
    frozen = sum(segment.tokens for segment in rows if segment.row <= 8)
    room = [
        Segment("free", max(0, budget.usable - used), "f-free"),
        Segment("margin", budget.margin, "f-margin"),
        Segment("output reserve", budget.reserve, "f-reserve"),
    ]
    admitted = budget.total - budget.reserve - budget.margin
    if admitted > budget.usable:
        # A factor above 1: counts run low, so that many tokens must stay unused.
        room.insert(1, Segment("calibration", admitted - budget.usable, "f-margin"))
    scale = used + sum(segment.tokens for segment in room)
    unexplained = budget.usable - round(admitted / budget.factor)
    known = usage if usage.reported else predicted
    return Ruler(
        scale_tokens=scale,
        window=_placed(_merged([*rows, *room], scale), scale),
        magnified=_placed(_merged(rows, used), used) if used and used < 0.5 * scale else (),
        cache=_placed(_cache_segments(known), max(scale, known.prompt or 0)),
        cache_source=_source(predicted, usage),
        regions=(
            Figure("A · frozen prefix", frozen),
            Figure("B · turn body", used - frozen),
            *(Figure(segment.label, segment.tokens) for segment in room),
        ),
        by_trust=_by_trust(manifest),
        unexplained=unexplained if abs(unexplained) > 1 else 0,
    )


def track(segments: list[Segment], scale: int, width_px: int) -> tuple[Segment, ...]:
    """Any list of parts as a placed track, about so wide on a desk."""
    return _placed(_merged(segments, scale), scale, width_px)


def row_segments(manifest: Manifest) -> list[Segment]:
    """Rows of a manifest, each split by trust level, in order."""
    return _row_segments(manifest)


def _row_segments(manifest: Manifest) -> list[Segment]:
    found = {total.row: total for total in manifest.rows}
    segments: list[Segment] = []
    for row in ROWS:
        total = found.get(row.number)
        if total is None or not total.tokens:
            continue
        levels = lowest_first(total.trust)
        named = sum(tokens for _, tokens in levels)
        for level, tokens in levels:
            mark = mark_of(level)
            label = row.title if len(levels) == 1 else f"{row.title}, {mark.word}"
            segments.append(Segment(label, tokens, f"f-{mark.css}", row.number))
        if total.tokens > named:
            fallback = mark_of(row.trust)
            segments.append(
                Segment(row.title, total.tokens - named, f"f-{fallback.css}", row.number)
            )
    return segments


def _merged(segments: list[Segment], scale: int) -> list[Segment]:
    """Join runs of segments that would be too thin to see or to hit."""
    merged: list[Segment] = []
    thin: list[Segment] = []
    for segment in segments:
        if segment.tokens and scale and 100 * segment.tokens / scale < _SMALL_PERCENT:
            thin.append(segment)
            continue
        merged += _joined(thin)
        thin = []
        if segment.tokens:
            merged.append(segment)
    return merged + _joined(thin)


def _joined(thin: list[Segment]) -> list[Segment]:
    if len(thin) < 2:
        return thin
    largest = max(thin, key=lambda segment: segment.tokens)
    names = ", ".join(f"{segment.label} {number(segment.tokens)}" for segment in thin)
    return [
        replace(
            largest,
            label=f"{len(thin)} small parts ({names})",
            tokens=sum(segment.tokens for segment in thin),
        )
    ]


def _placed(segments: list[Segment], scale: int, width_px: int = _WIDE_PX) -> tuple[Segment, ...]:
    placed: list[Segment] = []
    before = 0
    for segment in segments:
        share = 100 * segment.tokens / scale if scale else 0
        placed.append(
            replace(
                segment,
                x=f"{100 * before / scale if scale else 0:.3f}%",
                width=f"{share:.3f}%",
                show_label=_fits(segment.label, share, width_px),
                narrow_label=_fits(segment.label, share, _NARROW_PX),
            )
        )
        before += segment.tokens
    return tuple(placed)


def _fits(label: str, share: float, track_px: int) -> bool:
    return len(label) * _CHAR_PX + _LABEL_MARGIN_PX <= track_px * share / 100


def fresh_words(usage: Usage) -> str:
    """What the fresh bucket is: where a provider says nothing of its cache, what it read stands there too."""
    return "fresh, not cached" if usage.read is not None else "input, cache not reported"


def _cache_segments(usage: Usage) -> list[Segment]:
    parts = (
        ("read from cache", usage.read, "f-ok"),
        ("written to cache", usage.write, "f-written"),
        (fresh_words(usage), usage.fresh, "f-fresh"),
    )
    return [Segment(label, tokens, fill) for label, tokens, fill in parts if tokens]


def _source(predicted: Usage, usage: Usage) -> str:
    if usage.reported:
        return "reported"
    return "predicted" if predicted.reported else ""


def _by_trust(manifest: Manifest) -> tuple[Figure, ...]:
    sums: dict[str, int] = {}
    for segment in _row_segments(manifest):
        sums[segment.fill] = sums.get(segment.fill, 0) + segment.tokens
    return tuple(Figure(_WORDS.get(fill, "mixed"), tokens, fill) for fill, tokens in sums.items())


def region_sum(manifest: Manifest, region: Region) -> int:
    """Tokens of all rows of a region."""
    numbers = {row.number for row in ROWS if row.region is region}
    return sum(total.tokens for total in manifest.rows if total.row in numbers)
