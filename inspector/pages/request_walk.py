"""Walking a filtered list from inside a request: `?in=` carries the list, so that next and previous stay within it."""

from __future__ import annotations

from django.http import QueryDict
from django.urls import reverse
from django.utils.http import urlencode

from ctxengine.ledger.queries.request import RequestDetail
from ctxengine.ledger.queries.requests import RequestLine, around
from ctxengine.service.specs import ServiceError
from inspector.access import Viewer
from inspector.filters import checked_query
from inspector.pages.requests import ASKS, filter_of
from inspector.querylang import QueryError
from inspector.render import Twin
from inspector.request_contexts import Walk

_MOST_CHARS = 2_000


def walk_of(viewer: Viewer, request: RequestDetail | RequestLine, query: str) -> Walk | None:
    """The neighbours in the list of that query string; None for an empty one. Two queries.

    Raises:
        ServiceError: `invalid_filter` (400) for what the list itself would refuse.
    """
    if not query:
        return None
    if "\x00" in query or "%00" in query:
        raise ServiceError("invalid_filter", 400, "The list that `in` carries holds U+0000.")
    if len(query) > _MOST_CHARS:
        raise ServiceError("invalid_filter", 400, "The list that `in` carries is too long.")
    try:
        asked = QueryDict(query)
        checked_query(asked, ASKS)
        where = filter_of(asked)
    except (QueryError, ValueError) as error:
        raise ServiceError("invalid_filter", 400, f"The list that `in` carries: {error}") from error
    near = around(viewer.tenant_id, where, request.created_at, request.id)
    back = reverse("inspector:requests", args=[viewer.slug, Twin.HTML])
    return Walk(query, f"{back}?{query}", near.before, near.after)


def within(address: str, walk: Walk | None) -> str:
    """An address that keeps to the list."""
    return f"{address}?{urlencode({'in': walk.query})}" if walk else address
