"""Retention: how long the tenant keeps what, how much is over that time, and applying it now."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from ctxengine.service.retention.apply import ask_for_retention_of, due
from ctxengine.service.retention.kinds import KINDS
from ctxengine.service.retention.rules import keeping_times, set_keeping_times
from ctxengine.service.specs import ServiceError
from inspector.access import Viewer, member
from inspector.console_contexts import RetentionLine, RetentionPage
from inspector.contexts import Shell
from inspector.filters import free
from inspector.pages.acts import reason_of
from inspector.pages.operations import operations_tabs
from inspector.render import Twin, csv_stream, json_stream, see_other, show

CSV_HEADER = ("kind", "days", "due", "goes", "stays")
_SHOWN_AGAIN = frozenset({409, 422})
_MOST_DIGITS = 6


@require_http_methods(["GET", "HEAD", "POST"])
@member(asks={"done": free})
def retention(request: HttpRequest, viewer: Viewer, twin: Twin) -> HttpResponseBase:
    """The kinds with their times; a POST of an admin changes one, or applies all of them (`act`)."""
    if request.method == "POST":
        return _act(request, viewer)
    if twin is not Twin.HTML:
        lines = _lines(viewer)
        rows = [(line.kind.name, line.days, line.due, line.kind.goes, line.kind.stays) for line in lines]  # fmt: skip
        if twin is Twin.CSV:
            return csv_stream("retention", CSV_HEADER, rows)
        return json_stream(dict(zip(CSV_HEADER, row, strict=True)) for row in rows)
    return show(request, "retention.html", _page(viewer, done=request.GET.get("done", "")))


def _act(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    viewer.must_administer("Changing what is kept")
    acts = {"change": _change, "apply": _apply}
    act = acts.get(request.POST.get("act", ""))
    if act is None:
        raise ServiceError("invalid_act", 400, f"`act` is one of {', '.join(acts)}.")
    try:
        done = act(request, viewer)
    except ServiceError as refused:
        if refused.status not in _SHOWN_AGAIN:
            raise
        return show(request, "retention.html", _page(viewer, refused.detail), status=refused.status)
    here = reverse("inspector:retention", args=[viewer.slug, Twin.HTML])
    return see_other(f"{here}?done={done}")


def _change(request: HttpRequest, viewer: Viewer) -> str:
    typed = request.POST.get("days", "").strip()
    if not (typed.isascii() and typed.isdigit() and len(typed) <= _MOST_DIGITS):
        raise ServiceError("invalid_field", 422, "Days are a whole number; 0 keeps for ever.")
    set_keeping_times(
        actor=viewer.actor,
        days={request.POST.get("kind", ""): int(typed)},
        note=reason_of(request),
    )
    return "changed"


def _apply(request: HttpRequest, viewer: Viewer) -> str:
    ask_for_retention_of(viewer.actor)
    return "asked"


def _lines(viewer: Viewer) -> tuple[RetentionLine, ...]:
    times, old = keeping_times(viewer.tenant_id), due(viewer.tenant_id)
    return tuple(RetentionLine(kind, times[kind.name], old[kind.name]) for kind in KINDS)


def _page(viewer: Viewer, problem: str = "", done: str = "") -> RetentionPage:
    lines = _lines(viewer)
    return RetentionPage(
        shell=Shell(viewer, "Retention", "jobs"),
        tabs=operations_tabs(viewer, "retention"),
        lines=lines,
        due=sum(line.due for line in lines),
        problem=problem,
        done=done if done in {"changed", "asked"} else "",
        may_act=viewer.is_admin,
    )
