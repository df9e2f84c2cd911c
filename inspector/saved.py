"""The box of saved views above a list."""

from __future__ import annotations

from django.http import HttpRequest

from ctxengine.ledger.queries.console import saved_views
from inspector.access import Viewer
from inspector.contexts import ViewsBox

_PLACES = ("after", "ticked", "size")
"""Parameters that say where one is in a list, not what is listed."""


def views_box(request: HttpRequest, viewer: Viewer, page: str) -> ViewsBox:
    """A person's views of a list, the shared ones, and the list as it stands. One query."""
    query = request.GET.copy()
    for name in _PLACES:
        query.pop(name, None)
    for name in [name for name, value in query.items() if not value]:
        query.pop(name)
    return ViewsBox(
        page,
        saved_views(viewer.tenant_id, viewer.user_name, page),
        query.urlencode(),
        viewer.user_name,
    )
