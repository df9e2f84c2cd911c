"""Alerts: rules about figures, what they found, and whom they tell."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from ctxengine.ledger.queries.console import alert_changes, alert_rules
from ctxengine.service.alerts.look import look_at_alerts
from ctxengine.service.alerts.measures import BY_NAME, MEASURES
from ctxengine.service.alerts.rules import WINDOWS_MINUTES, add_rule, remove_rule, switch_rule
from ctxengine.service.specs import ServiceError
from inspector.access import Viewer, member
from inspector.console_contexts import AlertsPage
from inspector.contexts import Shell
from inspector.filters import free
from inspector.pages.acts import reason_of
from inspector.pages.operations import operations_tabs
from inspector.render import Twin, csv_stream, json_stream, see_other, show

_WINDOW_WORDS = {60: "hour", 360: "6 hours", 1440: "day", 10_080: "week"}
_GIVEN = ("name", "measure", "bound", "window", "webhook", "reason")
_SHOWN_AGAIN = frozenset({409, 422})
CSV_HEADER = (
    "name", "measure", "bound", "window_minutes", "enabled", "state", "value", "looked_at", "created_by",
)  # fmt: skip
_DONE = ("added", "switched", "removed", "looked")


@require_http_methods(["GET", "HEAD", "POST"])
@member(asks={"done": free})
def alerts(request: HttpRequest, viewer: Viewer, twin: Twin) -> HttpResponseBase:
    """Rules and their changes; a POST of an operator adds, switches, removes or looks now (`act`)."""
    if request.method == "POST":
        return _act(request, viewer)
    rules = alert_rules(viewer.tenant_id)
    rows = [tuple(getattr(rule, name) for name in CSV_HEADER) for rule in rules]
    if twin is Twin.CSV:
        return csv_stream("alerts", CSV_HEADER, rows)
    if twin is Twin.JSON:
        return json_stream(dict(zip(CSV_HEADER, row, strict=True)) for row in rows)
    return show(request, "alerts.html", _page(viewer, done=request.GET.get("done", "")))


def _act(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    viewer.must_operate("Changing alerts")
    acts: dict[str, Callable[[HttpRequest, Viewer], str]] = {
        "add": _add,
        "on": _switch,
        "off": _switch,
        "remove": _remove,
        "look": _look,
    }
    act = acts.get(request.POST.get("act", ""))
    if act is None:
        raise ServiceError("invalid_act", 400, f"`act` is one of {', '.join(acts)}.")
    try:
        done = act(request, viewer)
    except ServiceError as refused:
        if refused.status not in _SHOWN_AGAIN:
            raise
        given = {name: request.POST.get(name, "")[:600] for name in _GIVEN}
        page = _page(viewer, refused.detail, given)
        return show(request, "alerts.html", page, status=refused.status)
    here = reverse("inspector:alerts", args=[viewer.slug, Twin.HTML])
    return see_other(f"{here}?done={done}")


def _add(request: HttpRequest, viewer: Viewer) -> str:
    add_rule(
        actor=viewer.actor,
        name=request.POST.get("name", ""),
        measure=request.POST.get("measure", ""),
        bound=_figure(request.POST.get("bound", "")),
        window_minutes=int(_figure(request.POST.get("window", ""))),
        webhook=request.POST.get("webhook", "").strip(),
        note=reason_of(request),
    )
    look_at_alerts(tenant_id=viewer.tenant_id)
    return "added"


def _switch(request: HttpRequest, viewer: Viewer) -> str:
    switch_rule(
        actor=viewer.actor,
        rule_id=_id(request),
        enabled=request.POST["act"] == "on",
        note=reason_of(request),
    )
    return "switched"


def _remove(request: HttpRequest, viewer: Viewer) -> str:
    remove_rule(actor=viewer.actor, rule_id=_id(request), note=reason_of(request))
    return "removed"


def _look(request: HttpRequest, viewer: Viewer) -> str:
    look_at_alerts(tenant_id=viewer.tenant_id)
    return "looked"


def _id(request: HttpRequest) -> UUID:
    try:
        return UUID(request.POST.get("rule", ""))
    except ValueError as error:
        raise ServiceError("not_found", 404, "There is no such rule.") from error


def _figure(text: str) -> float:
    try:
        figure = float(text)
    except ValueError:
        raise ServiceError("invalid_field", 422, "A bound is a number such as 0.9.") from None
    if not -1e12 < figure < 1e12:
        raise ServiceError("invalid_field", 422, "A bound is a number from nought to a billion.")
    return figure


def _page(
    viewer: Viewer, problem: str = "", given: dict[str, str] | None = None, done: str = ""
) -> AlertsPage:
    return AlertsPage(
        shell=Shell(viewer, "Alerts", "jobs"),
        tabs=operations_tabs(viewer, "alerts"),
        rules=tuple((rule, BY_NAME.get(rule.measure)) for rule in alert_rules(viewer.tenant_id)),
        changes=alert_changes(viewer.tenant_id),
        measures=MEASURES,
        windows=tuple((minutes, _WINDOW_WORDS[minutes]) for minutes in WINDOWS_MINUTES),
        hosts=tuple(settings.CTX_WEBHOOK_HOSTS),
        problem=problem,
        done=done if done in _DONE else "",
        given=given or {},
        may_act=viewer.is_operator,
    )
