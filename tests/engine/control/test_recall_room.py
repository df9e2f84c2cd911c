"""How much one recall gives: never more than its request has room for, whatever the text and however little room there is."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.budget.arithmetic import frame
from ctxengine.engine.budget.policy import DEFAULT_POLICY
from ctxengine.engine.control.recall import (
    LEAST_CHARS,
    RecallWish,
    Room,
    part_of,
    read_recall,
    room_for,
    within,
)
from ctxengine.engine.evidence.ends import LONG_LINE_CHARS
from ctxengine.engine.tokens.counter import counter_for

GPT = counter_for("openai", "gpt-4o")
COUNTERS = [GPT, counter_for("anthropic", "claude-sonnet-4-5"), counter_for("compatible", "")]
NOTES_CHARS = 600
"""More than an answer's notes take."""

WORDS = "plain words of a log line\n"
HAN = "这一行写的是汉字而不是拉丁字母。\n"
BASE64 = "aGVsbG8gd29ybGQ9PT0xAbcQ9zK4\n"
EMOJI = "🦊🐻🎈🧭\n"
SPACES = " " * 99 + "\n"

PIECES = st.lists(
    st.tuples(
        st.sampled_from([WORDS, HAN, BASE64, EMOJI, SPACES, "x" * 2_500 + "\n", "\n", "y"])
        | st.text(st.characters(exclude_categories=()), max_size=40),
        st.integers(1, 900),
    ),
    max_size=4,
)
WISHES = st.sampled_from(
    [
        {},
        {"lines": "1"},
        {"lines": "2-9000"},
        {"chars": "1-90000"},
        {"lines": "1-5000", "chars": "5-90000"},
    ]
)


def wish(**more: str) -> RecallWish:
    return read_recall(json.dumps({"id": "5.0", **more}))


@given(PIECES, st.integers(-5_000, 40_000), WISHES, st.sampled_from(COUNTERS))
def test_an_answer_fits_or_is_the_least_that_is_given(pieces, tokens, asked, counter) -> None:  # type: ignore[no-untyped-def]
    text = "".join(piece * times for piece, times in pieces)
    whole = part_of(text, wish(**asked))
    answer = within(Room(counter, tokens), text, wish(**asked))
    if counter.text(whole) <= tokens:
        assert answer == whole
    elif counter.text(answer) > max(0, tokens):
        assert len(answer) <= min(len(whole), LEAST_CHARS + LONG_LINE_CHARS + NOTES_CHARS)


@pytest.mark.parametrize("head", [HAN, BASE64, EMOJI])
@pytest.mark.parametrize("share", [2, 4, 8])
def test_ends_that_are_denser_than_the_middle_take_no_more_than_the_room(
    head: str, share: int
) -> None:
    dense = head * (6_000 // len(head))
    text = dense + (WORDS + SPACES) * 120 + dense[:2_000]
    room = GPT.text(text) // share
    answer = within(Room(GPT, room), text, wish())
    assert "are not shown" in answer
    assert GPT.text(answer) <= room or len(answer) <= LEAST_CHARS + NOTES_CHARS
    assert 2 * GPT.text(answer) >= room


def test_text_of_one_kind_fills_its_room() -> None:
    text = WORDS * 1_000
    for room in (1_000, 2_000, 4_000):
        assert 0.85 * room <= GPT.text(within(Room(GPT, room), text, wish())) <= room


@pytest.mark.parametrize("factor", [1.0, 2.0, 4.0])
@pytest.mark.parametrize("prefix", [2_695, 3_900, 90_000])
@pytest.mark.parametrize("text", ["", "\n", "words", WORDS * 900])
def test_a_prefix_that_leaves_no_body_leaves_the_least(
    factor: float, prefix: int, text: str
) -> None:
    fixed = frame(
        window=4_000, max_output=500, prefix_tokens=prefix, policy=DEFAULT_POLICY, factor=factor
    )
    room = room_for(fixed, GPT)
    assert room.tokens == max(0, fixed.body // 2)
    answer = within(room, text, wish())
    assert answer == text or 1_000 < len(answer) <= LEAST_CHARS + NOTES_CHARS
