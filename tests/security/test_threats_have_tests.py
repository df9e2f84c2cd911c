"""Every threat of the threat model names tests that exist and hold tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROWS = [
    line.split("|")[1:-1]
    for line in (ROOT / "docs" / "security.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and "`tests/" in line
]


def test_the_table_is_there() -> None:
    assert len(ROWS) > 10


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0].strip())
def test_a_threat_names_tests_that_exist(row: list[str]) -> None:
    names = re.findall(r"`(tests/[^`]+)`", row[-1])
    assert names
    for name in names:
        place = ROOT / name
        files = [place] if place.is_file() else list(place.rglob("test_*.py"))
        assert files, name
        assert any("def test_" in file.read_text(encoding="utf-8") for file in files), name
