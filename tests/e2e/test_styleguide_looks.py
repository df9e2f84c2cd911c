"""How the style guide looks, measured on its pixels and boxes in both schemes, wide and narrow."""

from __future__ import annotations

import base64
from itertools import combinations

import pytest
from playwright.sync_api import Locator, Page

from tests.e2e.desk import Desk

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]

VIEWS = [(scheme, width) for scheme in ("light", "dark") for width in (1280, 390)]
LEAST_APART = 0.004
"""Share of pixels that must differ in brightness for two pictures to be told apart without colour."""

CLIPPED = """() => [...document.querySelectorAll("main *")].filter((one) => {
  if (one.closest(".sr, svg, .scroll, pre, [popover], select") || !one.checkVisibility()) return false;
  const style = getComputedStyle(one);
  const hides = style.overflowX !== "visible" && style.overflowX !== "auto";
  return (hides || style.textOverflow === "ellipsis") && one.scrollWidth > one.clientWidth + 1;
}).map((one) => one.outerHTML.slice(0, 120))"""
OVERLAPS = """() => {
  const wrong = [];
  const holders = "main .sheet, main .card, main .tiles, main .sample, main .acts, main .pills";
  for (const parent of document.querySelectorAll(holders)) {
    const flows = (one) => getComputedStyle(one).display === "inline";
    const stands = (one) => one.checkVisibility() && !one.matches("[popover], .sr") && !flows(one);
    const boxes = [...parent.children].filter(stands)
      .map((one) => [one, one.getBoundingClientRect()]).filter(([, box]) => box.width && box.height);
    boxes.forEach(([one, a], place) => boxes.slice(place + 1).forEach(([other, b]) => {
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 1 && high > 1) wrong.push([one.outerHTML.slice(0, 80), other.outerHTML.slice(0, 80)]);
    }));
  }
  return wrong;
}"""
UNEVEN = """() => [...document.querySelectorAll("main table")].flatMap((table) => {
  const rights = new Map();
  for (const cell of table.querySelectorAll("tbody td.n")) {
    const style = getComputedStyle(cell);
    if (style.display !== "table-cell") continue;
    const edge = Math.round(cell.getBoundingClientRect().right) + "/" + style.textAlign + "/" + style.fontVariantNumeric;
    rights.set(cell.cellIndex, (rights.get(cell.cellIndex) || new Set()).add(edge));
  }
  return [...rights].filter(([, edges]) => edges.size > 1).map(([place, edges]) => [place, ...edges]);
})"""
GREYS = """async (picture) => {
  const image = new Image();
  image.src = "data:image/png;base64," + picture;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [120, 24];
  const pen = canvas.getContext("2d");
  pen.drawImage(image, 0, 0, image.width, image.height, 0, 0, 120, 24);
  const dots = pen.getImageData(0, 0, 120, 24).data;
  return Array.from({length: 120 * 24}, (_, place) =>
    Math.round(.2126 * dots[4 * place] + .7152 * dots[4 * place + 1] + .0722 * dots[4 * place + 2]));
}"""


def greys(blank: Page, part: Locator) -> list[int]:
    """A part's picture in grey, on a grid of one size."""
    picture = base64.b64encode(part.screenshot(animations="disabled")).decode()
    found: list[int] = blank.evaluate(GREYS, picture)
    return found


def apart(one: list[int], other: list[int]) -> float:
    """The share of dots whose brightness differs visibly."""
    return sum(abs(a - b) > 12 for a, b in zip(one, other, strict=True)) / len(one)


def test_nothing_is_clipped_overlaps_or_stands_out_of_line(desk: Desk) -> None:
    page = desk.open("styleguide/")
    page.wait_for_load_state("networkidle")
    for scheme, width in VIEWS:
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.set_viewport_size({"width": width, "height": 900})
        for question in (CLIPPED, OVERLAPS, UNEVEN):
            assert page.evaluate(question) == [], (scheme, width)


def test_trust_states_and_fills_are_told_apart_without_colour(desk: Desk) -> None:
    page = desk.open("styleguide/")
    page.wait_for_load_state("networkidle")
    blank = desk.browser.new_page()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        for what in ("#trust-marks .t", "#envelopes .env", "#states .notice", "#ruler .track > g"):
            parts = page.locator(what).all()
            pictures = [greys(blank, part) for part in parts]
            assert len(pictures) > 2, what
            alike = [
                (what, a, b)
                for (a, one), (b, other) in combinations(enumerate(pictures), 2)
                if apart(one, other) < LEAST_APART
            ]
            assert alike == [], scheme
            assert all(len(set(picture)) > 1 for picture in pictures), (what, "is blank")
    blank.close()


def test_both_schemes_really_differ_and_none_is_blank(desk: Desk) -> None:
    page = desk.open("styleguide/")
    blank = desk.browser.new_page()
    grounds = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        for card in page.locator("main .card").all():
            assert len(set(greys(blank, card))) > 3
        picture = greys(blank, page.locator("main .card").first)
        grounds.append(max(set(picture), key=picture.count))
    assert grounds[0] > 200 and grounds[1] < 60
    blank.close()
