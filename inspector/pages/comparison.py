"""Two requests side by side: the verdict of the diff service, and the bodies part by part."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ctxengine.engine.layout import ROWS, Row
from ctxengine.ledger.queries.request import RequestDetail
from ctxengine.service.access import session_of
from ctxengine.service.body_of_request import request_body
from ctxengine.service.diff import diff_requests
from ctxengine.service.specs import ServiceError
from inspector.access import Viewer
from inspector.bodydiff import PartChange, changes
from inspector.jsonview import JsonPart, parts_of
from inspector.reasons import row_of
from inspector.request_contexts import ChangeRow, Comparison
from inspector.ruler import row_segments, track

_TRACK_PX = 760
GONE = 410
"""Status of a body whose content is no longer kept."""
_KEEPING = frozenset({"same", "appended"})

# Markers move with every step and are no content: providers leave them out of what they cache.
_MARKER = re.compile(r',?"cache_control":\{[^{}]*\}')


def compare_requests(viewer: Viewer, before: RequestDetail, after: RequestDetail) -> Comparison:
    """Everything that the change tab and the diff page show.

    Raises:
        ServiceError: a body cannot be rebuilt.
    """
    verdict = diff_requests(actor=viewer.actor, a=before.id, b=after.id)
    gone = ""
    parts: tuple[PartChange, ...] = ()
    try:
        parts = changes(_parts(viewer, before), _parts(viewer, after))
    except ServiceError as refused:
        if refused.status != GONE:
            raise
        gone = refused.detail
    scale = max(before.total_tokens, after.total_tokens, 1)
    rows = tuple(_row(entry) for entry in verdict.rows)
    first = verdict.first_changed
    newer = max(before.epoch, after.epoch)
    turned = verdict.same_session and before.epoch != after.epoch
    newest = session_of(viewer.actor, after.session_id).epoch if turned else newer
    return Comparison(
        before=before,
        after=after,
        same_bytes=verdict.same_prefix_bytes,
        same_tokens=verdict.same_prefix_tokens,
        first_byte=first.byte if first else None,
        first_row=row_of(first.row) if first else None,
        first_item=first.item or "" if first else "",
        event_sequence=first.event_sequence if first else None,
        event_type=first.event_type or "" if first else "",
        cause=verdict.cause,
        detail=verdict.detail,
        gone=gone,
        appended_only=verdict.cause in _KEEPING,
        moved=not _appended_only(parts),
        rows=rows,
        parts=parts,
        before_track=track(row_segments(before.manifest), scale, _TRACK_PX),
        after_track=track(row_segments(after.manifest), scale, _TRACK_PX),
        change_x=f"{100 * min(verdict.same_prefix_tokens, scale) / scale:.2f}%",
        identical_session=verdict.same_session,
        newer_epoch=newer,
        epoch_above=newer + 1 if newest > newer else None,
        equal_rows=len(ROWS) - sum(1 for row in rows if row.changed),
        difference=after.total_tokens - before.total_tokens,
    )


def _row(entry: Mapping[str, Any]) -> ChangeRow:
    row: Row = row_of(int(entry["row"]))
    return ChangeRow(
        row, int(entry["before_tokens"]), int(entry["after_tokens"]), bool(entry["changed"])
    )


def _parts(viewer: Viewer, request: RequestDetail) -> tuple[JsonPart, ...]:
    body = request_body(actor=viewer.actor, request_id=request.id)
    text = body.decode("utf-8", "surrogatepass")
    try:
        found = parts_of(text)
    except ValueError as error:
        raise ServiceError(
            "unreadable_body", 500, f"The rebuilt body is no JSON: {error}"
        ) from error
    return tuple(JsonPart(part.path, _MARKER.sub("", part.raw), part.caption) for part in found)


def _appended_only(parts: tuple[PartChange, ...]) -> bool:
    kinds = [part.kind for part in parts]
    return set(kinds) <= {"equal", "added"} and "equal" in kinds
