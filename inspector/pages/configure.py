"""A session's settings that may change while it lives: the life of its cache entries, and who writes its summaries."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from ctxengine.engine.plan.plan import Plan
from ctxengine.ledger.queries.session import SessionHead
from ctxengine.service.access import plan_row_of, session_of
from ctxengine.service.policy_edit import edit_policy
from ctxengine.service.specs import ServiceError
from ctxengine.service.wiring import log_of, plan_from
from inspector.access import Viewer, member
from inspector.console_contexts import ConfigurePage
from inspector.filters import free
from inspector.pages.acts import reason_of
from inspector.pages.session_frame import frame_of, head_or_404, shell_of
from inspector.render import see_other, show

TTLS = (("", "as the provider does"), ("5m", "5 minutes"), ("1h", "an hour"))
COMPACTIONS = (
    ("deterministic", "taken from the ledger, no model"),
    ("model", "written by a model"),
    ("none", "none: the omission line alone"),
)
_SHOWN_AGAIN = frozenset({409, 422})


@require_http_methods(["GET", "HEAD", "POST"])
@member(asks={"done": free})
def configure(request: HttpRequest, viewer: Viewer, session_id: UUID) -> HttpResponse:
    """The settings; a POST of an operator changes them, with a reason."""
    head = head_or_404(viewer, session_id)
    if request.method != "POST":
        return show(request, "session_configure.html", _page(request, viewer, head))
    viewer.must_operate("Changing a session's settings")
    try:
        edit_policy(
            actor=viewer.actor,
            session_id=head.id,
            history_ttl=request.POST.get("ttl", ""),
            compaction=request.POST.get("compaction", ""),
            summary_model=request.POST.get("summary_model", "").strip(),
            note=reason_of(request),
        )
    except ServiceError as refused:
        if refused.status not in _SHOWN_AGAIN:
            raise
        page = _page(request, viewer, head, refused.detail)
        return show(request, "session_configure.html", page, status=refused.status)
    return see_other(reverse("inspector:configure", args=[viewer.slug, head.id]) + "?done=1")


def _page(
    request: HttpRequest, viewer: Viewer, head: SessionHead, problem: str = ""
) -> ConfigurePage:
    row = session_of(viewer.actor, head.id)
    plan: Plan = plan_from(log_of(row), plan_row_of(row))
    given = request.POST if problem else {}
    policy = plan.policy
    return ConfigurePage(
        shell=shell_of(viewer, head, "Settings"),
        frame=frame_of(viewer, head, "session-plan"),
        policy_name=f"{policy.name}@{policy.version}",
        ttl=str(given.get("ttl", row.settings.get("history_ttl", ""))),
        ttls=TTLS,
        compaction=str(given.get("compaction", policy.compaction)),
        compactions=COMPACTIONS,
        summary_model=str(given.get("summary_model", policy.summary_model))[:250],
        problem=problem,
        done=request.GET.get("done", "") == "1",
        blocked="" if head.state == "open" else "The session has ended.",
        may_act=viewer.is_operator and head.state == "open",
    )
