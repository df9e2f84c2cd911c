"""P5: what changed since the previous request."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from inspector.access import Viewer, member
from inspector.pages.comparison import compare_requests
from inspector.pages.request_frame import detail_or_404, frame_of, shell_of
from inspector.render import Twin, show
from inspector.request_contexts import ChangePage


@require_safe
@member()
def request_change(
    request: HttpRequest, viewer: Viewer, request_id: UUID, twin: Twin
) -> HttpResponse:
    """The comparison with the request before, or a word that there is none."""
    frame = frame_of(viewer, request_id, "request-change", request)
    comparison = None
    if frame.near.previous:
        before = detail_or_404(viewer, frame.near.previous.id)
        comparison = compare_requests(viewer, before, frame.request)
    page = ChangePage(
        shell=shell_of(viewer, frame, "request-change", "Change"),
        frame=frame,
        comparison=comparison,
    )
    return show(request, "request_change.html", page, twin)
