"""What the tabs of a session share: the session itself, or 404."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from django.http import Http404
from django.urls import reverse

from ctxengine.ledger.queries.session import SessionHead, parent_session, session_head
from inspector.access import Viewer
from inspector.contexts import Crumb, SessionFrame, Shell, Tab
from inspector.render import Twin

TABS = (
    ("Runs", "session"),
    ("Turns", "session-turns"),
    ("State", "session-state"),
    ("Plan", "session-plan"),
    ("Epochs", "session-epochs"),
    ("Compactions", "session-compactions"),
    ("Checkpoints", "session-checkpoints"),
    ("Events", "session-events"),
)

ONLY_FOR: Mapping[str, frozenset[str]] = {"session-checkpoints": frozenset({"boundary"})}
"""Tabs that sessions of these engines have alone."""


def head_or_404(viewer: Viewer, session_id: UUID) -> SessionHead:
    """The session of this tenant.

    Raises:
        Http404: there is none of that id here.
    """
    head = session_head(viewer.tenant_id, session_id)
    if head is None:
        raise Http404("No such session.")
    return head


def session_title(head: SessionHead) -> str:
    """The title, or the start of the id where there is none."""
    return head.title or f"Session {str(head.id)[:8]}"


def session_address(slug: str, session_id: UUID) -> str:
    """Where a session's first tab lives."""
    return reverse("inspector:session", args=[slug, session_id, Twin.HTML])


def frame_of(viewer: Viewer, head: SessionHead, name: str) -> SessionFrame:
    """Tabs and parent of a session."""
    tabs = tuple(
        Tab(
            label,
            reverse(f"inspector:{route}", args=[viewer.slug, head.id, Twin.HTML]),
            route == name,
        )
        for label, route in TABS
        if route not in ONLY_FOR or head.engine in ONLY_FOR[route]
    )
    parent = parent_session(viewer.tenant_id, head.parent_run_id) if head.parent_run_id else None
    return SessionFrame(head, tabs, parent)


def shell_of(viewer: Viewer, head: SessionHead, tab: str = "", news: str = "") -> Shell:
    """Surroundings of a session's page; `news` is the address at which it asks for newer events."""
    here = reverse("inspector:session", args=[viewer.slug, head.id, Twin.HTML])
    title = session_title(head)
    crumbs = [Crumb("Sessions", reverse("inspector:sessions", args=[viewer.slug, Twin.HTML]))]
    crumbs += [Crumb(title, here), Crumb(tab)] if tab else [Crumb(title)]
    return Shell(viewer, f"{tab} · {title}" if tab else title, "sessions", tuple(crumbs), news=news)
