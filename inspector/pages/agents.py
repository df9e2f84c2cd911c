"""P14: agent versions, and the figures of the budget policies in force."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponseBase
from django.views.decorators.http import require_safe

from ctxengine.engine.budget.policy import DEFAULT_POLICY
from ctxengine.ledger.queries.agents import (
    AgentDetail,
    PolicyLine,
    agent_detail,
    agent_lines,
    policy_lines,
)
from inspector.access import Viewer, member
from inspector.contexts import Shell
from inspector.epochdiff import policy_figures
from inspector.filters import free
from inspector.persona_contexts import AgentsPage, PolicyView
from inspector.render import Twin, csv_stream, json_stream, show

CSV_HEADER = (
    "name", "version", "digest", "created_at", "sessions", "open_sessions", "last_used_at",
)  # fmt: skip
POLICY_HEADER = ("name", "version", "open_sessions", "figure", "value", "default")


@require_safe
@member(asks={"name": free, "version": free})
def agents(request: HttpRequest, viewer: Viewer, twin: Twin) -> HttpResponseBase:
    """All versions; `?name=&version=` opens one."""
    lines = agent_lines(viewer.tenant_id)
    if twin is Twin.CSV:
        rows = (tuple(getattr(line, name) for name in CSV_HEADER) for line in lines)
        return csv_stream("agents", CSV_HEADER, rows)
    if twin is Twin.JSON:
        return json_stream(lines)
    page = AgentsPage(
        shell=Shell(viewer, "Agents and policies", "agents"),
        agents=lines,
        detail=_detail(request, viewer),
        policies=_policies(viewer),
    )
    return show(request, "agents.html", page)


@require_safe
@member(asks={})
def policies(request: HttpRequest, viewer: Viewer, twin: Twin) -> HttpResponseBase:
    """The twins of the policies; the page shows them beside the agents."""
    views = _policies(viewer)
    if twin is Twin.CSV:
        usual = policy_figures(DEFAULT_POLICY.as_json())
        rows = (
            (view.line.name, view.line.version, view.line.sessions, name, value, usual.get(name))
            for view in views
            for name, value in view.figures
        )
        return csv_stream("policies", POLICY_HEADER, rows)
    if twin is Twin.JSON:
        return json_stream(view.line for view in views)
    return agents(request, viewer.slug, twin=twin)


def _detail(request: HttpRequest, viewer: Viewer) -> AgentDetail | None:
    name = request.GET.get("name", "")
    if not name:
        return None
    found = agent_detail(viewer.tenant_id, name, request.GET.get("version", ""))
    if found is None:
        raise Http404("No such agent version.")
    return found


def _policies(viewer: Viewer) -> tuple[PolicyView, ...]:
    return tuple(_view(line) for line in policy_lines(viewer.tenant_id))


def _view(line: PolicyLine) -> PolicyView:
    usual, here = policy_figures(DEFAULT_POLICY.as_json()), policy_figures(line.figures)
    differs = tuple(
        (name, usual.get(name, "none"), here.get(name, "none"))
        for name in dict.fromkeys([*usual, *here])
        if usual.get(name) != here.get(name)
    )
    return PolicyView(line, differs, tuple(here.items()))
