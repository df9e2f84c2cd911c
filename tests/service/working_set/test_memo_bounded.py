"""What a session's builds remember is no more than its newest request shows (design 12)."""

from __future__ import annotations

import pytest

from ctxengine.engine.history.working_set_record import SentTurn, Stretch
from ctxengine.engine.history.working_set_sent import SentTurns
from ctxengine.service.warm import warmth_of
from tests.service.working_set.test_loop import live, opened, plans

pytestmark = pytest.mark.django_db


def test_promoted_units_and_kept_blocks_are_forgotten_with_the_request_that_showed_them() -> None:
    runtime = opened(6_500)
    live(runtime, 14, lines=80)
    brought = set()
    for number in (1, 3, 5):
        runtime.ask(f"What did part{number}.txt hold?")
        runtime.assemble()
        shown = {turn[0]: (turn[1], turn[2]) for turn in plans(runtime)[-1]["promoted"]}
        brought |= shown.keys()
        with warmth_of(runtime.row) as warmth:
            held = warmth.memo.promoted
            assert held
            assert all(any(a <= at <= b for a, b in shown.values()) for at in held)
            assert len(warmth.memo.blocks) <= 1
        runtime.say("It is said above.")
    assert len(brought) > 1


def test_a_turn_that_names_one_shown_whole_is_left_out_with_what_stood_in_front_of_it() -> None:
    kept = Stretch(1, 1, 9)
    turns = (
        SentTurn(4, 30, 39, (31,), (kept,), 100),
        SentTurn(5, 40, 49, (41,), (), 100),
    )
    found = SentTurns(turns, {4: frozenset({1, 2}), 5: frozenset({3})})
    assert found.named == {1, 2, 3}
    left = found.without_naming([1])
    assert [turn.number for turn in left.turns] == [5]
    assert left.named == {3}
    assert found.without_naming([]) == found
