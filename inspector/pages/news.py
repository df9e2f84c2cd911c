"""What is newer than a page that stands open: a number, or 204. The page itself never moves (ui 3.11)."""

from __future__ import annotations

from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from ctxengine.engine.events import EventType
from ctxengine.ledger.queries.events import event_page
from ctxengine.ledger.queries.news import Newer, newer_requests, newer_sessions
from ctxengine.ledger.queries.paging import BadCursor, Cursor, parse_cursor
from ctxengine.ledger.queries.requests import RequestFilter
from ctxengine.service.metrics.period import WINDOWS
from ctxengine.service.specs import ServiceError
from inspector.access import Viewer, member
from inspector.console_contexts import NewsFragment
from inspector.filters import Ask, free, one_of, whole_number
from inspector.live import SESSION_TABS
from inspector.pages import requests, sessions
from inspector.pages.numbers import whole
from inspector.pages.session_frame import head_or_404
from inspector.querylang import QueryError
from inspector.render import Twin, fragment

_NONE = 204
_MOST_COUNTED = 99
"""Newer events of one type are counted up to here."""
_NEWEST: dict[str, Ask] = {"newest": free}


@require_safe
@member(asks=requests.ASKS | _NEWEST)
def requests_news(request: HttpRequest, viewer: Viewer) -> HttpResponse:
    """Requests of a filtered list that were built since it was shown."""
    try:
        where = requests.filter_of(request.GET)
    except QueryError as error:
        raise ServiceError("invalid_filter", 400, str(error)) from error
    found = newer_requests(viewer.tenant_id, where, _cursor(request))
    return _told(request, found, "newer request", _list(request, viewer, "requests"))


@require_safe
@member(asks=sessions.ASKS | _NEWEST)
def sessions_news(request: HttpRequest, viewer: Viewer) -> HttpResponse:
    """Sessions of a filtered list that were active since it was shown."""
    try:
        where = sessions.filter_of(request.GET)
    except QueryError as error:
        raise ServiceError("invalid_filter", 400, str(error)) from error
    found = newer_sessions(viewer.tenant_id, where, _cursor(request))
    return _told(request, found, "session went on", _list(request, viewer, "sessions"))


@require_safe
@member(asks=_NEWEST | {"w": one_of(*WINDOWS)})
def overview_news(request: HttpRequest, viewer: Viewer) -> HttpResponse:
    """Requests that the figures of the overview do not hold yet."""
    found = newer_requests(viewer.tenant_id, RequestFilter(), _cursor(request))
    back = reverse("inspector:overview", args=[viewer.slug])
    window = request.GET.get("w", "")
    return _told(request, found, "newer request", f"{back}?w={window}" if window else back)


@require_safe
@member(
    asks={
        "newest": whole_number,
        "tab": one_of(*SESSION_TABS),
        "type": one_of(*(kind.value for kind in EventType)),
    }
)
def session_news(request: HttpRequest, viewer: Viewer, session_id: UUID) -> HttpResponse:
    """Events that were appended since a session's page was shown, of the type that it shows."""
    head = head_or_404(viewer, session_id)
    seen, kind = whole(request, "newest"), request.GET.get("type", "")
    number, more = 0 if seen is None else max(0, head.last_sequence - seen), False
    if kind and seen is not None and number:
        found = event_page(
            viewer.tenant_id, head.id, at_least=seen + 1, kind=kind, size=_MOST_COUNTED
        )
        number, more = len(found.events), found.before is not None
    route = SESSION_TABS[request.GET.get("tab") or "runs"]
    back = reverse(f"inspector:{route}", args=[viewer.slug, head.id, Twin.HTML])
    back += f"?{urlencode({'type': kind})}" if kind else ""
    return _told(request, Newer(number, more), "newer event", back)


def _cursor(request: HttpRequest) -> Cursor:
    try:
        return parse_cursor(request.GET.get("newest", ""))
    except BadCursor as error:
        raise ServiceError("invalid_filter", 400, str(error)) from error


def _list(request: HttpRequest, viewer: Viewer, route: str) -> str:
    """The list's own address, from its first page on."""
    query = request.GET.copy()
    for name in ("newest", "after", "ticked"):
        query.pop(name, None)
    back = reverse(f"inspector:{route}", args=[viewer.slug, Twin.HTML])
    return f"{back}?{query.urlencode()}" if query else back


def _told(request: HttpRequest, found: Newer, what: str, back: str) -> HttpResponse:
    if not found.number:
        return HttpResponse(status=_NONE)
    return fragment(request, "f/news.html", NewsFragment(found, what, back))
