"""Jobs: what works in the background, how far it is, and what became of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from ctxengine.ledger.models import Job, JobState
from ctxengine.ledger.queries.jobs import (
    JobFilter,
    JobQuery,
    job_counts,
    job_kinds,
    job_of,
    list_jobs,
)
from ctxengine.ledger.queries.paging import BadCursor, Cursor, Page, parse_cursor
from ctxengine.ledger.queries.sessions import session_titles
from ctxengine.service.jobs.cancel import cancel_job
from ctxengine.service.jobs.presence import workers_present
from ctxengine.service.jobs.retry import retry_job
from ctxengine.service.specs import ServiceError
from inspector.access import Viewer, member
from inspector.contexts import Crumb, Shell
from inspector.filters import AskError, checked, free, identifier, one_of, page_size, size_of
from inspector.job_contexts import (
    JobPage,
    JobsPage,
    JobView,
    asked_by,
    log_of,
    pretty,
    view_of,
)
from inspector.pages.acts import MOST_REASON_CHARS, reason_of
from inspector.pages.operations import operations_tabs
from inspector.render import Twin, csv_stream, json_stream, see_other, show

STATES = (*(state.value for state in JobState), "unfinished")


ASKS = {
    "state": one_of(*STATES),
    "kind": free,
    "session": identifier,
    "size": page_size,
    "after": free,
}
CSV_HEADER = (
    "id", "kind", "state", "subject", "session", "cause", "attempts", "percent", "error", "created_at",
    "started_at", "finished_at",
)  # fmt: skip
_ACTS: dict[str, Callable[..., Job]] = {"cancel": cancel_job, "retry": retry_job}
_SHOWN_AGAIN = frozenset({409, 422})


@require_safe
@member()
def jobs(request: HttpRequest, viewer: Viewer, twin: Twin) -> HttpResponseBase:
    """The list; the address is the whole state. While something on it may change, it asks for itself again."""
    chosen = {name: request.GET.get(name, "") for name in ("state", "kind", "session")}
    where, query, problem = JobFilter(), JobQuery(), ""
    try:
        checked(request, ASKS)
        session = UUID(chosen["session"]) if chosen["session"] else None
        where = JobFilter(chosen["state"], chosen["kind"], session)
        after = request.GET.get("after", "")
        query = JobQuery(where, parse_cursor(after) if after else None, size_of(request))
    except (AskError, BadCursor) as error:
        problem = str(error)
    if not problem and twin is Twin.CSV:
        return csv_stream("jobs", CSV_HEADER, map(_csv, _every(viewer, where)))
    if not problem and twin is Twin.JSON:
        return json_stream(_every(viewer, where))
    found: Page[Job] = Page((), "") if problem else list_jobs(viewer.tenant_id, query)
    counts = job_counts(viewer.tenant_id)
    page = JobsPage(
        shell=Shell(viewer, "Jobs", "jobs"),
        tabs=operations_tabs(viewer, "jobs"),
        problem=problem,
        chosen=chosen,
        states=STATES,
        kinds=job_kinds(viewer.tenant_id),
        counts=counts,
        workers=workers_present(),
        page=Page(tuple(view_of(row) for row in found.rows), found.after),
        filtered=where != JobFilter() or bool(problem),
        live=not problem and bool(counts.by_state["queued"] + counts.by_state["running"]),
        address=request.GET.urlencode(),
    )
    return show(
        request,
        "jobs.html",
        page,
        Twin.HTML if twin is Twin.HTML else Twin.JSON,
        400 if problem else 200,
    )


@require_http_methods(["GET", "HEAD", "POST"])
@member()
def job(request: HttpRequest, viewer: Viewer, job_id: UUID, twin: Twin) -> HttpResponse:
    """One job; a POST cancels it or tries it again (`act`), with a reason."""
    if request.method == "POST":
        return _act(request, viewer, job_id)
    page = _page(viewer, job_id)
    if "live" in request.GET and page.job.over and request.headers.get("HX-Request"):
        # It has ended since the page was made: what may be done with it is another thing now.
        return HttpResponse(headers={"HX-Refresh": "true"})
    return show(request, "job.html", page, twin)


def _act(request: HttpRequest, viewer: Viewer, job_id: UUID) -> HttpResponse:
    viewer.must_operate("Cancelling or retrying a job")
    page = _page(viewer, job_id)
    act = _ACTS.get(request.POST.get("act", ""))
    if act is None:
        raise ServiceError("invalid_act", 400, f"`act` is one of {', '.join(_ACTS)}.")
    try:
        act(actor=viewer.actor, job_id=job_id, note=reason_of(request))
    except ServiceError as refused:
        if refused.status not in _SHOWN_AGAIN:
            raise
        reason = request.POST.get("reason", "")[:MOST_REASON_CHARS]
        again = replace(page, problem=refused.detail, reason=reason)
        return show(request, "job.html", again, status=refused.status)
    return see_other(reverse("inspector:job", args=[viewer.slug, job_id, Twin.HTML]))


def _page(viewer: Viewer, job_id: UUID) -> JobPage:
    row = job_of(viewer.tenant_id, job_id)
    if row is None:
        raise Http404("No such job.")
    view = view_of(row)
    above = reverse("inspector:jobs", args=[viewer.slug, Twin.HTML])
    title = f"Job {str(row.id)[:8]}"
    titles = session_titles(viewer.tenant_id, {row.session_id}) if row.session_id else {}
    return JobPage(
        shell=Shell(viewer, title, "jobs", (Crumb("Jobs", above), Crumb(title))),
        job=view,
        log=log_of(row),
        asked_by=asked_by(row),
        arguments=pretty(row.arguments),
        result=pretty(row.result),
        session_title=titles.get(row.session_id, "") if row.session_id else "",
        workers=workers_present(),
        act=_possible(view),
        allowed=viewer.is_operator,
    )


def _possible(view: JobView) -> str:
    if view.state in {JobState.FAILED, JobState.CANCELLED}:
        return "retry"
    return "" if view.over or view.cancel_asked else "cancel"


def _every(viewer: Viewer, where: JobFilter) -> Iterator[JobView]:
    query = JobQuery(where, size=200)
    while True:
        found = list_jobs(viewer.tenant_id, query)
        yield from map(view_of, found.rows)
        if not found.after:
            return
        last = found.rows[-1]
        query = replace(query, after=Cursor(last.created_at, last.id))


def _csv(line: JobView) -> tuple[object, ...]:
    return (
        line.id, line.kind, line.state, line.subject, line.session_id, line.cause, line.attempts,
        line.percent, line.error_code, line.created_at, line.started_at, line.finished_at,
    )  # fmt: skip
