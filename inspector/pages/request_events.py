"""P5: the events that led to this request."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from ctxengine.ledger.queries.events import event_page
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
    previous = detail_or_404(viewer, frame.near.previous.id) if frame.near.previous else None
    found = frame.request
    low = max(previous.content_sequence, previous.act_sequence) + 1 if previous else 0
    last = max(found.content_sequence, found.act_sequence) + 4
    page = RequestEventsPage(
        shell=shell_of(viewer, frame, "request-events", "Events"),
        frame=frame,
        events=event_page(
            viewer.tenant_id,
            found.session_id,
            at_least=low,
            before=min(whole(request, "before") or last, last),
            size=SHOWN,
        ),
        meanings=MEANINGS,
    )
    return show(request, "request_events.html", page)
