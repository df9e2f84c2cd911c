"""The console in a real browser: people's ways through it, with and without JavaScript."""

from __future__ import annotations

import re

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Route, expect

from tests.e2e.axe import RULES, violations
from tests.e2e.desk import Desk
from tests.factories import PASSWORD
from tests.inspector.sessions import PRINCIPAL

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]


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
        re.compile("▲ (Tool results|History)")
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


def test_what_pages_do_is_done_without_javascript_too(desk: Desk) -> None:
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


def test_a_line_opens_beside_the_list_times_are_as_chosen_and_requests_are_copied(
    desk: Desk,
) -> None:
    page = desk.open("sessions/")
    lines = page.locator("#results tbody tr")
    names = lines.locator("td.main > a").all_text_contents()
    drawer = page.locator("dialog[open]")
    lines.nth(1).locator("td").nth(3).click()
    expect(drawer.locator("h2")).to_have_text(names[1])
    assert page.url == desk.url("sessions/")
    assert violations(page, RULES) == []
    page.keyboard.press("j")
    expect(drawer.locator("h2")).to_have_text(names[2])
    page.keyboard.press("Escape")
    expect(drawer).to_have_count(0)
    expect(lines.nth(2).locator("[data-peek]")).to_be_focused()
    # An answer that comes after the drawer was closed opens it no more.
    page.keyboard.press("p")
    expect(drawer.locator("h2")).to_have_text(names[2])
    held: list[Route] = []
    page.route("**/f/peek/**", lambda route: held.append(route))
    with page.expect_request("**/f/peek/**"):
        page.keyboard.press("k")
    page.keyboard.press("Escape")
    with page.expect_response("**/f/peek/**"):
        held[0].continue_()
    page.unroute("**/f/peek/**")
    expect(page.locator(".htmx-request, .htmx-swapping, .htmx-settling")).to_have_count(0)
    expect(page.locator("#peek-body")).to_be_empty()
    expect(drawer).to_have_count(0)
    expect(lines.nth(1).locator("[data-peek]")).to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("p")
    expect(drawer.locator("h2")).to_have_text(names[1])
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Every request of this session")).to_be_visible()
    page.go_back()
    expect(drawer).to_have_count(0)
    plain = desk.open("requests/", java_script_enabled=False)
    expect(plain.locator("[data-peek]:visible")).to_have_count(0)
    expect(plain.locator("#results time").first).to_have_text(
        re.compile(r"^\d+ \w+ \d{4}, \d\d:\d\d$")
    )
    plain.locator("#results td.main > a").first.click()
    expect(plain.get_by_role("heading", name="Request ").first).to_be_visible()

    # In the same world: times as one chose, and a request that is copied whole.
    page = desk.open("requests/", permissions=["clipboard-read", "clipboard-write"])
    time, tip = page.locator("#results time").first, page.get_by_role("tooltip")
    expect(time).to_have_text(re.compile(r"just now|ago$"))
    utc = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$")
    second = page.locator("#results time").nth(1)
    described = page.locator("[aria-describedby=tip]")
    expect(described).to_have_count(0)
    expect(second).to_have_attribute("aria-description", utc)
    time.focus()
    expect(tip).to_have_text(utc)
    expect(described).to_have_count(1)
    second.hover()
    expect(tip).to_have_text(str(second.get_attribute("aria-description")))
    expect(described).to_have_count(1)
    page.keyboard.press("Escape")
    expect(tip).to_have_count(0)
    expect(described).to_have_count(0)
    page.keyboard.press("u")
    expect(page.locator("#said")).to_have_text("Times: UTC")
    page.reload()
    expect(time).to_have_text(re.compile(r"^\d+ \w+ \d{4}, \d\d:\d\d$"))
    request = desk.session.requests[-1]
    page.goto(desk.url(f"requests/{request}/take-away/"))
    raw = page.request.get(desk.url(f"requests/{request}/raw")).text()
    for name, held in (("Copy JSON", raw), ("Copy Markdown", "## Request ")):
        page.get_by_role("button", name=name).click()
        expect(page.locator("#said")).to_have_text("Copied")
        assert held in page.evaluate("navigator.clipboard.readText()")
        page.evaluate("document.getElementById('said').textContent = ''")


def test_the_way_in_is_accessible_too_and_leads_in(desk: Desk) -> None:
    context = desk.browser.new_context()
    desk.contexts.append(context)
    page = context.new_page()
    desk.watch(page)
    page.goto(desk.origin + "/")
    page.wait_for_url("**/login/**")
    assert Axe().run(page, options=RULES).response["violations"] == []
    page.get_by_label("Name").fill("mara")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/t/acme/")
