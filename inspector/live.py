"""The addresses at which an open page asks whether there is something newer."""

from __future__ import annotations

import uuid
from datetime import datetime
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse

from ctxengine.ledger.queries.paging import Cursor
from inspector.access import Viewer

SESSION_TABS = {"runs": "session", "events": "session-events"}
"""Tabs of a session that ask, by the word in the address."""
_PLACES = ("after", "ticked")


def list_news(
    request: HttpRequest, viewer: Viewer, route: str, first: Cursor | None, now: datetime
) -> str:
    """Where a list asks for rows above its first one; empty on later pages, which new rows do not touch."""
    if request.GET.get("after"):
        return ""
    query = request.GET.copy()
    for name in _PLACES:
        query.pop(name, None)
    query["newest"] = (first or Cursor(now, uuid.UUID(int=0))).text()
    return f"{reverse(f'inspector:{route}', args=[viewer.slug])}?{query.urlencode()}"


def session_news(
    viewer: Viewer, session_id: uuid.UUID, *, tab: str, seen: int, kind: str = ""
) -> str:
    """Where a session's page asks for events after the last one it shows; of one type alone where it shows but that."""
    address = reverse("inspector:session-news", args=[viewer.slug, session_id])
    asks = {"tab": tab, "newest": seen} | ({"type": kind} if kind else {})
    return f"{address}?{urlencode(asks)}"
