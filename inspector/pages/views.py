"""Saving and removing views of lists."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST

from ctxengine.service.saved_views import PAGES, remove_view, save_view
from ctxengine.service.specs import ServiceError
from inspector.access import Viewer, member
from inspector.render import Twin, see_other


@require_POST
@member()
def save(request: HttpRequest, viewer: Viewer) -> HttpResponse:
    """Save a list as it stands; sharing it with the tenant is an operator's act."""
    shared = request.POST.get("shared") == "1"
    if shared:
        viewer.must_operate("Sharing a view")
    page, query = request.POST.get("page", ""), request.POST.get("query", "")
    save_view(
        actor=viewer.actor,
        owner=viewer.user_name,
        page=page,
        name=request.POST.get("name", ""),
        query=query,
        shared=shared,
    )
    return see_other(f"{_list(viewer, page)}?{query}")


@require_POST
@member()
def remove(request: HttpRequest, viewer: Viewer, view_id: UUID) -> HttpResponse:
    """Remove one's own view; operators remove shared ones too."""
    gone = remove_view(
        actor=viewer.actor, owner=viewer.user_name, view_id=view_id, every=viewer.is_operator
    )
    return see_other(_list(viewer, gone.page))


def _list(viewer: Viewer, page: str) -> str:
    if page not in PAGES:
        raise ServiceError("invalid_field", 422, f"Lists are {', '.join(PAGES)}.")
    return reverse(f"inspector:{page}", args=[viewer.slug, Twin.HTML])
