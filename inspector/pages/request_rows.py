"""P5, first tab: the fifteen rows and why each looks as it does."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from ctxengine.engine.layout import ROWS, Region, Row
from ctxengine.engine.manifest import Form, Manifest, Reason, RowTotal, Span
from inspector.access import Viewer, member
from inspector.figures import number
from inspector.pages.request_frame import frame_of, shell_of
from inspector.reasons import FORM_WORDS, STAND_INS, WORDS, figures_of, why
from inspector.render import Twin, show
from inspector.request_contexts import RowLine, RowsPage
from inspector.ruler import region_sum
from inspector.standing import stands_for_others
from inspector.trust import lowest_first

_BAR = 90
_NEAR = 0.8


@require_safe
@member()
def request_rows(
    request: HttpRequest, viewer: Viewer, request_id: UUID, twin: Twin
) -> HttpResponse:
    """All fifteen rows, empty ones too, and what was left out."""
    frame = frame_of(viewer, request_id, "request", request)
    manifest = frame.request.manifest
    lines = [row_line(row, manifest) for row in ROWS]
    page = RowsPage(
        shell=shell_of(viewer, frame, "request", "Rows"),
        frame=frame,
        region_a=tuple(line for line in lines if line.row.region is Region.A),
        region_b=tuple(line for line in lines if line.row.region is Region.B),
        sum_a=region_sum(manifest, Region.A),
        sum_b=region_sum(manifest, Region.B),
        out=tuple(
            (span, why(span, manifest.cut)) for span in manifest.spans if span.form is Form.OUT
        ),
    )
    return show(request, "request_rows.html", page, twin)


def row_line(row: Row, manifest: Manifest) -> RowLine:
    """One row as it stands in a request."""
    total = next((entry for entry in manifest.rows if entry.row == row.number), None)
    if total is None:
        total = RowTotal(row=row.number, tokens=0, items=0, source="", reason=_nothing(row))
    elif not total.tokens and total.reason is Reason.NEVER_YIELDS:
        total = total.model_copy(update=_empty(row, manifest))
    spans = [span for span in manifest.spans if span.row == row.number]
    cap = total.cap_tokens
    used = min(1.0, total.tokens / cap) if cap else 0.0
    trusts = tuple(level for level, _ in lowest_first(total.trust)) or (row.trust,)
    return RowLine(
        row=row,
        total=total,
        trusts=trusts,
        cap=cap,
        bar=round(_BAR * used) if cap else None,
        near_cap=used >= _NEAR,
        words=tuple(_words(total, spans)),
        source="≈" if total.source == "estimated" else "",
    )


def _nothing(row: Row) -> Reason:
    return Reason.NOTHING_PINNED if row.region is Region.A else Reason.NOTHING_THIS_STEP


def _empty(row: Row, manifest: Manifest) -> dict[str, object]:
    """Why a row of a step holds no token: it stands where it was sent, it gave way, or there is nothing of it."""
    if any(span.numbers.get(f"row_{row.number}") for span in manifest.spans):
        return {"items": 0, "reason": Reason.SENT_EARLIER}
    ran = [step.budget_class for step in manifest.yields if step.outcome == "ran"]
    if row.budget_class in ran:
        return {"reason": Reason.YIELDED}
    return {"items": 0, "reason": Reason.NOTHING_THIS_STEP}


def _words(total: RowTotal, spans: list[Span]) -> list[str]:
    """One line for each fate in the row; the row's own reason where it holds no items."""
    placed = [span for span in spans if span.from_item and span.form is not Form.OUT]
    return [_span_words(span) for span in placed] or [WORDS[total.reason]]


def _stand_in_words(span: Span) -> str:
    """What stands for a range of events, by what it is and what it stands for."""
    first, last = ((item or "").partition(".")[0] for item in (span.from_item, span.to_item))
    what = STAND_INS.get(span.reason, FORM_WORDS[span.form])
    told = figures_of(span)
    words = f"{what} for events {number(int(first))} to {number(int(last))}"
    return f"{words} ({told})" if told else words


def _span_words(span: Span) -> str:
    items = f"{number(span.items)} item" + ("" if span.items == 1 else "s")
    place = f"{span.from_item} to {span.to_item}" if span.items > 1 else f"{span.from_item}"
    if stands_for_others(span):
        return _stand_in_words(span)
    form = "results as pointers" if span.form is Form.POINTER else FORM_WORDS[span.form]
    return f"{items}, {place}, {form}: {why(span)}"
