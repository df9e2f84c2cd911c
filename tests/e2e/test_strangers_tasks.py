"""Ten questions that strangers come with, each answered within five clicks from the overview (docs/console.md, ui 8)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import Locator, Page, expect

from ctxengine.service.search.job import ask_for_index
from tests.e2e.desk import Desk
from tests.inspector.sessions import PRINCIPAL
from tests.work_off import work_off

MOST_CLICKS = 5
PAGE = Path(__file__).resolve().parents[2] / "docs" / "console.md"


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

    def sees(self, text: str | re.Pattern[str]) -> Stranger:
        expect(self.page.locator("main").get_by_text(text).first).to_be_visible()
        return self

    def newest_request(self) -> Stranger:
        return self.menu("Requests").click(self.page.locator("#results td.main a"))


def forgotten(one: Stranger, desk: Desk) -> None:
    one.search("Round 0").click(one.page.locator(".hits .hit-head > a"))
    one.sees("How it stood in requests").sees("left out").sees(
        re.compile("would need|largest suffix")
    )


def dearer(one: Stranger, desk: Desk) -> None:
    one.newest_request().tab("Change since")
    one.sees("Identical prefix").sees("First changed byte")
    cause = one.page.locator("dl.verdict div", has_text="Cause").locator("dd")
    expect(cause).not_to_have_text(re.compile(r"^\s*–"))
    one.sees(re.compile("row [0-9]+, "))


def rotated(one: Stranger, desk: Desk) -> None:
    one.link("Epochs per session").link("Count the depots").tab("Epochs")
    one.sees("A new beginning.").sees("system")


def gives_orders(one: Stranger, desk: Desk) -> None:
    one.menu("Search").link("trust:external").click(one.page.locator(".hits .hit-head > a"))
    one.sees("delimiter look-alike").sees("external")


def is_true(one: Stranger, desk: Desk) -> None:
    one.newest_request().click(one.page.get_by_role("button", name="Prove"))
    one.sees("Rebuilds to the same bytes")


def compacted_away(one: Stranger, desk: Desk) -> None:
    one.menu("Sessions").link("Count the depots").tab("Compactions")
    one.sees("stands").sees(re.compile("not summarised|[Ee]lided|left out of the summary"))


def who_may_act(one: Stranger, desk: Desk) -> None:
    one.menu("Operations").tab("Members").sees("operator").sees("mara")


def tool_is_gone(one: Stranger, desk: Desk) -> None:
    one.menu("Sessions").link("Count the depots").tab("Plan").sees("revoked").sees("web.fetch")


def hand_over(one: Stranger, desk: Desk) -> None:
    one.newest_request().tab("Take away")
    with one.page.expect_download() as got:
        one.link("One HTML file for a ticket")
    assert got.value.suggested_filename.endswith(".html")
    text = Path(got.value.path()).read_text()
    assert "largest suffix that fits" in text
    assert "<script" not in text and "src=" not in text


def known_person(one: Stranger, desk: Desk) -> None:
    one.menu("Personas").link(PRINCIPAL)
    expect(one.page.get_by_label("Entry 1")).to_have_value("Prefers small commits.")


class Task(NamedTuple):
    """A question as docs/console.md has it, and the clicks that answer it."""

    question: str
    clicks: int
    do: Callable[[Stranger, Desk], None]


TASKS = (
    Task("The model forgot the deadline: why?", 2, forgotten),
    Task("Why did this request cost five times the one before?", 3, dearer),
    Task("Which sessions rotated this week, and who did it?", 3, rotated),
    Task("What in our sessions tries to give the model orders?", 3, gives_orders),
    Task("Is this record true?", 3, is_true),
    Task("What did the compaction replace, and what was lost?", 3, compacted_away),
    Task("Who may act here?", 2, who_may_act),
    Task("May the tool that leaked still be called?", 3, tool_is_gone),
    Task("How do I hand this request to somebody without access?", 4, hand_over),
    Task("What does the model know about this person?", 2, known_person),
)


def test_the_documented_questions_are_the_ones_that_are_walked() -> None:
    rows = re.findall(r"^\| \d+ \| ([^|]+) \| (\d) \|", PAGE.read_text(), re.MULTILINE)
    assert [(question.strip(), int(clicks)) for question, clicks in rows] == [
        (task.question, task.clicks) for task in TASKS
    ]
    assert max(task.clicks for task in TASKS) <= MOST_CLICKS


@pytest.mark.e2e
@pytest.mark.django_db(transaction=True)
def test_ten_strangers_find_their_answer_within_five_clicks(desk: Desk) -> None:
    ask_for_index()
    work_off(desk.tenant.id, kind="search.index")
    found = {}
    for task in TASKS:
        one = Stranger(desk.open())
        task.do(one, desk)
        found[task.question] = one.clicks
        one.page.context.close()
    assert found == {task.question: task.clicks for task in TASKS}
