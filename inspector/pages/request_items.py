"""P5: the items of a request, each in its form, left-out ones included."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponseBase
from django.views.decorators.http import require_safe

from ctxengine.engine.ids import EventSeq, ItemId, parse_item_id
from ctxengine.engine.items import ItemKind
from ctxengine.engine.manifest import Cut, Form, Manifest, Span
from ctxengine.engine.trust.levels import Trust
from ctxengine.ledger.queries.items import ItemFilter, ItemLine, item_window
from inspector.access import Viewer, member
from inspector.filters import free, one_of, whole_number
from inspector.pages.numbers import whole
from inspector.pages.request_frame import frame_of, shell_of
from inspector.reasons import FORM_WORDS, row_of, why
from inspector.render import Twin, csv_stream, show
from inspector.request_contexts import ItemsPage, ItemView, RequestFrame, SpanView

WINDOW = 100
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
    spans = _chosen(request, frame.request.manifest)
    cut = frame.request.manifest.cut
    if twin is Twin.CSV:
        every = _every(request, viewer, frame, spans)
        return csv_stream("items", CSV_HEADER, (_csv(item) for item in every))
    size = WINDOW if twin is Twin.HTML else _EXPORT_WINDOW
    below = request.GET.get("below", "")
    items, older = _items(request, viewer, frame, spans, size, below)
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


def _chosen(request: HttpRequest, manifest: Manifest) -> list[Span]:
    """The spans asked for: those in the request, unless one or one form is named."""
    place = whole(request, "span")
    if place is not None:
        if place >= len(manifest.spans):
            raise Http404("No such span.")
        return [manifest.spans[place]]
    form, row = request.GET.get("form", ""), whole(request, "row")
    spans = [span for span in manifest.spans if row is None or span.row == row]
    if form:
        return [span for span in spans if span.form.value == form]
    return [span for span in spans if span.form not in (Form.OUT, Form.EMPTY)]


def _every(
    request: HttpRequest, viewer: Viewer, frame: RequestFrame, spans: list[Span]
) -> Iterator[ItemView]:
    """All items of the filter, the newest window first."""
    below = request.GET.get("below", "")
    while True:
        items, below = _items(request, viewer, frame, spans, _EXPORT_WINDOW, below)
        yield from items
        if not below:
            return


def _items(
    request: HttpRequest,
    viewer: Viewer,
    frame: RequestFrame,
    spans: list[Span],
    size: int,
    below: str,
) -> tuple[tuple[ItemView, ...], str]:
    bounds = [_bounds(span) for span in spans if span.from_item]
    if not bounds:
        return (), ""
    where = ItemFilter(
        first=min(first for first, _ in bounds),
        last=max(last for _, last in bounds),
        kind=request.GET.get("kind", ""),
        trust=request.GET.get("trust", ""),
    )
    window = item_window(
        viewer.tenant_id,
        frame.request.session_id,
        where,
        size=size,
        below=_item_or_404(below) if below else None,
    )
    cut = frame.request.manifest.cut
    placed = [(line, _span_of(line, spans)) for line in window.items]
    return (
        tuple(_view(line, span, cut) for line, span in placed if span is not None),
        window.older,
    )


def _bounds(span: Span) -> tuple[ItemId, EventSeq]:
    first = parse_item_id(span.from_item or "0.0")
    return first, parse_item_id(span.to_item).sequence if span.to_item else first.sequence


def _holds(span: Span, item: ItemId) -> bool:
    first, last = _bounds(span)
    return first <= item and item.sequence <= last


def _item_or_404(text: str) -> ItemId:
    try:
        return parse_item_id(text)
    except ValueError as error:
        raise Http404(str(error)) from error


def _span_of(line: ItemLine, spans: list[Span]) -> Span | None:
    """The span that holds an item; a result belongs to a shortening span where one covers it."""
    holding = [span for span in spans if span.from_item and _holds(span, line.id)]
    if len(holding) < 2:
        return holding[0] if holding else None
    shortened = line.kind == ItemKind.TOOL_RESULT
    fitting = [span for span in holding if (span.form is not Form.WHOLE) == shortened]
    return (fitting or holding)[0]


def _view(line: ItemLine, span: Span, cut: Cut) -> ItemView:
    # A pointer span may cover whole steps, of which only the results are shortened.
    shortened = span.form is Form.POINTER and line.kind != ItemKind.TOOL_RESULT
    form = Form.WHOLE if shortened else span.form
    tokens = line.pointer_tokens if form is Form.POINTER else line.tokens
    reason = (
        "kept whole; only the results of these steps are pointers" if shortened else why(span, cut)
    )
    return ItemView(line, span.row, form.value, FORM_WORDS[form], reason, tokens)


def _csv(item: ItemView) -> tuple[object, ...]:
    line = item.line
    return (
        str(line.id), item.row, item.form, item.reason, line.kind, line.trust, line.name,
        line.source, item.tokens, line.bytes_len, line.digest,
    )  # fmt: skip
