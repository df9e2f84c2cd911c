"""Every page in a browser: by keyboard alone, without JavaScript, after Back and reload, from a copied link, and axe (ui 8)."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from inspector import urls
from tests.e2e.axe import COLOUR_RULES, RULES, violations
from tests.e2e.desk import Desk

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]

NO_PAGES = {
    # the way in and out, and what leads on
    "home", "login", "logout", "jump", "diff-pick",
    # forms that other pages hold
    "prove", "prove-newest", "persona-preview", "save-view", "remove-view", "load-samples",
    # downloads, and parts of pages
    "event-raw", "request-raw", "request-curl", "request-ticket", "lab-step-raw", "item-fragment",
    "json-part", "model-ladder", "lab-matrix", "overview-news", "sessions-news", "requests-news", "session-news",
    "session-peek", "request-peek", "request-markdown", "session-event-rows",
}  # fmt: skip
PARTS = 2
"""The pages are shared out to so many tests, which run side by side; each of them makes its world anew."""
VIEWS = [(scheme, width) for scheme in ("light", "dark") for width in (1280, 390)]

FOCUSABLE = """() => {
  const shut = (one) => one.closest("[popover]:not(:popover-open), [inert]");
  const seen = (one) => one.checkVisibility({checkVisibilityCSS: true}) && !shut(one);
  const kinds = "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']";
  const all = [...document.querySelectorAll(kinds)];
  const chosen = (one) => one.type !== "radio" || one.checked
    || !document.querySelector(`input[type=radio][name="${CSS.escape(one.name)}"]:checked`);
  // By its words, because a part that is fetched anew holds other elements of the same words.
  const words = (one) => {
    const copy = one.cloneNode(true);
    // The description moves with the focus, and what a time says with the time.
    for (const name of ["aria-describedby", "aria-description"]) copy.removeAttribute(name);
    if (copy.localName === "time") copy.textContent = "";
    return copy.outerHTML.slice(0, 200);
  };
  window.wanted = all.filter((one) => seen(one) && !one.disabled && one.tabIndex >= 0 && chosen(one)).map(words);
  window.reached = new Set();
  window.unmarked = [];
  document.addEventListener("focusin", (event) => {
    window.reached.add(words(event.target));
    const style = getComputedStyle(event.target);
    if (style.outlineStyle === "none" && style.boxShadow === "none") window.unmarked.push(event.target.outerHTML.slice(0, 120));
  });
  return window.wanted.length;
}"""
MISSED = """() => ({
  missed: window.wanted.filter((one) => !window.reached.has(one)),
  unmarked: window.unmarked,
  jumps: [...document.querySelectorAll("[tabindex]")].filter((one) => one.tabIndex > 0).length,
})"""
SHOWN = """() => {
  const copy = document.querySelector("main").cloneNode(true);
  for (const part of copy.querySelectorAll("time, script, .js, [popover], .news, [name=csrfmiddlewaretoken]")) part.remove();
  const fields = [...document.querySelectorAll("main input:not([type=hidden]), main select, main textarea")];
  const held = (one) => ["checkbox", "radio"].includes(one.type) ? one.checked : one.value;
  return copy.textContent.replace(/\\s+/g, " ") + "|" + fields.map(held).join("|");
}"""

BEYOND = """() => [...document.querySelectorAll("main .scroll > table")]
  .filter((table) => table.checkVisibility() && table.parentElement.scrollWidth > table.parentElement.clientWidth + 1)
  .map((table) => table.parentElement.getAttribute("aria-label"))"""
THIN = """() => [...document.querySelectorAll("main .stack tbody :is(th, td).n")]
  .filter((cell) => cell.checkVisibility() && cell.textContent.trim() && cell.clientWidth < 44)
  .map((cell) => cell.textContent.trim().slice(0, 40))"""
CUT = """() => [...document.querySelectorAll("main .scroll > svg.strip text")]
  .filter((text) => text.getBoundingClientRect().left < text.closest(".scroll").getBoundingClientRect().left)
  .map((text) => text.textContent)"""
FAULTY = """() => {
  const head = document.querySelector("h1");
  head.style.color = "#bbb";
  head.append(document.createElement("img"));
}"""


def share(desk: Desk, part: int) -> list[tuple[str, str]]:
    return list(desk.paths().items())[part::PARTS]


def settled(page: Page) -> Page:
    """The page once it has loaded, and has fetched the parts that it asks for by itself."""
    expect(page.locator(".htmx-request, .htmx-swapping, .htmx-settling")).to_have_count(0)
    return page


def shown(page: Page, name: str) -> str:
    """What the page says and what its fields hold; times of day are left out."""
    expect(settled(page).locator("main"), name).to_be_visible()
    return str(page.evaluate(SHOWN))


def test_every_route_is_looked_at_here(whole_desk: Desk) -> None:
    names = {str(p.name) for p in urls.urlpatterns if not str(p.name).endswith("-twin")}
    looked_at = {name.partition(" | ")[0] for name in whole_desk.paths()}
    assert names - looked_at == NO_PAGES, (
        "add the page to Desk.paths, or say in NO_PAGES what it is"
    )
    assert looked_at <= names


@pytest.mark.parametrize("part", range(PARTS))
def test_every_page_is_reached_by_keyboard_alone(whole_desk: Desk, part: int) -> None:
    wrong: dict[str, Any] = {}
    page = whole_desk.open()
    for name, path in share(whole_desk, part):
        page.goto(whole_desk.url(path))
        settled(page)
        for _ in range(page.evaluate(FOCUSABLE) + 2):
            page.keyboard.press("Tab")
        found = page.evaluate(MISSED)
        if found["missed"] or found["unmarked"] or found["jumps"]:
            wrong[name] = found
    assert wrong == {}


@pytest.mark.parametrize("part", range(PARTS))
def test_back_reload_and_a_copied_link_give_the_same_view(whole_desk: Desk, part: int) -> None:
    wrong: dict[str, list[str]] = {}
    page = whole_desk.open(permissions=["clipboard-read", "clipboard-write"])
    other = whole_desk.open()
    for name, path in share(whole_desk, part):
        page.goto(whole_desk.url(path))
        settled(page)
        address, view = page.url, shown(page, name)
        if page.evaluate("document.activeElement === document.body"):
            page.keyboard.press("c")
            expect(page.locator("#said")).to_have_text("Address copied")
            address = page.evaluate("navigator.clipboard.readText()")
        page.reload()
        views = {"reload": shown(page, name)}
        # A link from a page to itself makes no entry to go back to.
        away = "Tour" if name == "keys" else "Keys"
        page.locator(".foot a", has_text=away).click()
        page.wait_for_url(f"**/{away.lower()}/")
        page.go_back()
        views["back"] = shown(page, name)
        assert page.url == address, name
        other.goto(address)
        views["link"] = shown(other, name)
        wrong |= {name: [way for way, found in views.items() if found != view]}
    assert {name: ways for name, ways in wrong.items() if ways} == {}


@pytest.mark.parametrize("part", range(PARTS))
def test_every_page_says_the_same_without_javascript(whole_desk: Desk, part: int) -> None:
    wrong = {}
    pages = [whole_desk.open(java_script_enabled=script) for script in (True, False)]
    for name, path in share(whole_desk, part):
        told = []
        for page in pages:
            page.goto(whole_desk.url(path))
            settled(page)
            expect(page.locator("h1"), name).to_be_visible()
            heads = page.locator("main h1, main h2, main h3").all_text_contents()
            told.append(
                (
                    [re.sub(r"\s+", " ", head) for head in heads],
                    page.locator("main tbody tr").count(),
                    page.locator("main a[href]").count(),
                )
            )
        if told[0] != told[1]:
            wrong[name] = told
    assert wrong == {}


@pytest.mark.parametrize("part", range(PARTS))
def test_every_page_is_accessible_and_never_scrolls_sideways(whole_desk: Desk, part: int) -> None:
    """In both schemes, wide and narrow, and at twice the size of text (1280 at 200 % is 640 wide)."""
    page = whole_desk.open()
    for name, path in share(whole_desk, part):
        page.goto(whole_desk.url(path))
        for details in page.locator(".items details, .parts details").all()[:3]:
            details.evaluate("part => part.open = true")
        settled(page)
        for scheme, width in VIEWS:
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            page.set_viewport_size({"width": width, "height": 900})
            told = violations(page, RULES if scheme == "light" else COLOUR_RULES)
            assert told == [], (name, scheme, width)
            assert overhang(page) <= 0, (name, scheme, width)
            assert width > 700 or page.evaluate(BEYOND) == [], (name, "columns beyond the edge")
            assert width > 700 or page.evaluate(THIN) == [], (name, "figures written downwards")
            assert page.evaluate(CUT) == [], (name, width, "names of the axis are cut")
        page.set_viewport_size({"width": 640, "height": 450})
        assert overhang(page) <= 0, (name, "200 %")
    page.emulate_media(color_scheme="light")
    page.evaluate(FAULTY)
    assert {rule for rule, _ in violations(page, RULES)} == {"image-alt", "color-contrast"}
    assert [rule for rule, _ in violations(page, COLOUR_RULES)] == ["color-contrast"]


def overhang(page: Page) -> int:
    return int(
        page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    )
