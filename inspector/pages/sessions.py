"""P2: the list of sessions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.http import HttpRequest, HttpResponseBase, QueryDict
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from ctxengine.engine.budget.classes import YIELD_ORDER
from ctxengine.engine.events import EventType
from ctxengine.ledger.queries.paging import (
    BadCursor,
    Cursor,
    Page,
    Total,
    parse_cursor,
    total_of,
    total_within,
)
from ctxengine.ledger.queries.sessions import (
    SessionFilter,
    SessionLine,
    SessionQuery,
    every_session,
    list_sessions,
    narrowed_sessions,
    session_facets,
)
from inspector.access import Viewer, member
from inspector.contexts import SessionsPage, Shell
from inspector.filters import (
    AskError,
    checked,
    free,
    moment,
    one_of,
    page_size,
    read_moment,
    size_of,
)
from inspector.live import list_news
from inspector.querylang import (
    QueryError,
    agreed,
    cache_bound,
    one_of_terms,
    over,
    read_query,
    trust_of,
)
from inspector.render import Twin, csv_stream, json_stream, show
from inspector.saved import views_box

_FIELDS = (
    "engine", "model", "agent", "format", "state", "epoch", "is", "yield", "trust", "cache",
)  # fmt: skip
_SELECTS = ("engine", "model", "format", "state")
_NARROWED = ("provider", "agent", "policy", "has", "from", "to")
"""Filters that other pages' figures lead here with; they stand above the list, each with a way to drop it."""
HAPPENED = {
    "rotation": EventType.EPOCH_ROTATED,
    "compaction": EventType.COMPACTED,
    "undone": EventType.COMPACTION_UNDONE,
    "refused_compaction": EventType.COMPACTION_REFUSED,
    "pressure": EventType.BUDGET_PRESSURE,
    "exceeded": EventType.BUDGET_EXCEEDED,
    "failure": EventType.RESPONSE_FAILED,
    "turn": EventType.USER_MESSAGE,
}
"""What `has` may ask for, by the event that records it."""
STATES = ("open", "ended")
YIELDED = ("any", *(name.value for name in YIELD_ORDER))
ASKS = {
    "q": free,
    "engine": free,
    "model": free,
    "format": free,
    "state": one_of(*STATES),
    "provider": free,
    "agent": free,
    "policy": free,
    "has": one_of(*HAPPENED),
    "from": moment,
    "to": moment,
    "size": page_size,
    "after": free,
}
CSV_HEADER = (
    "id", "title", "agent", "engine", "provider", "model", "state", "format", "epochs", "runs",
    "requests", "items", "tokens", "peak_tokens", "pressure", "active_at",
)  # fmt: skip


@require_safe
@member()
def sessions(request: HttpRequest, viewer: Viewer, twin: Twin) -> HttpResponseBase:
    """Search and filter; the address is the whole state. A bad query is 400, its text kept."""
    chosen = {name: request.GET.get(name, "") for name in _SELECTS}
    narrowed = {name: request.GET.get(name, "") for name in _NARROWED}
    text = request.GET.get("q", "")
    problem = ""
    where, query = SessionFilter(), SessionQuery()
    try:
        checked(request, ASKS)
        where = filter_of(request.GET)
        after = request.GET.get("after", "")
        query = SessionQuery(
            where,
            after=parse_cursor(after) if after else None,
            size=size_of(request),
        )
    except (QueryError, BadCursor, AskError) as error:
        problem = str(error)
    if not problem and twin is Twin.CSV:
        rows = (_csv(line) for line in every_session(viewer.tenant_id, where))
        return csv_stream("sessions", CSV_HEADER, rows)
    if not problem and twin is Twin.JSON:
        return json_stream(every_session(viewer.tenant_id, where))
    found: Page[SessionLine] = Page((), "") if problem else list_sessions(viewer.tenant_id, query)
    facets = session_facets(viewer.tenant_id)
    page = SessionsPage(
        shell=Shell(
            viewer, "Sessions", "sessions", news="" if problem else _news(request, viewer, found)
        ),
        query=text,
        problem=problem,
        chosen=chosen,
        facets=facets,
        page=found,
        total=None if problem else _total(viewer, query, found, Total(facets.total, facets.more)),
        narrowed=tuple((name, value) for name, value in narrowed.items() if value),
        filtered=where != SessionFilter() or bool(problem),
        address=request.GET.urlencode(),
        views=views_box(request, viewer, "sessions"),
    )
    return show(request, "sessions.html", page, _page_twin(twin), 400 if problem else 200)


def _total(
    viewer: Viewer, query: SessionQuery, found: Page[SessionLine], every: Total
) -> Total | None:
    """How many sessions the filter has, where that is cheap: on one page, unfiltered, by time, by plain columns among few."""
    where = query.where
    if query.after is None and not found.after:
        return Total(len(found.rows), False)
    if where == SessionFilter():
        return every
    indexed = SessionFilter(since=where.since, until=where.until)
    rows = narrowed_sessions(viewer.tenant_id, where)
    if where == indexed:
        return total_of(rows)
    columns: dict[str, Any] = dict.fromkeys(("engine", "model", "state", "import_format"), "")
    if replace(where, provider="", epoch_over=None, **columns) != indexed:
        return None
    return total_within(narrowed_sessions(viewer.tenant_id, indexed), rows)


def _news(request: HttpRequest, viewer: Viewer, found: Page[SessionLine]) -> str:
    first = Cursor(found.rows[0].active_at, found.rows[0].id) if found.rows else None
    return list_news(request, viewer, "sessions-news", first, timezone.now())


def filter_of(asked: QueryDict) -> SessionFilter:
    """The filter that an address of this list asks for.

    Raises:
        QueryError: its query cannot be read.
    """
    chosen = {name: asked.get(name, "") for name in _SELECTS}
    narrowed = {name: asked.get(name, "") for name in _NARROWED}
    return _narrow(_filter(asked.get("q", ""), chosen), narrowed)


def _page_twin(twin: Twin) -> Twin:
    return Twin.HTML if twin is Twin.HTML else Twin.JSON


def _filter(text: str, chosen: dict[str, str]) -> SessionFilter:
    query = read_query(text, _FIELDS)
    terms = query.terms
    if terms.get("is", "child") != "child":
        raise QueryError("is: knows only is:child.")
    one_of_terms(terms, "state", STATES)
    one_of_terms(terms, "yield", YIELDED)
    return SessionFilter(
        words=query.words,
        engine=agreed(terms, "engine", chosen["engine"]),
        model=agreed(terms, "model", chosen["model"]),
        agent=terms.get("agent", ""),
        import_format=agreed(terms, "format", chosen["format"]),
        state=agreed(terms, "state", chosen["state"]),
        epoch_over=over(terms, "epoch"),
        parent=terms.get("is", ""),
        yielded=terms.get("yield", ""),
        trust=trust_of(terms),
        cached=cache_bound(terms),
    )


def _narrow(where: SessionFilter, narrowed: dict[str, str]) -> SessionFilter:
    event = HAPPENED.get(narrowed["has"])
    return replace(
        where,
        provider=narrowed["provider"],
        agent_exact=narrowed["agent"],
        policy=narrowed["policy"],
        event=event.value if event else "",
        since=read_moment(narrowed["from"]) if narrowed["from"] else None,
        until=read_moment(narrowed["to"]) if narrowed["to"] else None,
    )


def _csv(line: SessionLine) -> tuple[object, ...]:
    return (
        line.id, line.title, line.agent, line.engine, line.provider, line.model, line.state,
        line.import_format, line.epoch, line.runs, line.requests, line.items, line.tokens,
        line.peak_tokens, line.pressure_count, line.active_at,
    )  # fmt: skip


def list_address(slug: str) -> str:
    """Where the list of sessions lives."""
    return reverse("inspector:sessions", args=[slug, Twin.HTML])
