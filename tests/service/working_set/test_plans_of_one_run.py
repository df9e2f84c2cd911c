"""What one heavy turn or a run's legs make necessary ends with that run (design 7.8)."""

from __future__ import annotations

from itertools import pairwise

import pytest

from ctxengine.service.specs import ModelRef
from tests.cast import Runtime
from tests.service.working_set.test_loop import live, opened, plans, sent, verdicts

pytestmark = pytest.mark.django_db


def heavy(runtime: Runtime, results: int) -> None:
    """A turn that needs what closed turns stand in."""
    runtime.ask("Go on with many files now.")
    for number in range(results):
        text = f"big {number}\n" + "some words of output here\n" * 500
        runtime.look(f"x{runtime.run}{number}", text)
    runtime.assemble()
    runtime.say("Done with all of the files at last.")


def test_one_heavy_turn_leaves_no_trace_in_the_forms_of_later_runs() -> None:
    runtime = opened(window=48_000, max_output=1_000)
    live(runtime, 7, lines=200)
    before = plans(runtime)[-1]
    heavy(runtime, 13)
    assert "pressure" in {plan["reason"] for plan in plans(runtime)}
    assert sent(plans(runtime)[-1]) == []
    live(runtime, 4, first=50, lines=20)
    after = [plan for plan in plans(runtime) if plan["turns"] > 8]
    assert {plan["reason"] for plan in after} == {"start"}
    # Large enough for turns as they were sent before the heavy turn and behind it, past the batch it falls into.
    assert all(plan["room"]["tokens"] >= 16_000 for plan in (before, *after))
    assert sent(after[-1])[-3:] == [9, 10, 11] or sent(after[-1])[-2:] == [10, 11]
    assert [plan["rewritten"] for plan in after[-2:]] == [0, 0]
    assert verdicts(runtime) == {"identical"}


def test_runs_with_a_smaller_leg_append_to_what_the_last_of_them_showed() -> None:
    runtime = opened(window=200_000)
    leg = ModelRef(provider="anthropic", name="claude-haiku-4-5", window=56_000, max_output=4_000)
    words = "plain words of an answer " * 900
    for number in range(9):
        runtime.ask(f"Question {number}?")
        runtime.assemble(legs=(leg,))
        runtime.say(f"Answer {number}. {words}")
    own = [plan for plan in plans(runtime) if plan["reason"] == "leg"]
    forms = [(plan["packet_through"], plan["full_from"], plan["card_blocks"]) for plan in own]
    passes = sum(one != other for one, other in pairwise(forms))
    assert 1 <= passes <= 2
    kept = [(sent(one), sent(other)) for one, other in pairwise(own)]
    assert sum(other[: len(one)] != one for one, other in kept) <= passes
    assert sum(plan["rewritten"] > 0 for plan in own) <= passes
    starts = [plan for plan in plans(runtime) if plan["reason"] == "start"]
    assert sent(starts[-1]) == list(range(1, 9))
    assert verdicts(runtime) == {"identical"}
