"""P4: requests across sessions."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.http import require_safe

from ctxengine.engine.budget.classes import YIELD_ORDER
from ctxengine.ledger.queries.paging import PAGE_SIZES, BadCursor, Page, parse_cursor
from ctxengine.ledger.queries.requests import (
    RequestFilter,
    RequestLine,
    RequestQuery,
    every_request,
    list_requests,
    request_models,
)
from inspector.access import Viewer, member
from inspector.contexts import RequestsPage, Shell
from inspector.querylang import QueryError, over, read_query
from inspector.reasons import class_title
from inspector.render import Twin, csv_stream, json_stream, show

_FIELDS = ("engine", "model", "status", "yield", "origin", "epoch")
_SELECTS = ("model", "status", "yielded", "origin")
STATUSES = ("built", "answered", "failed")
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
    text = request.GET.get("q", "")
    problem = ""
    where, query = RequestFilter(), RequestQuery()
    try:
        where = _filter(text, chosen)
        after = request.GET.get("after", "")
        query = RequestQuery(where, parse_cursor(after) if after else None, PAGE_SIZES[0])
    except (QueryError, BadCursor) as error:
        problem = str(error)
    if not problem and twin is Twin.CSV:
        rows = (_csv(line) for line in every_request(viewer.tenant_id, where))
        return csv_stream("requests", CSV_HEADER, rows)
    if not problem and twin is Twin.JSON:
        return json_stream(every_request(viewer.tenant_id, where))
    none: Page[RequestLine] = Page((), "")
    page = RequestsPage(
        shell=Shell(viewer, "Requests", "requests"),
        query=text,
        problem=problem,
        chosen=chosen,
        models=request_models(viewer.tenant_id),
        statuses=STATUSES,
        classes=tuple((name.value, class_title(name)) for name in YIELD_ORDER),
        page=none if problem else list_requests(viewer.tenant_id, query),
        filtered=where != RequestFilter() or bool(problem),
        address=request.GET.urlencode(),
    )
    answer = Twin.HTML if twin is Twin.HTML else Twin.JSON
    return show(request, "requests.html", page, answer, 400 if problem else 200)


def _filter(text: str, chosen: dict[str, str]) -> RequestFilter:
    query = read_query(text, _FIELDS)
    terms = query.terms
    origin = terms.get("origin") or chosen["origin"]
    if origin not in {"", "live", "reconstructed"}:
        raise QueryError("origin: is live or reconstructed.")
    return RequestFilter(
        words=query.words,
        engine=terms.get("engine", ""),
        model=terms.get("model") or chosen["model"],
        status=terms.get("status") or chosen["status"],
        yielded=terms.get("yield") or chosen["yielded"],
        origin=origin,
        epoch_over=over(terms, "epoch"),
    )


def _csv(line: RequestLine) -> tuple[object, ...]:
    return (
        line.id, line.session_id, line.session_title, line.label, line.engine, line.provider,
        line.model, line.epoch, line.total_tokens, line.usable_tokens, line.predicted_read,
        line.usage.read, line.usage.write, line.usage.fresh, line.usage.output,
        " ".join(line.yields), line.status, line.reconstructed, line.build_ms,
        line.request_sha256, line.created_at,
    )  # fmt: skip
