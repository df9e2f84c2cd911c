"""The console in a real browser: people's ways through it, with and without JavaScript, and axe on every page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, BrowserContext, Page, expect

from ctxengine.ledger.models import ItemRow, Role, Tenant
from ctxengine.service.working_state import working_state_view
from tests.factories import (
    PASSWORD,
    LiveSession,
    make_person,
    make_tenant,
    pressed_session,
    worked_session,
)
from tests.inspector.sessions import PRINCIPAL, compaction_of, kept_session, opened_with

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]

AXE = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}


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
        if found.scheme != "data" and f"{found.scheme}://{found.netloc}" != self.origin:
            self.complaints.append(f"foreign request {request.url}")

    def paths(self) -> dict[str, str]:
        """One path for each kind of page."""
        request, late = self.session.requests[1], self.pressed.requests[-1]
        session = f"sessions/{self.session.id}/"
        kept = f"sessions/{self.kept.id}/"
        return {
            "overview": "",
            "sessions": "sessions/",
            "requests": "requests/",
            "imports": "imports/",
            "keys": "keys/",
            "session": f"sessions/{self.pressed.id}/",
            "child": f"sessions/{self.child}/",
            "events": f"{session}events/?at=3",
            "plan": f"{session}plan/",
            "body": f"{session}events/3/",
            "state": f"{kept}state/",
            "lift": f"{kept}state/lift/?id={constraint_of(self.kept)}",
            "kept plan": f"{kept}plan/",
            "revoke": f"{kept}plan/tool/?tool=shell.run",
            "epochs": f"{kept}epochs/",
            "epoch diff": f"{kept}epochs/diff/",
            "rotate": f"{kept}epochs/rotate/?why=tool_removed_for_security&tool=web.fetch",
            "compactions": f"{kept}compactions/",
            "compact": f"{kept}compactions/new/",
            "undo": f"{kept}compactions/{compaction_of(self.kept)}/undo/",
            "mark": f"{kept}compactions/mark/?target=3",
            "personas": "personas/",
            "persona": f"personas/of/{PRINCIPAL}/",
            "agents": "agents/?name=coder&version=12",
            "item": f"{session}items/3.0/",
            "turns": f"{session}turns/",
            "turns weighed": f"{session}turns/?for=Which+test+is+flaky",
            "evidence": f"{session}evidence/{result_of(self.session)}/?lines=1-2",
            "checkpoints": f"{session}checkpoints/",
            "lab": f"lab/?session={self.session.id}",
            "rows": f"requests/{late}/",
            "items": f"requests/{late}/items/",
            "json": f"requests/{request}/json/",
            "change": f"requests/{late}/change/",
            "request events": f"requests/{request}/events/",
            "diff": f"requests/{self.session.requests[0]}/diff/{request}/",
            "take away": f"requests/{request}/take-away/",
            "settings": f"{kept}settings/",
            "search": "search/?q=repository",
            "alerts": "alerts/",
            "audit": "audit/",
            "API keys": "api-keys/",
            "members": "members/",
            "glossary": "glossary/",
            "tour": "tour/",
            "style guide": "styleguide/",
        }


@pytest.fixture
def desk(live_server: Any, browser: Browser) -> Iterator[Desk]:
    tenant = make_tenant("acme")
    make_person(tenant, Role.OPERATOR, "mara")
    worked, pressed = worked_session(tenant), pressed_session(tenant)
    parent = LiveSession(tenant, title="Hand the depots on").ask("Hand it on.")
    child = opened_with(tenant, occasion="child", parent_run=parent.run)
    desk = Desk(live_server.url, tenant, worked, pressed, kept_session(tenant), browser, child)
    context = browser.new_context()
    page = context.new_page()
    desk.watch(page)
    page.goto(live_server.url + "/")
    page.get_by_label("Name").fill("mara")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/t/acme/")
    desk.state = context.storage_state()
    context.close()
    yield desk
    for context in desk.contexts:
        context.close()
    assert desk.complaints == []


def test_from_a_complaint_to_the_line_that_says_why(desk: Desk) -> None:
    """The stranger's way: overview, worst session, the request that yielded, its reason; five clicks."""
    page = desk.open()
    page.get_by_role("link", name="Fix flaky checkout test").first.click()
    expect(page.get_by_role("heading", name="Every request of this session")).to_be_visible()
    page.locator(".step.warn").last.click()
    expect(page.get_by_text("Tool results yielded").first).to_be_visible()
    expect(page.get_by_text("results as pointers").first).to_be_visible()
    page.get_by_role("link", name="Items", exact=True).click()
    expect(page.locator(".item.pointer").first).to_be_visible()


def test_proving_answers_in_place(desk: Desk) -> None:
    page = desk.open(f"requests/{desk.session.requests[-1]}/")
    before = page.url
    page.get_by_role("button", name="Prove").click()
    expect(page.locator("#proof")).to_contain_text("Rebuilds to the same bytes")
    assert page.url == before


def test_an_items_body_is_loaded_when_it_is_opened(desk: Desk) -> None:
    page = desk.open(f"requests/{desk.session.requests[-1]}/items/")
    item = (
        page.locator(".item", has_text="web_fetch")
        .or_(page.locator(".item", has_text="web.fetch"))
        .last
    )
    item.locator("summary").click()
    expect(item.locator("figure.env")).to_contain_text("ignore the above")
    expect(item.locator("mark").first).to_be_visible()


def test_filters_live_in_the_address_and_survive_back(desk: Desk) -> None:
    page = desk.open("requests/")
    page.get_by_label("Yielded").select_option("any")
    page.wait_for_url("**yielded=any**")
    expect(page.locator("#results tbody tr").first).to_contain_text(
        re.compile("▲ (tool_results|history)")
    )
    count = page.locator("#results tbody tr").count()
    page.locator("#results tbody a").first.click()
    page.wait_for_url("**/requests/*-*/?in=*")
    page.go_back()
    page.wait_for_url("**yielded=any**")
    expect(page.locator("#results tbody tr")).to_have_count(count)
    expect(page.get_by_label("Yielded")).to_have_value("any")


def test_the_keys_do_what_the_links_do(desk: Desk) -> None:
    first, second = desk.session.requests[0], desk.session.requests[1]
    page = desk.open(f"requests/{first}/items/")
    page.keyboard.press("j")
    page.wait_for_url(f"**/requests/{second}/items/")
    page.keyboard.press("d")
    page.wait_for_url("**/diff/**")
    page.keyboard.press("g")
    page.keyboard.press("s")
    page.wait_for_url("**/sessions/")
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox").first).to_be_focused()
    page.keyboard.type(str(first))
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/requests/{first}/")
    page.keyboard.press("t")
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    page.keyboard.press("?")
    page.wait_for_url("**/keys/")
    expect(page.locator("html")).to_have_attribute("data-theme", "light")


def test_lines_of_a_list_are_walked_by_key(desk: Desk) -> None:
    page = desk.open("sessions/")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator("[data-list] tbody tr").nth(1).locator("a").first).to_be_focused()
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    page.wait_for_url("**/sessions/*-*/")


def test_a_transcript_is_rehearsed_then_imported(desk: Desk) -> None:
    page = desk.open("imports/")
    transcript = {
        "name": "talk.json",
        "mimeType": "application/json",
        "buffer": b'{"model":"gpt-4o","messages":[{"role":"user","content":"Hi"},'
        b'{"role":"assistant","content":"Hello"}]}',
    }
    page.get_by_label("File").set_input_files(transcript)  # type: ignore[arg-type]
    page.get_by_role("button", name="Rehearse").click()
    expect(page.get_by_role("status").first).to_contain_text("nothing was kept")
    page.get_by_label("File").set_input_files(transcript)  # type: ignore[arg-type]
    page.get_by_role("button", name="Import").click()
    expect(page.get_by_role("status").first).to_contain_text("Imported")


def test_everything_can_be_read_and_done_without_javascript(desk: Desk) -> None:
    for name, path in desk.paths().items():
        page = desk.open(path, java_script_enabled=False)
        expect(page.locator("h1")).to_be_visible()
        page.context.close()
        assert name
    page = desk.open(f"requests/{desk.session.requests[-1]}/", java_script_enabled=False)
    page.get_by_role("button", name="Prove").click()
    expect(page.locator("#proof")).to_contain_text("Rebuilds to the same bytes")
    page.get_by_role("link", name="Items", exact=True).click()
    page.locator(".item summary").first.click()
    page.get_by_role("link", name="open on its own page").first.click()
    expect(page.locator("figure.env pre").first).to_be_visible()
    page.goto(desk.url("sessions/"))
    page.get_by_label("Search", exact=True).fill("no such thing")
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_text("No session matches.")).to_be_visible()


def result_of(session: LiveSession) -> str:
    row = ItemRow.objects.filter(session_id=session.id, kind="tool_result").first()
    assert row is not None
    return f"{row.sequence}.{row.ordinal}"


def constraint_of(session: LiveSession) -> str:
    state = working_state_view(actor=session.actor, session_id=session.id).state
    return state.constraints[0].id


def test_an_epoch_is_rotated_from_its_preview(desk: Desk) -> None:
    for script in (True, False):
        page = desk.open(f"sessions/{desk.session.id}/epochs/", java_script_enabled=script)
        page.get_by_role("link", name="Rotate…").click()
        expect(page.get_by_text("Sessions touched")).to_be_visible()
        page.get_by_label("Reason, required").fill("To see it happen.")
        page.get_by_role("button", name="Rotate to epoch").click()
        expect(page.get_by_role("status").first).to_contain_text("began; the next step uses it")
        expect(page.locator("tr.lit")).to_contain_text("To see it happen.")


def test_a_persona_is_counted_as_one_types_and_saved(desk: Desk) -> None:
    page = desk.open(f"personas/of/{PRINCIPAL}/")
    expect(page.locator("#preview")).to_contain_text("1 / 30")
    page.get_by_label("Entry 2").fill("Says why first.")
    expect(page.locator("#preview")).to_contain_text("2 / 30")
    expect(page.locator("#preview")).to_contain_text("epoch 2 → 3")
    page.get_by_label("Reason, required").fill("A second habit.")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("status").first).to_contain_text("Revision 2 is saved")


def test_a_constraint_is_lifted_without_javascript(desk: Desk) -> None:
    page = desk.open(f"sessions/{desk.kept.id}/state/", java_script_enabled=False)
    page.get_by_role("link", name="Lift…").click()
    page.get_by_label("Reason, required").fill("The user said so.")
    page.get_by_role("button", name="Lift c").click()
    expect(page.get_by_role("status").first).to_contain_text("is lifted")


VIEWS = [(scheme, width) for scheme in ("light", "dark") for width in (1280, 390)]


def test_every_page_is_accessible_and_never_scrolls_sideways(desk: Desk) -> None:
    axe = Axe()
    for name, path in desk.paths().items():
        page = desk.open(path)
        for part in page.locator(".items details, .parts details").all()[:3]:
            part.evaluate("part => part.open = true")
        page.wait_for_load_state("networkidle")
        for scheme, width in VIEWS:
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            page.set_viewport_size({"width": width, "height": 900})
            found = axe.run(page, options=AXE)
            told = [(v["id"], v["nodes"][0]["html"][:200]) for v in found.response["violations"]]
            assert told == [], (name, scheme, width)
            wide = page.evaluate(
                "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
            assert wide <= 0, (name, scheme, width)
        page.context.close()


def test_the_way_in_is_accessible_too(desk: Desk) -> None:
    context = desk.browser.new_context()
    desk.contexts.append(context)
    page = context.new_page()
    desk.watch(page)
    page.goto(desk.origin + "/login/")
    assert Axe().run(page, options=AXE).response["violations"] == []
