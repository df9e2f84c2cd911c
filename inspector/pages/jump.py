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
    """One match: go there. Several: list them. None: search for the words."""
    text = request.GET.get("q", "").strip()
    found = look_up(viewer.tenant_id, text)
    if len(found) == 1:
        return redirect(_address(viewer.slug, found[0]))
    if not found:
        route = "search" if text else "sessions"
        listed = reverse(f"inspector:{route}", args=[viewer.slug, Twin.HTML])
        return redirect(f"{listed}?{urlencode({'q': _words(text)})}" if text else listed)
    page = JumpPage(
        shell=Shell(viewer, f"What {text} names", ""),
        text=text,
        found=tuple((one, _address(viewer.slug, one)) for one in found),
    )
    return show(request, "jump.html", page)


def _words(text: str) -> str:
    """The text as words to look for: a colon in it is no filter here."""
    return f'"{text.replace(chr(34), " ")}"' if ":" in text else text


def _address(slug: str, found: Found) -> str:
    if found.kind == "request":
        return reverse("inspector:request", args=[slug, found.key, Twin.HTML])
    if found.kind == "import":
        return reverse("inspector:import", args=[slug, found.key, Twin.HTML])
    if found.kind == "epoch":
        plan = reverse("inspector:session-plan", args=[slug, found.session_id, Twin.HTML])
        return f"{plan}?epoch={found.key}"
    if found.kind == "job":
        return reverse("inspector:job", args=[slug, found.key, Twin.HTML])
    if found.kind == "item":
        return reverse("inspector:item", args=[slug, found.session_id, found.key])
    if found.kind == "event":
        events = reverse("inspector:session-events", args=[slug, found.session_id, Twin.HTML])
        return f"{events}?at={found.key}#e-{found.key}"
    session = reverse("inspector:session", args=[slug, found.session_id, Twin.HTML])
    if found.kind == "run":
        return f"{session}?before={int(found.key) + 1}#run-{found.key}"
    return session
