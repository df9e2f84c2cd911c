"""Gate: within a turn, request k+1 starts with the bytes of request k; across turns, with the prefix and what stayed (spec 10).

Live sessions on three APIs, and sessions of the corpus in the lab, where each step is held against the provider's rules too.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from ctxengine.engine.request import ModelRequest
from ctxengine.service.rebuild import rebuild_request
from tests.cast import PROVIDERS, Call
from tests.corpus_steps import working_set_steps
from tests.gates.test_turns_as_sent import held
from tests.service.working_set.test_loop import live, opened, verdicts

pytestmark = [pytest.mark.gate, pytest.mark.django_db]


def bytes_of(built: ModelRequest) -> list[tuple[str, bytes]]:
    """What stands behind the prefix, piece by piece."""
    return [(fragment.role, fragment.data) for fragment in built.fragments]


def starts_with(later: Sequence[object], earlier: Sequence[object]) -> bool:
    return list(later[: len(earlier)]) == list(earlier)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("horizon", [5_000])
def test_inside_a_turn_requests_only_grow(provider: str, horizon: int) -> None:
    runtime = opened(horizon, provider=provider)
    live(runtime, 10, lines=25)
    for turn in range(2):
        runtime.ask(f"Compare the files once more, way {turn}.")
        for step in range(5):
            assert runtime.assemble().body
            runtime.say("", Call(f"k{turn}x{step}", "read", json.dumps({"n": step})))
            runtime.results((f"k{turn}x{step}", f"result {step}\n" * 30))
        runtime.assemble()
        runtime.say(f"They differ in way {turn}.")
    rows = runtime.requests
    built = [rebuild_request(runtime.row, row) for row in rows]
    for (row, before), (following, after) in pairwise(zip(rows, built, strict=True)):
        assert following.wire_prefix_sha256 == row.wire_prefix_sha256
        if following.run_id == row.run_id:
            assert starts_with(bytes_of(after), bytes_of(before)), row.number
    assert verdicts(runtime) == {"identical"}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_across_turns_requests_only_grow_where_there_is_room(provider: str) -> None:
    runtime = opened(150_000, provider=provider)
    live(runtime, 6, lines=25)
    built = [rebuild_request(runtime.row, row) for row in runtime.requests]
    assert len({row.run_id for row in runtime.requests}) == 6
    for before, after in pairwise(built):
        assert starts_with(bytes_of(after), bytes_of(before))


def test_every_step_of_the_corpus(corpus_folder: Path) -> None:
    within = across = 0
    for name, runs in working_set_steps(corpus_folder, held):
        for run in runs:
            for before, after in pairwise(run.requests):
                assert starts_with(after, before), name
                within += 1
        for one, other in pairwise(runs):
            plan = other.plan
            if (
                plan.sent_numbers[-1:] == (one.plan.turns + 1,) == (plan.turns,)
                and not plan.rewritten
            ):
                assert starts_with(other.requests[0], one.requests[-1]), name
                across += 1
    assert within > 100 and across > 3
