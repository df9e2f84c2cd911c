"""Both ends of a text: whole lines, nothing dropped without being named (capacity spec 3)."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.control.recall import MAX_CHARS, WishFault, part_of, read_recall
from ctxengine.engine.evidence.ends import LONG_LINE_CHARS, both_ends

LINES = st.lists(
    st.text(st.characters(exclude_characters="\n"), max_size=60), min_size=1, max_size=80
)
_OMITTED = re.compile(
    r"^\[\.\.\. lines (\d+)-(\d+) \(([\d,]+) characters\) are not shown; .* \.\.\.\]$"
)


@given(LINES, st.integers(50, 2_000))
def test_what_is_not_shown_is_named_and_everything_else_stands_word_for_word(
    lines: list[str], size: int
) -> None:
    text = "\n".join(lines)
    ends = both_ends(text, size, reference='id "12.0"')
    if len(text) <= size:
        assert ends.text == text
        assert ends.whole
        return
    assert ends.omitted is not None
    first, last = ends.omitted
    shown = ends.text.split("\n")
    assert shown[: first - 1] == lines[: first - 1]
    assert shown[first:] == lines[last:]
    match = _OMITTED.match(shown[first - 1])
    assert match is not None
    assert (int(match[1]), int(match[2])) == (first, last)
    named = "\n".join(lines[first - 1 : last])
    assert int(match[3].replace(",", "")) == ends.omitted_chars
    assert ends.omitted_chars - len(named) in {0, 1}


@given(st.text(min_size=1, max_size=500), st.integers(1, 120))
def test_every_character_can_be_reached_by_what_the_notes_say(seed: str, times: int) -> None:
    text = (seed * times) + "\n" + seed
    wish = read_recall(json.dumps({"id": "3.0"}))
    whole = part_of(text, wish)
    assert len(whole) <= MAX_CHARS + LONG_LINE_CHARS
    read, at = "", 1
    while at <= len(text):
        got = part_of(text, read_recall(json.dumps({"id": "3.0", "chars": f"{at}-{len(text)}"})))
        note, _, rest = got.partition("\n")
        match = re.match(r"\[characters (\d+) to (\d+) of", note)
        assert match is not None
        assert int(match[1]) <= at
        count = int(match[2]) - int(match[1]) + 1
        read = read[: int(match[1]) - 1] + rest[:count]
        at = int(match[2]) + 1
    assert read == text


def test_a_long_line_among_others_shows_its_start_and_says_how_it_goes_on() -> None:
    text = "\n".join(["short", "x" * 9_000, *(f"line {n}" for n in range(5_000))])
    ends = both_ends(text, 16_000, reference='id "7.0"')
    assert ends.cut_lines == 1
    assert (
        'the line goes on for 7,000 characters; recall them with id "7.0", lines "2" and chars "2001-9000"'
        in (ends.text)
    )
    wish = read_recall('{"id":"7.0","lines":"2","chars":"2001-9000"}')
    assert part_of(text, wish).partition("\n")[2] == "x" * 7_000


def test_a_single_line_is_shown_as_far_as_the_window_reaches() -> None:
    ends = both_ends("y" * 50_000, 16_000, reference='turn "3"')
    assert ends.omitted is None
    assert 15_000 < len(ends.text) < 16_200
    assert "goes on for" in ends.text


def test_a_part_names_lines_as_the_whole_counts_them() -> None:
    text = "\n".join(f"{n:05} {'w' * 40}" for n in range(1, 3_001))
    shown = part_of(text, read_recall('{"id":"9.0","lines":"1001-2000"}'))
    assert shown.startswith("[lines 1001 to 2000 of 3000]\n01001 ")
    assert shown.rstrip().endswith("w")
    match = re.search(r'recall them with id "9.0" and lines "(\d+)-(\d+)"', shown)
    assert match is not None
    again = part_of(text, read_recall(json.dumps({"id": "9.0", "lines": match[1]})))
    assert again.split("\n")[1].startswith(f"{int(match[1]):05} ")


def test_a_recall_gives_as_much_as_a_result_may_hold_and_a_window_of_more() -> None:
    wish = read_recall('{"id":"9.0"}')
    whole = ("词语\n" * 10_000)[:30_000]
    assert part_of(whole, wish) == whole
    shown = part_of(whole + "x", wish)
    named = re.search(r'recall them with id "9.0" and lines "(\d+-\d+)"', shown)
    assert named is not None
    rest = part_of(whole + "x", read_recall(json.dumps({"id": "9.0", "lines": named[1]})))
    first, last = map(int, named[1].split("-"))
    assert rest.partition("\n")[2].split("\n") == (whole + "x").split("\n")[first - 1 : last]


@pytest.mark.parametrize("wanted", ["3", "2-4", 3])
def test_range_is_another_word_for_lines(wanted: object) -> None:
    text = "\n".join(f"line {n}" for n in range(1, 9))
    by_lines = read_recall(json.dumps({"id": "9.0", "lines": wanted}))
    by_range = read_recall(json.dumps({"id": "9.0", "range": wanted, "unheard_of": 1}))
    both = read_recall(json.dumps({"id": "9.0", "range": wanted, "lines": wanted}))
    assert by_lines == by_range == both
    assert part_of(text, by_range).startswith("[lines ")


@pytest.mark.parametrize(
    ("given_range", "said"),
    [({"range": "x"}, "1-200"), ({"range": "1-2", "lines": "1-3"}, "differ")],
)
def test_a_range_that_cannot_be_read_is_told(given_range: dict[str, str], said: str) -> None:
    with pytest.raises(WishFault, match=said):
        read_recall(json.dumps({"id": "9.0", **given_range}))
