"""Two-level differences."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from inspector.textdiff import DiffLine, compare

TEXTS = st.lists(st.sampled_from(["a", "b b", "c", "", " d"]), max_size=30).map("\n".join)


def side(lines: tuple[DiffLine, ...], kinds: set[str]) -> int:
    return sum(line.number if line.kind == "fold" else line.kind in kinds for line in lines)


@given(TEXTS, TEXTS)
def test_every_line_of_both_sides_is_accounted_for(before: str, after: str) -> None:
    lines = compare(before, after)
    assert side(lines, {"equal", "removed"}) == len(before.split("\n"))
    assert side(lines, {"equal", "added"}) == len(after.split("\n"))


@given(TEXTS)
def test_a_text_equals_itself(text: str) -> None:
    assert {line.kind for line in compare(text, text)} <= {"fold"}


def test_one_inserted_line_changes_nothing_else() -> None:
    before = "\n".join(f"line {number}" for number in range(500))
    after = before.replace("line 250", "line 250\nnew", 1)
    changed = [line for line in compare(before, after) if line.kind in {"added", "removed"}]
    assert [(line.kind, line.pieces[0].text) for line in changed] == [("added", "new")]


def test_words_are_marked_inside_a_changed_line() -> None:
    lines = compare("prefers short commits always", "prefers small commits always")
    marked = [piece.text for line in lines for piece in line.pieces if piece.changed]
    assert marked == ["short", "small"]


def test_changes_of_white_space_are_drawn() -> None:
    lines = compare("ask first; name two of them", "ask first;\tname two of them")
    marked = {piece.text for line in lines for piece in line.pieces if piece.changed}
    assert marked == {"·", "→"}


def test_a_replaced_line_is_not_painted_over() -> None:
    lines = compare("alpha beta gamma", "one two three four five")
    assert not any(piece.changed for line in lines for piece in line.pieces)
