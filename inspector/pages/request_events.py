"""P5: the events that led to this request."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from ctxengine.ledger.queries.events import event_page
from inspector.access import Viewer, member
from inspector.pages.request_frame import detail_or_404, frame_of, shell_of
from inspector.pages.session_events import MEANINGS
from inspector.render import show
from inspector.request_contexts import RequestEventsPage


@require_safe
@member()
def request_events(request: HttpRequest, viewer: Viewer, request_id: UUID) -> HttpResponse:
    """Everything appended after the previous request's head, up to this one's and its answer."""
    frame = frame_of(viewer, request_id, "request-events", request)
    previous = detail_or_404(viewer, frame.near.previous.id) if frame.near.previous else None
    found = frame.request
    low = max(previous.content_sequence, previous.act_sequence) + 1 if previous else 0
    page = RequestEventsPage(
        shell=shell_of(viewer, frame, "request-events", "Events"),
        frame=frame,
        events=event_page(
            viewer.tenant_id,
            found.session_id,
            at_least=low,
            before=max(found.content_sequence, found.act_sequence) + 4,
            size=200,
        ),
        meanings=MEANINGS,
    )
    return show(request, "request_events.html", page)
