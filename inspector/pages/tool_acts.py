"""Revoking a tool and restoring it: calls are refused at once, and no byte of the prefix changes."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_http_methods

from ctxengine.ledger.queries.plans import PlannedTool, plan_detail
from ctxengine.ledger.queries.session import SessionHead
from ctxengine.service.access import session_of
from ctxengine.service.calls import revoked_tools
from ctxengine.service.revoke_tool import restore_tool, revoke_tool
from ctxengine.service.wiring import log_of
from inspector.access import Viewer, member
from inspector.act_contexts import ActPage, Figure
from inspector.pages.acts import answer
from inspector.pages.session_frame import frame_of, head_or_404, shell_of
from inspector.render import Twin


@require_http_methods(["GET", "HEAD", "POST"])
@member()
def tool_act(request: HttpRequest, viewer: Viewer, session_id: UUID) -> HttpResponse:
    """GET asks about `?tool=`; POST revokes it, or restores it where it is revoked (`act`)."""
    head = head_or_404(viewer, session_id)
    name = request.POST.get("tool") or request.GET.get("tool", "")
    return answer(
        request,
        viewer,
        template="act.html",
        name="Revoking or restoring a tool",
        page=lambda: _page(viewer, head, name),
        act=lambda reason: _act(viewer, head, name, reason, request.POST.get("act", "revoke")),
    )


def _act(viewer: Viewer, head: SessionHead, name: str, reason: str, act: str) -> str:
    work = restore_tool if act == "restore" else revoke_tool
    done = work(actor=viewer.actor, session_id=head.id, name=name, note=reason)
    told = urlencode({"done": "revoked" if done.revoked else "restored", "tool": done.name})
    return f"{_back(viewer, head)}?{told}"


def _page(viewer: Viewer, head: SessionHead, name: str) -> ActPage:
    tool = _tool_or_404(viewer, head, name)
    revoked = name in revoked_tools(log_of(session_of(viewer.actor, head.id)))
    verb = "Restore" if revoked else "Revoke"
    return ActPage(
        shell=shell_of(viewer, head, f"{verb} {name}"),
        frame=frame_of(viewer, head, "session-plan"),
        heading=f"{verb} {name}",
        explains=(
            "Its calls are executed again from now on."
            if revoked
            else "It stays advertised, and each call is answered with a refusal from now on, in an open run as well."
        ),
        figures=(
            Figure("Re-cached", "0 tokens", "the prefix keeps its bytes"),
            Figure("Stands", tool.group, tool.reason),
            Figure("Side effect", tool.side_effect or "not said"),
        ),
        blocked="" if head.state == "open" else "The session has ended.",
        hidden=(("tool", name), ("act", "restore" if revoked else "revoke")),
        button=f"{verb} {name}",
        back=_back(viewer, head),
        allowed=viewer.is_operator,
    )


def _tool_or_404(viewer: Viewer, head: SessionHead, name: str) -> PlannedTool:
    plan = plan_detail(viewer.tenant_id, head.id, head.epoch)
    tools = plan.tools if plan else ()
    found = next((tool for tool in tools if tool.name == name), None)
    if found is None:
        raise Http404("No such tool in the plan.")
    return found


def _back(viewer: Viewer, head: SessionHead) -> str:
    return reverse("inspector:session-plan", args=[viewer.slug, head.id, Twin.HTML])
