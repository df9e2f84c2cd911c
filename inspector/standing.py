"""How one item stood in the requests that were built after it: the way from "it forgot this" to the reason."""

from __future__ import annotations

from uuid import UUID

from ctxengine.engine.ids import ItemId, parse_item_id
from ctxengine.engine.manifest import Form, Manifest, Reason, Span
from ctxengine.ledger.queries.request import BuiltManifest, manifests_since
from inspector.console_contexts import Standing
from inspector.reasons import FORM_WORDS, row_of, why

MOST = 60
"""Requests looked at: the newest of the session."""
_ROW_NINE = 9


def standings(tenant_id: UUID, session_id: UUID, item: ItemId, kind: str) -> tuple[Standing, ...]:
    """The newest requests that could have held the item, with the form it took; runs of one form are one line. One query."""
    rows = manifests_since(tenant_id, session_id, item.sequence, most=MOST)
    found: list[Standing] = []
    for row in rows:
        one = _standing(row, item, kind)
        last = found[-1] if found else None
        if last and (last.form_key, last.code, last.row) == (one.form_key, one.code, one.row):
            found[-1] = Standing(
                request_id=last.request_id,
                label=last.label,
                at=last.at,
                form=last.form,
                form_key=last.form_key,
                code=last.code,
                reason=last.reason,
                row=last.row,
                first_label=one.label,
                count=last.count + 1,
            )
        else:
            found.append(one)
    return tuple(found)


def _standing(row: BuiltManifest, item: ItemId, kind: str) -> Standing:
    cut = row.manifest.cut
    span = span_of(row.manifest, item, kind)
    return Standing(
        request_id=row.id,
        label=row.label,
        at=row.created_at,
        form=FORM_WORDS[span.form] if span else "not listed",
        form_key=span.form.value if span else "",
        code=span.reason.value if span else "",
        reason=why(span, cut) if span else "the manifest names no span with it",
        row=row_of(span.row).title if span else "",
        first_label=row.label,
        count=1,
    )


def span_of(manifest: Manifest, item: ItemId, kind: str) -> Span | None:
    """The span of a request that says how an item stands in it.

    What row 9 shows stands for others and is none of them. Where a range was left out and a part of it shown again, or told
    by itself, the narrowest span speaks for the item.
    """
    holding = [span for span in manifest.spans if not stands_for_others(span) and holds(span, item)]
    if not holding:
        return None
    nearest = min(holding, key=width)
    if nearest.form is Form.OUT:
        return nearest
    shown = [span for span in holding if span.form is not Form.OUT]
    # A shortening span beside a whole one over the same steps is about the results alone.
    shortened = kind == "tool_result"
    fitting = [span for span in shown if (span.form is not Form.WHOLE) == shortened]
    return min(fitting or shown, key=width)


def stands_for_others(span: Span) -> bool:
    """Whether a span is a text of ours about a range of items, and not these items: a summary, packet, card or notice."""
    return span.row == _ROW_NINE


def holds(span: Span, item: ItemId) -> bool:
    """Whether a span speaks of an item: of one alone where that was left out by hand."""
    if span.from_item is None:
        return False
    first = parse_item_id(span.from_item)
    if span.reason is Reason.EXCLUDED_BY_HAND:
        return first == item
    last = parse_item_id(span.to_item).sequence if span.to_item else first.sequence
    return first <= item and item.sequence <= last


def width(span: Span) -> tuple[int, bool]:
    """Events that a span runs over; of two over the same ones, an item left out by hand is the narrower."""
    first = parse_item_id(span.from_item or "0.0").sequence
    last = parse_item_id(span.to_item).sequence if span.to_item else first
    return last - first, span.reason is not Reason.EXCLUDED_BY_HAND
