"""The keys, as a page."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from inspector.access import Viewer, member
from inspector.contexts import Shell, ShortcutsPage
from inspector.render import show

GROUPS = (
    (
        "Everywhere",
        (
            ("/", "jump box"),
            ("?", "this page"),
            ("g o", "overview"),
            ("g s", "sessions"),
            ("g r", "requests"),
            ("g f", "search, find words"),
            ("g n", "metrics, the numbers"),
            ("g p", "personas"),
            ("g a", "agents and policies"),
            ("g m", "models and capacity"),
            ("g i", "imports"),
            ("g l", "replay lab"),
            ("g j", "operations: jobs, alerts, audit, keys, members"),
            ("v", "live on or off: whether open pages ask for what is newer"),
            ("t", "colour scheme: system, light, dark"),
            ("u", "times: relative, UTC, your own time zone"),
            ("c", "copy the address of this view"),
            ("Esc", "leave a field"),
        ),
    ),
    (
        "Lists",
        (
            ("j", "next line"),
            ("k", "line before"),
            ("Enter", "open the line"),
            (
                "p",
                "peek at the line: it opens beside the list; j and k go on to its neighbours, Esc closes",
            ),
        ),
    ),
    (
        "A request",
        (
            ("j", "next request, same tab"),
            ("k", "request before, same tab"),
            ("d", "compare with the request before"),
            (".", "download the raw body"),
            ("e", "unfold everything, or fold it again"),
        ),
    ),
)


@require_safe
@member()
def shortcuts(request: HttpRequest, viewer: Viewer) -> HttpResponse:
    """All keys; they do nothing while a field has the focus."""
    page = ShortcutsPage(Shell(viewer, "Keys", ""), GROUPS)
    return show(request, "shortcuts.html", page)
