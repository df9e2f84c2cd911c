"""P4: requests across sessions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args
from uuid import UUID

from django.http import HttpRequest, HttpResponseBase, QueryDict
from django.utils import timezone
from django.views.decorators.http import require_safe

from ctxengine.engine.budget.classes import YIELD_ORDER, BudgetClass
from ctxengine.engine.cache.verdict import VerdictClass
from ctxengine.ledger.queries.paging import (
    BadCursor,
    Cursor,
    Page,
    Total,
    parse_cursor,
    total_of,
    total_within,
)
from ctxengine.ledger.queries.request_facets import RequestFacets, request_facets
from ctxengine.ledger.queries.requests import (
    RequestFilter,
    RequestLine,
    RequestQuery,
    every_request,
    list_requests,
    narrowed_requests,
    request_models,
)
from inspector.access import Viewer, member
from inspector.contexts import Option, RequestsPage, Select, Shell
from inspector.filters import (
    AskError,
    checked,
    free,
    identifier,
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
from inspector.reasons import class_title
from inspector.render import Twin, csv_stream, json_stream, show
from inspector.saved import views_box

_FIELDS = ("engine", "model", "status", "yield", "origin", "epoch", "trust", "cache")
_SELECTS = ("model", "status", "yielded", "origin")
_NARROWED = (
    "session",
    "engine",
    "provider",
    "agent",
    "code",
    "verdict",
    "cause",
    "disagreement",
    "usage",
    "from",
    "to",
)
"""Filters that other pages' figures lead here with; they stand above the list, each with a way to drop it."""
STATUSES = ("built", "answered", "failed")
YIELDED = ("any", *(name.value for name in YIELD_ORDER))
ORIGINS = ("live", "reconstructed")
VERDICTS = (*get_args(VerdictClass), "none")
ASKS = {
    "q": free,
    "engine": free,
    "model": free,
    "status": one_of(*STATUSES),
    "yielded": one_of(*YIELDED),
    "origin": one_of(*ORIGINS),
    "provider": free,
    "agent": free,
    "code": free,
    "verdict": one_of(*VERDICTS),
    "cause": free,
    "session": identifier,
    "disagreement": one_of("1"),
    "usage": one_of("reported", "unreported", "unusable", "no_cache_figures"),
    "from": moment,
    "to": moment,
    "size": page_size,
    "after": free,
    "ticked": one_of("0", "1"),
}
CSV_HEADER = (
    "id", "session_id", "session", "request", "engine", "provider", "model", "epoch", "tokens",
    "usable", "predicted_read", "reported_read", "reported_write", "reported_fresh", "output",
    "yields", "status", "reconstructed", "build_ms", "sha256", "created_at",
)  # fmt: skip


@require_safe
@member()
def requests(request: HttpRequest, viewer: Viewer, twin: Twin) -> HttpResponseBase:
    """Every request of the tenant, newest first; the address is the whole state."""
    chosen = {name: request.GET.get(name, "") for name in _SELECTS}
    narrowed = {name: request.GET.get(name, "") for name in _NARROWED}
    text = request.GET.get("q", "")
    problem = ""
    where, query = RequestFilter(), RequestQuery()
    try:
        checked(request, ASKS)
        where = filter_of(request.GET)
        after = request.GET.get("after", "")
        query = RequestQuery(where, parse_cursor(after) if after else None, size_of(request))
    except (QueryError, BadCursor, AskError) as error:
        problem = str(error)
    if not problem and twin is Twin.CSV:
        rows = (_csv(line) for line in every_request(viewer.tenant_id, where))
        return csv_stream("requests", CSV_HEADER, rows)
    if not problem and twin is Twin.JSON:
        return json_stream(every_request(viewer.tenant_id, where))
    found: Page[RequestLine] = Page((), "") if problem else list_requests(viewer.tenant_id, query)
    facets = RequestFacets() if problem else request_facets(viewer.tenant_id, _unchosen(where))
    page = RequestsPage(
        shell=Shell(
            viewer, "Requests", "requests", news="" if problem else _news(request, viewer, found)
        ),
        query=text,
        problem=problem,
        chosen=chosen,
        selects=_selects(facets, request_models(viewer.tenant_id)),
        facets=facets,
        page=found,
        total=None if problem else _total(viewer, query, found),
        narrowed=tuple((name, value) for name, value in narrowed.items() if value),
        filtered=where != RequestFilter() or bool(problem),
        address=request.GET.urlencode(),
        views=views_box(request, viewer, "requests"),
    )
    answer = Twin.HTML if twin is Twin.HTML else Twin.JSON
    return show(request, "requests.html", page, answer, 400 if problem else 200)


def _total(viewer: Viewer, query: RequestQuery, found: Page[RequestLine]) -> Total | None:
    """How many requests the filter has, where that is cheap: on one page, by session and time, by plain columns among few."""
    where = query.where
    if query.after is None and not found.after:
        return Total(len(found.rows), False)
    indexed = RequestFilter(session_id=where.session_id, since=where.since, until=where.until)
    rows = narrowed_requests(viewer.tenant_id, where)
    if where == indexed:
        return total_of(rows)
    columns: dict[str, Any] = dict.fromkeys(("engine", "model", "status", "origin", "provider"), "")
    if replace(where, epoch_over=None, **columns) != indexed:
        return None
    return total_within(narrowed_requests(viewer.tenant_id, indexed), rows)


def _news(request: HttpRequest, viewer: Viewer, found: Page[RequestLine]) -> str:
    first = Cursor(found.rows[0].created_at, found.rows[0].id) if found.rows else None
    return list_news(request, viewer, "requests-news", first, timezone.now())


def _unchosen(where: RequestFilter) -> RequestFilter:
    """The filter without what the form's selects hold, whose values are counted."""
    return replace(where, model="", status="", yielded="", origin="")


def _selects(facets: RequestFacets, models: tuple[str, ...]) -> tuple[Select, ...]:
    """The form's selects; models that the counted requests have not are listed too, without a number."""
    counted = dict(facets.models)
    rest = tuple(Option(name, name, None) for name in models if name not in counted)
    statuses, origins, yields = dict(facets.statuses), dict(facets.origins), dict(facets.yields)
    return (
        Select("model", "Model", "any", (*(Option(n, n, c) for n, c in facets.models), *rest)),
        Select(
            "status", "Status", "any", tuple(Option(n, n, statuses.get(n, 0)) for n in STATUSES)
        ),
        Select(
            "yielded",
            "Yielded",
            "any or none",
            tuple(Option(name, _yield_words(name), yields.get(name, 0)) for name in YIELDED),
        ),
        Select("origin", "Origin", "any", tuple(Option(n, n, origins.get(n, 0)) for n in ORIGINS)),
    )


def _yield_words(name: str) -> str:
    return "any class" if name == "any" else class_title(BudgetClass(name))


def filter_of(asked: QueryDict) -> RequestFilter:
    """The filter that an address of this list asks for.

    Raises:
        QueryError: its query cannot be read.
    """
    chosen = {name: asked.get(name, "") for name in _SELECTS}
    narrowed = {name: asked.get(name, "") for name in _NARROWED}
    return _narrow(_filter(asked.get("q", ""), chosen), narrowed)


def _filter(text: str, chosen: dict[str, str]) -> RequestFilter:
    query = read_query(text, _FIELDS)
    terms = query.terms
    for name, allowed in (("origin", ORIGINS), ("status", STATUSES), ("yield", YIELDED)):
        one_of_terms(terms, name, allowed)
    return RequestFilter(
        words=query.words,
        engine=terms.get("engine", ""),
        model=agreed(terms, "model", chosen["model"]),
        status=agreed(terms, "status", chosen["status"]),
        yielded=agreed(terms, "yield", chosen["yielded"]),
        origin=agreed(terms, "origin", chosen["origin"]),
        epoch_over=over(terms, "epoch"),
        trust=trust_of(terms),
        cached=cache_bound(terms),
    )


def _narrow(where: RequestFilter, narrowed: dict[str, str]) -> RequestFilter:
    return replace(
        where,
        engine=agreed({"engine": where.engine}, "engine", narrowed["engine"]),
        session_id=UUID(narrowed["session"]) if narrowed["session"] else None,
        provider=narrowed["provider"],
        agent=narrowed["agent"],
        code=narrowed["code"],
        verdict=narrowed["verdict"],
        cause=narrowed["cause"],
        disagreement=bool(narrowed["disagreement"]),
        usage=narrowed["usage"],
        since=read_moment(narrowed["from"]) if narrowed["from"] else None,
        until=read_moment(narrowed["to"]) if narrowed["to"] else None,
    )


def _csv(line: RequestLine) -> tuple[object, ...]:
    return (
        line.id, line.session_id, line.session_title, line.label, line.engine, line.provider,
        line.model, line.epoch, line.total_tokens, line.usable_tokens, line.predicted_read,
        line.usage.read, line.usage.write, line.usage.fresh, line.usage.output,
        " ".join(line.yields), line.status, line.reconstructed, line.build_ms,
        line.request_sha256, line.created_at,
    )  # fmt: skip
