"""P5: the events that led to this request."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from ctxengine.ledger.queries.events import EventLine, event_page
from ctxengine.ledger.queries.request import RequestDetail, neighbours
from inspector.access import Viewer, member
from inspector.filters import free, whole_number
from inspector.pages.numbers import whole
from inspector.pages.request_frame import detail_or_404, frame_of, shell_of
from inspector.pages.session_events import MEANINGS
from inspector.render import show
from inspector.request_contexts import RequestEventsPage

SHOWN = 60
"""Events of one page: as many as keep it under 150 kB."""
ASKS = {"before": whole_number, "in": free}


@require_safe
@member(asks=ASKS)
def request_events(request: HttpRequest, viewer: Viewer, request_id: UUID) -> HttpResponse:
    """What was appended after the previous request's head, up to this one's and its answer; the newest first, in windows."""
    frame = frame_of(viewer, request_id, "request-events", request)
    low, last = _bounds(
        viewer, frame.request, frame.near.previous.id if frame.near.previous else None
    )
    page = RequestEventsPage(
        shell=shell_of(viewer, frame, "request-events", "Events"),
        frame=frame,
        events=event_page(
            viewer.tenant_id,
            frame.request.session_id,
            at_least=low,
            before=min(whole(request, "before") or last, last),
            size=SHOWN,
        ),
        meanings=MEANINGS,
    )
    return show(request, "request_events.html", page)


def leading_events(viewer: Viewer, found: RequestDetail) -> Iterator[EventLine]:
    """All events of the page's windows, the newest first."""
    previous = neighbours(viewer.tenant_id, found).previous
    low, before = _bounds(viewer, found, previous.id if previous else None)
    at: int | None = before
    while at is not None:
        page = event_page(viewer.tenant_id, found.session_id, at_least=low, before=at, size=500)
        yield from page.events
        at = page.before


def _bounds(viewer: Viewer, found: RequestDetail, previous_id: UUID | None) -> tuple[int, int]:
    """First event that may have led to the request, and the one before which it and its answer lie."""
    previous = detail_or_404(viewer, previous_id) if previous_id is not None else None
    low = max(previous.content_sequence, previous.act_sequence) + 1 if previous else 0
    return low, max(found.content_sequence, found.act_sequence) + 4
