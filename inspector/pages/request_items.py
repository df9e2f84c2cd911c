"""P5: the items of a request, each in its form, left-out ones included."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponseBase
from django.views.decorators.http import require_safe

from ctxengine.engine.evidence.excerpt import WINDOWED_ENGINES
from ctxengine.engine.ids import EventSeq, ItemId, parse_item_id
from ctxengine.engine.items import ItemKind
from ctxengine.engine.manifest import Cut, Form, Manifest, Span
from ctxengine.engine.trust.levels import Trust
from ctxengine.ledger.queries.items import ItemFilter, ItemLine, item_window
from ctxengine.ledger.queries.plans import inline_unit
from inspector.access import Viewer, member
from inspector.figures import number, size
from inspector.filters import free, one_of, whole_number
from inspector.pages.numbers import whole
from inspector.pages.request_frame import frame_of, shell_of
from inspector.reasons import FORM_WORDS, row_of, why
from inspector.render import Twin, csv_stream, show
from inspector.request_contexts import ItemsPage, ItemView, RequestFrame, SpanView
from inspector.standing import holds, stands_for_others, width

WINDOW = 100
_EXCERPTS = frozenset({Form.EXCERPT.value, Form.WINDOW.value})
_WHOLES = _EXCERPTS | {Form.WHOLE.value}
_EXPORT_WINDOW = 1_000
"""Items read at once for a twin; the CSV has all of them, the JSON names the way to older ones."""
_FILTERS = ("kind", "trust", "form", "row", "span")
CSV_HEADER = (
    "item", "row", "form", "reason", "kind", "trust", "name", "source", "tokens", "bytes",
    "digest",
)  # fmt: skip
ASKS = {
    "kind": one_of(*(kind.value for kind in ItemKind)),
    "trust": one_of(*(level.value for level in Trust)),
    "form": one_of(*(form.value for form in Form)),
    "row": whole_number,
    "span": whole_number,
    "below": free,
    "in": free,
}


@require_safe
@member(asks=ASKS)
def request_items(
    request: HttpRequest, viewer: Viewer, request_id: UUID, twin: Twin
) -> HttpResponseBase:
    """The newest items of the request in its own order, with filters and a way to older ones."""
    frame = frame_of(viewer, request_id, "request-items", request)
    wanted = _chosen(request, frame.request.manifest)
    cut = frame.request.manifest.cut
    if twin is Twin.CSV:
        every = _every(request, viewer, frame, wanted)
        return csv_stream("items", CSV_HEADER, (_csv(item) for item in every))
    most = WINDOW if twin is Twin.HTML else _EXPORT_WINDOW
    below = request.GET.get("below", "")
    items, older = _items(request, viewer, frame, wanted, most, below)
    page = ItemsPage(
        shell=shell_of(viewer, frame, "request-items", "Items"),
        frame=frame,
        spans=tuple(
            SpanView(place, span, row_of(span.row), FORM_WORDS[span.form], why(span, cut))
            for place, span in enumerate(frame.request.manifest.spans)
        ),
        items=items,
        older=older,
        chosen={name: request.GET.get(name, "") for name in _FILTERS},
        kinds=tuple(kind.value for kind in ItemKind),
        trusts=tuple(level.value for level in Trust),
        forms=tuple(form.value for form in Form if form is not Form.EMPTY),
    )
    return show(request, "request_items.html", page, twin)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Which items are listed: those whose one fate is among the chosen spans, or that a chosen span stands in for."""

    spans: tuple[Span, ...]
    """All of the manifest: an item's fate is looked for among them."""
    chosen: frozenset[int]
    """Places of the chosen ones."""

    def bounds(self) -> list[tuple[ItemId, EventSeq]]:
        """Ranges that the chosen spans hold."""
        return [
            _bounds(span)
            for place, span in enumerate(self.spans)
            if place in self.chosen and span.from_item
        ]

    def fate(self, line: ItemLine) -> Span | None:
        """The one span that says how an item stands in the request; None where that one was not asked for."""
        place = _fate(line, self.spans)
        if place is None:
            return None
        span = self.spans[place]
        told = span.form is Form.OUT and any(
            stands_for_others(self.spans[chosen]) and holds(self.spans[chosen], line.id)
            for chosen in self.chosen
        )
        return span if told or place in self.chosen else None


def _chosen(request: HttpRequest, manifest: Manifest) -> _Wanted:
    """The spans asked for: those in the request, unless one or one form is named."""
    spans = tuple(manifest.spans)
    place = whole(request, "span")
    if place is not None:
        if place >= len(spans):
            raise Http404("No such span.")
        return _Wanted(spans, frozenset({place}))
    form, row = request.GET.get("form", ""), whole(request, "row")
    return _Wanted(
        spans,
        frozenset(
            place
            for place, span in enumerate(spans)
            if (row is None or span.row == row) and _asked(span, form, row)
        ),
    )


def _asked(span: Span, form: str, row: int | None) -> bool:
    if form:
        # Excerpts have no span of their own: they stand among what is whole.
        return span.form.value == (Form.WHOLE.value if form in _EXCERPTS else form)
    if span.form in (Form.OUT, Form.EMPTY):
        return False
    # What stands in for items is no item: those are listed where its row is asked for, as what they are.
    return row is not None or not stands_for_others(span)


def _every(
    request: HttpRequest, viewer: Viewer, frame: RequestFrame, wanted: _Wanted
) -> Iterator[ItemView]:
    """All items of the filter, the newest window first."""
    below = request.GET.get("below", "")
    while True:
        items, below = _items(request, viewer, frame, wanted, _EXPORT_WINDOW, below)
        yield from items
        if not below:
            return


def _items(
    request: HttpRequest,
    viewer: Viewer,
    frame: RequestFrame,
    wanted: _Wanted,
    most: int,
    below: str,
) -> tuple[tuple[ItemView, ...], str]:
    bounds = wanted.bounds()
    engine, asked = frame.request.engine, request.GET.get("form", "")
    if not bounds or (asked in _EXCERPTS and asked != _excerpt_of(engine).value):
        return (), ""
    where = ItemFilter(
        first=min(first for first, _ in bounds),
        last=max(last for _, last in bounds),
        kind=request.GET.get("kind", ""),
        trust=request.GET.get("trust", ""),
        # Asked of the ledger and not of the window, which may hold none of what older ones are.
        over_limit=asked in _EXCERPTS if asked in _WHOLES else None,
    )
    window = item_window(
        viewer.tenant_id,
        frame.request.session_id,
        where,
        size=most,
        below=_item_or_404(below) if below else None,
    )
    cut = frame.request.manifest.cut
    placed = [(line, wanted.fate(line)) for line in window.items]
    over = any(line.excerpt_limit for line, _ in placed)
    shown = frame.request
    unit = inline_unit(viewer.tenant_id, shown.session_id, shown.epoch) if over else ""
    views = [_view(line, span, cut, engine, unit) for line, span in placed if span is not None]
    return (
        tuple(view for view in views if asked not in _WHOLES or view.form == asked),
        window.older,
    )


def _bounds(span: Span) -> tuple[ItemId, EventSeq]:
    first = parse_item_id(span.from_item or "0.0")
    return first, parse_item_id(span.to_item).sequence if span.to_item else first.sequence


def _item_or_404(text: str) -> ItemId:
    try:
        return parse_item_id(text)
    except ValueError as error:
        raise Http404(str(error)) from error


def _fate(line: ItemLine, spans: Sequence[Span]) -> int | None:
    """Place of the span that says how an item stands: the narrowest of those that hold it.

    Among equals a result belongs to the span that shortens it, and anything else to one that does not.
    """
    holding = [
        place
        for place, span in enumerate(spans)
        if span.from_item and not stands_for_others(span) and holds(span, line.id)
    ]
    if not holding:
        return None
    shortened = line.kind == ItemKind.TOOL_RESULT

    def rank(place: int) -> tuple[int, bool, bool, int]:
        fits = (spans[place].form is not Form.WHOLE) == shortened
        return (*width(spans[place]), not fits, place)

    return min(holding, key=rank)


def _excerpt_of(engine: str) -> Form:
    """How an engine shows what is over its limit."""
    return Form.WINDOW if engine in WINDOWED_ENGINES else Form.EXCERPT


def _view(line: ItemLine, span: Span, cut: Cut, engine: str, unit: str) -> ItemView:
    code = span.reason.value
    if span.form is Form.WHOLE and line.excerpt_limit:
        form = _excerpt_of(engine)
        reason = (
            f"▲ {size(line.bytes_len)}, over the {number(line.excerpt_limit)} {unit} that one result may take: both ends stand"
            f" here, recall gives the whole; {why(span, cut)}"
        )
        return ItemView(line, span.row, form.value, FORM_WORDS[form], reason, code, line.tokens)
    # A pointer span may cover whole steps, of which only the results are shortened.
    shortened = span.form is Form.POINTER and line.kind != ItemKind.TOOL_RESULT
    form = Form.WHOLE if shortened else span.form
    tokens = line.pointer_tokens if form is Form.POINTER else line.tokens
    reason = (
        "kept whole; only the results of these steps are pointers" if shortened else why(span, cut)
    )
    return ItemView(line, span.row, form.value, FORM_WORDS[form], reason, code, tokens)


def _csv(item: ItemView) -> tuple[object, ...]:
    line = item.line
    return (
        str(line.id), item.row, item.form, item.reason, line.kind, line.trust, line.name,
        line.source, item.tokens, line.bytes_len, line.digest,
    )  # fmt: skip
