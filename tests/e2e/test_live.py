"""Live without jumping: an open page says what is newer, and moves only when it is asked to (ui 3.11)."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.desk import Desk
from tests.matrix.world import make_job

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]


def tick(page: Page) -> None:
    """What live.js does every few seconds."""
    page.evaluate("document.body.dispatchEvent(new CustomEvent('ctx:tick'))")


def test_what_is_newer_moves_neither_scroll_nor_focus(desk: Desk) -> None:
    page = desk.open("requests/")
    page.set_viewport_size({"width": 1280, "height": 400})
    rows = page.locator("#results tbody tr")
    before = rows.count()
    rows.nth(before - 1).locator("a").first.focus()
    place = page.evaluate("[scrollY, document.activeElement.href]")
    desk.session.ask("One more.").build()
    tick(page)
    pill = page.get_by_role("link", name="1 newer request")
    expect(pill).to_be_visible()
    tick(page)
    expect(pill).to_be_visible()
    assert page.evaluate("[scrollY, document.activeElement.href]") == place
    expect(rows).to_have_count(before)
    pill.click()
    expect(rows).to_have_count(before + 1)
    tick(page)
    page.wait_for_load_state("networkidle")
    expect(page.locator(".news-pill")).to_have_count(0)


def test_a_filter_changes_what_counts_as_newer(desk: Desk) -> None:
    page = desk.open("requests/")
    page.get_by_label("Status").select_option("failed")
    page.wait_for_url("**status=failed**")
    desk.session.ask("One more.").build()
    with page.expect_response("**/f/news/requests/**") as got:
        tick(page)
    assert got.value.status == 204
    expect(page.locator(".news-pill")).to_have_count(0)


def test_a_part_that_is_fetched_anew_keeps_the_focus(desk: Desk) -> None:
    job = make_job(desk.tenant)
    page = desk.open(f"imports/jobs/{job.id}/")
    link = page.locator("#import-job a").first
    for _ in range(2):
        link.focus()
        with page.expect_response(f"**/imports/jobs/{job.id}/"):
            pass
        expect(page.locator(".htmx-request, .htmx-swapping, .htmx-settling")).to_have_count(0)
        expect(link).to_be_focused()


def test_work_under_way_is_not_fetched_while_live_is_off(desk: Desk) -> None:
    job = make_job(desk.tenant)
    page = desk.open(f"jobs/{job.id}/")
    with page.expect_response(re.compile(r"live=1$")):
        pass
    page.keyboard.press("v")
    expect(page.locator("#said")).to_have_text("Live: off")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_timeout(2_500)
    assert asked == []
    with page.expect_response(re.compile(r"live=1$")):
        page.keyboard.press("v")


def test_a_mended_query_asks_for_news_again_and_its_links_follow_the_list(desk: Desk) -> None:
    page = desk.open()
    page.clock.install()
    page.goto(desk.url("requests/"))
    box, csv = page.get_by_label("Search", exact=True), page.get_by_role("link", name="CSV")
    box.fill("status:")
    box.press("Enter")
    expect(page.locator("#q-problem")).to_contain_text("stands without a value")
    page.clock.fast_forward(20_000)
    box.fill("status:built")
    box.press("Enter")
    expect(page.locator("#q-problem")).to_have_count(0)
    expect(csv).to_have_attribute("href", re.compile(r"q=status%3Abuilt"))
    expect(page.get_by_role("link", name="Clear")).to_be_visible()
    with page.expect_response("**/f/news/requests/**"):
        page.clock.fast_forward(20_000)
    # The 400 under the box is what was asked for here.
    desk.complaints.clear()


def test_events_are_followed_without_moving_what_one_reads(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inspector.pages.session_events.SHOWN", 15)
    page = desk.open(f"sessions/{desk.session.id}/events/")
    page.set_viewport_size({"width": 1280, "height": 500})
    page.get_by_role("link", name="Follow").click()
    rows = page.locator("#events-body > tr")
    line, paused = page.locator("#follow"), page.locator("#paused")
    expect(line).to_contain_text("following")
    page.keyboard.press("v")
    expect(paused).to_have_text("▲ paused: live is off")
    expect(line.get_by_text("● following")).to_be_hidden()
    page.keyboard.press("v")
    expect(paused).to_be_empty()
    expect(line.get_by_text("● following")).to_be_visible()
    expect(rows).to_have_count(15)
    newest = rows.first.get_attribute("id")
    desk.session.ask("One more.").build()
    tick(page)
    expect(rows).to_have_count(17)
    assert page.evaluate("scrollY") == 0
    # Further down more is fetched as one comes near the end, and nothing moves when more comes at the top.
    for _ in range(2):
        page.evaluate("scrollTo(0, document.body.scrollHeight)")
        page.wait_for_load_state("networkidle")
    expect(page.get_by_text("Start of the session")).to_be_visible()
    rows.nth(12).evaluate("(row) => row.scrollIntoView()")
    spot = "(id) => Math.round(document.getElementById(id).getBoundingClientRect().top)"
    place = page.evaluate(spot, newest)
    desk.session.answer("Yes.")
    tick(page)
    expect(page.locator("#follow")).not_to_contain_text("newest event 29")
    assert page.evaluate(spot, newest) == place
    numbers = rows.evaluate_all("(all) => all.map((row) => Number(row.id.slice(2)))")
    assert numbers == list(range(numbers[0], 0, -1))
    page.route("**/f/events/**", lambda route: route.fulfill(status=503))
    for _ in range(3):
        with page.expect_response("**/f/events/**"):
            tick(page)
    expect(paused).to_contain_text("▲ paused: the server did not answer")
    expect(line.get_by_text("● following")).to_be_hidden()
    desk.complaints.clear()


def test_who_is_signed_out_meanwhile_is_sent_to_sign_in(desk: Desk) -> None:
    page = desk.open("requests/")
    page.context.clear_cookies()
    tick(page)
    page.wait_for_url("**/login/?next=**")
    expect(page.get_by_label("Password")).to_be_visible()


def test_live_is_switched_off_by_key_and_menu_and_stays_off(desk: Desk) -> None:
    page = desk.open()
    page.keyboard.press("v")
    expect(page.locator("#said")).to_have_text("Live: off")
    page.reload()
    page.locator(".who summary").click()
    switch = page.get_by_role("button", name="Live: off")
    expect(switch).to_be_visible()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.clock.install()
    page.clock.fast_forward(120_000)
    assert not [url for url in asked if "/f/news/" in url]
    switch.click()
    expect(page.get_by_role("button", name="Live: on")).to_be_visible()
