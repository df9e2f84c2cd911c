"""Who sits at the browser, and one address for each kind of page."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from playwright.sync_api import Browser, BrowserContext, Page

from ctxengine.ledger.models import ItemRow, Tenant
from ctxengine.service.working_state import working_state_view
from tests.factories import LiveSession
from tests.inspector.sessions import PRINCIPAL, compaction_of


@dataclass
class Desk:
    """A signed-in person's browser, watching what pages do."""

    origin: str
    tenant: Tenant
    session: LiveSession
    pressed: LiveSession
    kept: LiveSession
    browser: Browser
    child: UUID
    state: Any = None
    complaints: list[str] = field(default_factory=list)
    contexts: list[BrowserContext] = field(default_factory=list)
    more: dict[str, str] = field(default_factory=dict)
    """Addresses of what `whole_desk` adds."""

    def url(self, path: str = "") -> str:
        return f"{self.origin}/t/{self.tenant.slug}/{path}"

    def open(self, path: str = "", **options: Any) -> Page:
        """A page of the tenant in a context of its own."""
        context = self.browser.new_context(storage_state=self.state, **options)
        self.contexts.append(context)
        page = context.new_page()
        self.watch(page)
        page.goto(self.url(path))
        return page

    def watch(self, page: Page) -> None:
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.complaints.append(f"error {error}"))
        page.on("request", self._asked)

    def _heard(self, message: Any) -> None:
        if message.type in {"error", "warning"}:
            self.complaints.append(f"console {message.type}: {message.text}")

    def _asked(self, request: Any) -> None:
        found = urlsplit(request.url)
        if (
            found.scheme not in {"data", "blob"}
            and f"{found.scheme}://{found.netloc}" != self.origin
        ):
            self.complaints.append(f"foreign request {request.url}")

    def paths(self) -> dict[str, str]:
        """Pages by the name of their route; a second state of one has its words after a stroke."""
        request, late = self.session.requests[1], self.pressed.requests[-1]
        session, kept = f"sessions/{self.session.id}/", f"sessions/{self.kept.id}/"
        return {
            "overview": "",
            "sessions": "sessions/",
            "sessions | filtered": "sessions/?q=epoch%3A%3E1",
            "requests": "requests/",
            "requests | filtered": "requests/?yielded=any&q=trust%3Aexternal",
            "session": f"sessions/{self.pressed.id}/",
            "session | child": f"sessions/{self.child}/",
            "session-events": f"{session}events/?at=3",
            "session-plan": f"{session}plan/",
            "session-plan | kept": f"{kept}plan/",
            "event-body": f"{session}events/3/",
            "session-state": f"{kept}state/",
            "lift-constraint": f"{kept}state/lift/?id={constraint_of(self.kept)}",
            "tool-act": f"{kept}plan/tool/?tool=shell.run",
            "session-epochs": f"{kept}epochs/",
            "epoch-diff": f"{kept}epochs/diff/",
            "rotate": f"{kept}epochs/rotate/?why=tool_removed_for_security&tool=web.fetch",
            "session-compactions": f"{kept}compactions/",
            "compact-now": f"{kept}compactions/new/",
            "undo-compaction": f"{kept}compactions/{compaction_of(self.kept)}/undo/",
            "mark": f"{kept}compactions/mark/?target=3",
            "configure": f"{kept}settings/",
            "item": f"{session}items/3.0/",
            "session-turns": f"{session}turns/",
            "turns-seen-by": f"{session}turns/seen-by/",
            "session-turns | weighed": f"{session}turns/?for=Which+test+is+flaky",
            "evidence": f"{session}evidence/{result_of(self.session)}/?lines=1-2",
            "request": f"requests/{late}/",
            "request-items": f"requests/{late}/items/",
            "request-items | filtered": f"requests/{late}/items/?form=pointer",
            "request-items | left out": f"requests/{late}/items/?form=out",
            "request-json": f"requests/{request}/json/",
            "request-change": f"requests/{late}/change/",
            "request-events": f"requests/{request}/events/",
            "request-take-away": f"requests/{request}/take-away/",
            "diff": f"requests/{self.session.requests[0]}/diff/{request}/",
            "personas": "personas/",
            "persona": f"personas/of/{PRINCIPAL}/",
            "agents": "agents/?name=coder&version=12",
            "policies": "policies/",
            "metrics": "metrics/?w=7d&by=model",
            "models": "models/",
            "providers": "providers/",
            "imports": "imports/",
            "jobs": "jobs/",
            "lab": f"lab/?session={self.session.id}",
            "search": "search/?q=repository",
            "alerts": "alerts/",
            "audit": "audit/",
            "api-keys": "api-keys/",
            "members": "members/",
            "retention": "retention/",
            "glossary": "glossary/",
            "tour": "tour/",
            "styleguide": "styleguide/",
            "keys": "keys/",
            **self.more,
        }


def result_of(session: LiveSession) -> str:
    """Id of a tool result."""
    row = ItemRow.objects.filter(session_id=session.id, kind="tool_result").first()
    assert row is not None
    return f"{row.sequence}.{row.ordinal}"


def constraint_of(session: LiveSession) -> str:
    state = working_state_view(actor=session.actor, session_id=session.id).state
    return state.constraints[0].id
