"""The jump box: any id or hash prefix leads to what it names."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from ctxengine.ledger.queries.lookup import Found, look_up
from inspector.access import Viewer, member
from inspector.contexts import JumpPage, Shell
from inspector.render import Twin, show


@require_safe
@member()
def jump(request: HttpRequest, viewer: Viewer) -> HttpResponse:
    """One match: go there. Several: list them. None: search the sessions for the text."""
    text = request.GET.get("q", "").strip()
    found = look_up(viewer.tenant_id, text)
    if len(found) == 1:
        return redirect(_address(viewer.slug, found[0]))
    if not found:
        sessions = reverse("inspector:sessions", args=[viewer.slug, Twin.HTML])
        return redirect(f"{sessions}?{urlencode({'q': text})}" if text else sessions)
    page = JumpPage(
        shell=Shell(viewer, f"What {text} names", ""),
        text=text,
        found=tuple((one, _address(viewer.slug, one)) for one in found),
    )
    return show(request, "jump.html", page)


def _address(slug: str, found: Found) -> str:
    if found.kind == "request":
        return reverse("inspector:request", args=[slug, found.key, Twin.HTML])
    if found.kind == "import":
        return reverse("inspector:import", args=[slug, found.key, Twin.HTML])
    if found.kind == "epoch":
        plan = reverse("inspector:session-plan", args=[slug, found.session_id, Twin.HTML])
        return f"{plan}?epoch={found.key}"
    return reverse("inspector:session", args=[slug, found.session_id, Twin.HTML])
