"""Decisions are numbered without a gap, and each is headed by its own number and title."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "decisions"
DECISIONS = sorted(FOLDER.glob("*.md"))


def test_decisions_are_numbered_without_a_gap() -> None:
    assert [int(path.name[:4]) for path in DECISIONS] == [*range(1, len(DECISIONS) + 1)]


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.stem)
def test_a_decision_is_headed_by_its_number_and_title(path: Path) -> None:
    heading = path.read_text(encoding="utf-8").partition("\n")[0]
    found = re.fullmatch(r"# (\d+)\. (\S.*)", heading)
    assert found, heading
    assert int(found[1]) == int(path.name[:4])
