"""P6: any two requests."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_safe

from ctxengine.ledger.queries.requests import RequestFilter, RequestQuery, list_requests
from inspector.access import Viewer, member
from inspector.contexts import Crumb, Shell
from inspector.pages.comparison import compare_requests
from inspector.pages.request_frame import detail_or_404, request_address
from inspector.pages.session_frame import head_or_404, session_title
from inspector.render import Twin, show
from inspector.request_contexts import DiffPage


@require_safe
@member()
def diff(
    request: HttpRequest, viewer: Viewer, before_id: UUID, after_id: UUID, twin: Twin
) -> HttpResponse:
    """The first changed byte, its row and cause, and every changed part."""
    before, after = detail_or_404(viewer, before_id), detail_or_404(viewer, after_id)
    titles = {
        detail.session_id: session_title(head_or_404(viewer, detail.session_id))
        for detail in (before, after)
    }
    crumbs = (
        Crumb("Requests", reverse("inspector:requests", args=[viewer.slug, Twin.HTML])),
        Crumb(f"request {after.label}", request_address(viewer.slug, after.id)),
        Crumb(f"compared with {before.label}"),
    )
    near = list_requests(
        viewer.tenant_id, RequestQuery(RequestFilter(session_id=after.session_id), size=50)
    )
    page = DiffPage(
        shell=Shell(viewer, f"Request {before.label} → {after.label}", "requests", crumbs),
        comparison=compare_requests(viewer, before, after),
        before_title=titles[before.session_id],
        after_title=titles[after.session_id],
        earlier=tuple((line.id, line.label) for line in near.rows if line.number < after.number),
    )
    return show(request, "diff.html", page, twin)


@require_safe
@member()
def pick(request: HttpRequest, viewer: Viewer) -> HttpResponse:
    """Send two ticked requests, or a chosen baseline, to their comparison."""
    ticked = [_uuid(text) for text in request.GET.getlist("r")]
    chosen = [one for one in ticked if one is not None][:2]
    if len(chosen) < 2:
        came_from = QueryDict(request.GET.get("from", ""), mutable=True)
        came_from["ticked"] = str(len(chosen))
        listed = reverse("inspector:requests", args=[viewer.slug, Twin.HTML])
        return redirect(f"{listed}?{came_from.urlencode()}")
    pair = sorted(
        (detail_or_404(viewer, one) for one in chosen),
        key=lambda detail: (detail.created_at, detail.number),
    )
    return redirect("inspector:diff", viewer.slug, pair[0].id, pair[1].id, Twin.HTML)


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
