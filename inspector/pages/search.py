"""Search: what was said in any session, by its words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from uuid import UUID

from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.http import require_safe

from ctxengine.engine.items import ItemKind
from ctxengine.engine.trust.levels import Trust
from ctxengine.ledger.queries.paging import BadCursor, Page, parse_cursor
from ctxengine.ledger.queries.search import (
    Hit,
    SearchFacets,
    SearchFilter,
    SearchQueryPage,
    index_lag,
    search_facets,
    search_items,
)
from ctxengine.ledger.queries.sessions import (
    SessionFilter,
    SessionLine,
    SessionQuery,
    list_sessions,
)
from ctxengine.service.search.job import ask_for_index_of
from ctxengine.service.search.texts import MEMORY_LINE, ROLES
from inspector.access import Viewer, member
from inspector.console_contexts import SearchPage
from inspector.contexts import Shell
from inspector.filters import (
    AskError,
    checked,
    free,
    identifier,
    moment,
    one_of,
    page_size,
    read_moment,
    read_whole,
    size_of,
    whole_number,
)
from inspector.querylang import QueryError, agreed, one_of_terms, read_query, trust_of
from inspector.render import Twin, csv_stream, json_stream, show
from inspector.saved import views_box

_FIELDS = ("role", "trust", "row", "kind", "tool", "session")
_SELECTS = ("role", "trust", "kind", "row", "tool", "session", "from", "to")
KINDS = (*(kind.value for kind in ItemKind), MEMORY_LINE)
TRUSTS = tuple(level.value for level in Trust)
_EXPORTED = 1_000
"""Hits of a twin; the page says so beside the links."""
ASKS = {
    "q": free,
    "role": one_of(*ROLES),
    "trust": one_of(*TRUSTS),
    "kind": one_of(*KINDS),
    "row": whole_number,
    "tool": free,
    "session": identifier,
    "from": moment,
    "to": moment,
    "size": page_size,
    "after": free,
}
CSV_HEADER = (
    "session_id", "session", "item", "role", "kind", "row", "trust", "tool", "characters", "at",
    "excerpt",
)  # fmt: skip


@require_safe
@member()
def search(request: HttpRequest, viewer: Viewer, twin: Twin) -> HttpResponseBase:
    """Items whose text has the words, the newest first; the address is the whole state."""
    chosen = {name: request.GET.get(name, "") for name in _SELECTS}
    text, problem = request.GET.get("q", ""), ""
    where, after = SearchFilter(), None
    try:
        checked(request, ASKS)
        where = _filter(text, chosen)
        place = request.GET.get("after", "")
        after = parse_cursor(place) if place else None
    except (QueryError, AskError, BadCursor) as error:
        problem = str(error)
    asked = where != SearchFilter() and not problem
    if not problem and twin is not Twin.HTML:
        hits = _every(viewer, where) if asked else iter(())
        return (
            csv_stream("search", CSV_HEADER, map(_csv, hits))
            if twin is Twin.CSV
            else json_stream(hits)
        )
    lag = index_lag(viewer.tenant_id)
    catching_up = bool(lag.sessions) and not viewer.read_only
    if catching_up:
        ask_for_index_of(viewer.tenant_id)
    none: Page[Hit] = Page((), "")
    query = SearchQueryPage(where, after, size_of(request))
    page = SearchPage(
        shell=Shell(viewer, "Search", "search"),
        query=text,
        problem=problem,
        chosen=chosen,
        narrowed=tuple((name, value) for name, value in chosen.items() if value),
        facets=search_facets(viewer.tenant_id, where) if asked else SearchFacets(0, False),
        page=search_items(viewer.tenant_id, query) if asked else none,
        sessions=_sessions(viewer, where) if asked and after is None else (),
        lag=lag,
        asked=asked,
        indexing=catching_up,
        views=views_box(request, viewer, "search"),
        address=request.GET.urlencode(),
    )
    answer = Twin.HTML if twin is Twin.HTML else Twin.JSON
    return show(request, "search.html", page, answer, 400 if problem else 200)


def _filter(text: str, chosen: dict[str, str]) -> SearchFilter:
    query = read_query(text, _FIELDS, quotes=True)
    terms = dict(query.terms)
    if "trust" in terms:
        terms["trust"] = trust_of(terms)
    for name, allowed in (("role", ROLES), ("kind", KINDS)):
        one_of_terms(terms, name, allowed)
    given = {name: agreed(terms, name, chosen[name]) for name in _FIELDS}
    row = read_whole(given["row"]) if given["row"] else None
    if given["row"] and row is None:
        raise QueryError(f"Write row:10, not row:{given['row']}.")
    return SearchFilter(
        text=" ".join(query.words),
        role=given["role"],
        kind=given["kind"],
        trust=given["trust"],
        row=row,
        tool=given["tool"],
        session_id=_session(given["session"]),
        since=read_moment(chosen["from"]) if chosen["from"] else None,
        until=read_moment(chosen["to"]) if chosen["to"] else None,
    )


def _session(text: str) -> UUID | None:
    if not text:
        return None
    if identifier(text):
        raise QueryError("session: takes a whole id.")
    return UUID(text)


def _sessions(viewer: Viewer, where: SearchFilter) -> tuple[SessionLine, ...]:
    words = tuple(where.text.replace('"', " ").split())
    if not words or where != SearchFilter(text=where.text):
        return ()
    return list_sessions(viewer.tenant_id, SessionQuery(SessionFilter(words=words), size=3)).rows


def _every(viewer: Viewer, where: SearchFilter) -> Iterator[Hit]:
    query, left = SearchQueryPage(where, size=100), _EXPORTED
    while left:
        page = search_items(viewer.tenant_id, query)
        yield from page.rows
        left -= query.size
        if not page.after:
            return
        query = replace(query, after=parse_cursor(page.after))


def _csv(hit: Hit) -> tuple[object, ...]:
    excerpt = "".join(text for text, _ in hit.excerpt.pieces)
    return (
        hit.session_id, hit.session_title, hit.item, hit.role, hit.kind, hit.row, hit.trust, hit.name,
        hit.chars, hit.at, excerpt,
    )  # fmt: skip
