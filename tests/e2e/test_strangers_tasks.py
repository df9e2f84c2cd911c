"""Ten questions that strangers come with, each answered within five clicks from the overview (ui 8)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from ctxengine.service.search.job import ask_for_index
from tests.e2e.test_console_in_a_browser import Desk, desk
from tests.inspector.sessions import PRINCIPAL
from tests.work_off import work_off

__all__ = ["desk"]

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]

MOST_CLICKS = 5


@dataclass
class Stranger:
    """Somebody at the overview, whose clicks are counted; a search typed and sent counts as one."""

    page: Page
    clicks: int = 0

    def click(self, what: Locator) -> Stranger:
        self.clicks += 1
        what.first.click()
        return self

    def link(self, name: str, **options: Any) -> Stranger:
        return self.click(self.page.get_by_role("link", name=name, **options))

    def menu(self, name: str) -> Stranger:
        main = self.page.get_by_role("navigation", name="Main")
        return self.click(main.get_by_role("link", name=name, exact=True))

    def tab(self, name: str) -> Stranger:
        return self.click(self.page.locator(".tabs a", has_text=name))

    def search(self, text: str) -> Stranger:
        self.clicks += 1
        self.page.locator("#jump").fill(text)
        self.page.keyboard.press("Enter")
        return self

    def sees(self, text: str) -> Stranger:
        expect(self.page.locator("main").get_by_text(text).first).to_be_visible()
        return self


def why_was_it_forgotten(one: Stranger, desk: Desk) -> None:
    one.search("Round 0").click(one.page.locator(".hits .hit-head > a"))
    one.sees("How it stood in requests").sees("left out")


def why_did_it_change(one: Stranger, desk: Desk) -> None:
    one.menu("Requests").click(one.page.locator("#results td.main a")).tab("Change since")
    one.sees("First changed byte").sees("Cause")


def which_sessions_rotated_and_who_did_it(one: Stranger, desk: Desk) -> None:
    one.link("Epochs per session").link("Count the depots").tab("Epochs")
    one.sees("A new beginning.").sees("system")


def what_tries_to_give_orders(one: Stranger, desk: Desk) -> None:
    one.menu("Search").link("trust:external").click(one.page.locator(".hits .hit-head > a"))
    one.sees("delimiter look-alike")


def is_the_record_true(one: Stranger, desk: Desk) -> None:
    one.menu("Requests").click(one.page.locator("#results td.main a"))
    one.click(one.page.get_by_role("button", name="Prove")).sees("Rebuilds to the same bytes")


def what_did_a_compaction_replace(one: Stranger, desk: Desk) -> None:
    one.menu("Sessions").link("Count the depots").tab("Compactions").sees("stands")


def who_may_act_here(one: Stranger, desk: Desk) -> None:
    one.menu("Operations").tab("Members").sees("operator").sees("mara")


def may_the_leaking_tool_still_be_called(one: Stranger, desk: Desk) -> None:
    one.menu("Sessions").link("Count the depots").tab("Plan").sees("revoked")


def how_to_hand_it_to_somebody_without_access(one: Stranger, desk: Desk) -> None:
    one.menu("Requests").click(one.page.locator("#results td.main a")).tab("Take away")
    with one.page.expect_download() as got:
        one.link("One HTML file for a ticket")
    assert got.value.suggested_filename.endswith(".html")


def what_is_known_of_a_person(one: Stranger, desk: Desk) -> None:
    one.menu("Personas").link(PRINCIPAL)
    expect(one.page.get_by_label("Entry 1")).to_have_value("Prefers small commits.")


TASKS: tuple[Callable[[Stranger, Desk], None], ...] = (
    why_was_it_forgotten,
    why_did_it_change,
    which_sessions_rotated_and_who_did_it,
    what_tries_to_give_orders,
    is_the_record_true,
    what_did_a_compaction_replace,
    who_may_act_here,
    may_the_leaking_tool_still_be_called,
    how_to_hand_it_to_somebody_without_access,
    what_is_known_of_a_person,
)


def test_ten_strangers_find_their_answer_within_five_clicks(desk: Desk) -> None:
    ask_for_index()
    work_off(desk.tenant.id, kind="search.index")
    found = {}
    for task in TASKS:
        one = Stranger(desk.open())
        task(one, desk)
        found[task.__name__] = one.clicks
        one.page.context.close()
    assert max(found.values()) <= MOST_CLICKS, found
