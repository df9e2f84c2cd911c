"""The synthetic history grows by whole turns, and three grades tell a call from a call in words."""

from __future__ import annotations

import json
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.capacity.filler import (
    PROBE_TOOL,
    FillerTurn,
    filler_turns,
    instruction,
    turns_for,
)
from ctxengine.engine.capacity.grading import grade
from ctxengine.engine.capacity.profile import Grade

ASKED = instruction("1f2e3d4c5b")
RIGHT = json.dumps({"code": ASKED.code, "count": ASKED.amount})


def characters(turn: FillerTurn) -> int:
    return sum(len(text) for text in turn)


@given(st.integers(0, 60_000), st.integers(0, 60_000))
def test_a_smaller_rung_is_a_head_of_a_larger_one(one: int, other: int) -> None:
    small, large = sorted((one, other))
    fewer = turns_for(small, characters, 100)
    assert turns_for(large, characters, 100)[: len(fewer)] == fewer
    assert sum(map(characters, fewer)) <= max(0, small - 100)


def test_turns_differ_from_one_another() -> None:
    turns = list(islice(filler_turns(), 300))
    assert len({turn.result for turn in turns}) == 300
    assert len({turn.call_id for turn in turns}) == 300
    assert len({turn.question for turn in turns}) > 200


def test_call_arguments_are_json() -> None:
    assert all(json.loads(turn.arguments) for turn in islice(filler_turns(), 50))


def test_instructions_of_two_nonces_differ() -> None:
    assert instruction("aaaaaaaa").text != instruction("aaaaaaab").text


@pytest.mark.parametrize(
    ("calls", "text", "wanted"),
    [
        ([(PROBE_TOOL, RIGHT)], "", Grade.STRICT),
        ([("lookup", "{}"), (PROBE_TOOL, RIGHT)], "", Grade.STRICT),
        ([(PROBE_TOOL, '{"code": "00000000", "count": 1}')], "", Grade.FAIL),
        ([(PROBE_TOOL, "{not json")], RIGHT, Grade.FAIL),
        ([], f'```json\n{{"name": "{PROBE_TOOL}", "arguments": {RIGHT}}}\n```', Grade.LOOSE),
        ([], f"{PROBE_TOOL}({RIGHT})", Grade.LOOSE),
        ([], RIGHT, Grade.FAIL),
        ([], f"I called {PROBE_TOOL} as you asked.", Grade.FAIL),
        ([], "Noted.", Grade.FAIL),
        ([], "{" * 5_000 + PROBE_TOOL, Grade.FAIL),
    ],
)
def test_samples_are_graded_three_ways(
    calls: list[tuple[str, str]], text: str, wanted: Grade
) -> None:
    assert grade(calls, text, ASKED) is wanted


def test_an_answer_to_another_sample_does_not_pass() -> None:
    assert grade([(PROBE_TOOL, RIGHT)], "", instruction("ffffffff00")) is Grade.FAIL
