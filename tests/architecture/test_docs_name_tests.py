"""Tests that a page of the documents names exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [page for page in sorted((ROOT / "docs").glob("*.md")) if page.name != "faults.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_tests_that_a_document_names_exist(page: Path) -> None:
    gone = []
    for path, name in re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", page.read_text()):
        file = ROOT / path
        if not file.exists() or (name and f"def {name}(" not in file.read_text()):
            gone.append((path, name))
    assert gone == []
