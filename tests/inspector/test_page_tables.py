"""What every template keeps to: wide tables in named regions, times as elements, titles that are no one's only words (ui 8)."""

from __future__ import annotations

import re
from pathlib import Path

TEMPLATES = Path(__file__).resolve().parents[2] / "templates"


def test_every_scrolling_region_has_a_name_and_takes_the_focus() -> None:
    wrong = [
        (path.name, tag)
        for path in TEMPLATES.rglob("*.html")
        for tag in re.findall(r'<div class="scroll"[^>]*>', path.read_text(encoding="utf-8"))
        if not ('tabindex="0"' in tag and 'role="group"' in tag and 'aria-label="' in tag)
    ]
    assert wrong == []


def test_a_moment_is_always_an_element_that_can_be_told_otherwise() -> None:
    """A stamp that is written as text stays UTC for ever, whatever its reader chose."""
    moments = re.compile(
        r"{{ *[\w.]*(?:_at|\.at|\.moment) *(?:\|(?!when)[^}]*)?}}|\|(?:date|time)\b"
    )
    wrong = [
        (path.name, found.group())
        for path in TEMPLATES.rglob("*.html")
        for found in moments.finditer(path.read_text(encoding="utf-8"))
        # Charts name places on an axis so.
        if "mark.at" not in found.group()
    ]
    assert wrong == []
