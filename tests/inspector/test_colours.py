"""Colours, read from the stylesheets: what is written on a ground can be read, and what means two things looks like two."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from inspector import lab_curves, metric_drawings, ruler, strip
from inspector.trust import MARKS

CSS = Path(__file__).resolve().parents[2] / "static" / "css"
TOKENS = {
    name: (light, dark)
    for name, light, dark in re.findall(
        r"--([\w-]+): light-dark\((#\w+), (#\w+)\)", (CSS / "tokens.css").read_text()
    )
}
FILLS = dict(re.findall(r"\.(f-[\w-]+) \{ fill: ([^;]+);", (CSS / "graphics.css").read_text()))
TEXT = 4.5
"""Least contrast of text (WCAG 2.2, 1.4.3)."""


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def solid(fill: str) -> str:
    """The token of a fill; of a pattern, that of its ground."""
    patterned = {"f-external": "t-external", "f-memory": "t-memory"}
    return patterned.get(fill) or FILLS[fill].removeprefix("var(--").removesuffix(")")


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_labels_can_be_read_on_every_segment_and_text_on_every_ground(scheme: int) -> None:
    def apart(one: str, other: str) -> float:
        return contrast(TOKENS[one][scheme], TOKENS[other][scheme])

    fills = {solid(f"f-{mark.css}") for mark in MARKS.values()}
    assert {fill: apart("on", fill) for fill in fills if apart("on", fill) < TEXT} == {}
    for text in ("ink", "dim", "accent", "ok", "warn", "bad"):
        for ground in ("ground", "card", "sunk", "lit", "ok-wash", "warn-wash", "bad-wash"):
            assert apart(text, ground) >= TEXT, (text, ground)


def test_what_was_written_to_a_cache_is_told_from_what_was_read_without_colour() -> None:
    """Their hues are equally bright, so that one of them has a pattern wherever they stand side by side."""
    assert FILLS["f-written"].startswith("url(")
    for module in (ruler, strip, lab_curves, metric_drawings):
        source = Path(module.__file__ or "").read_text()
        said = [line for line in source.splitlines() if '"written' in line and '"f-' in line]
        assert said and all("f-written" in line for line in said), module.__name__
