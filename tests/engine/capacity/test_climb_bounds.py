"""What a climb of the ladder can take, held against climbs of models that follow as they like."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.capacity.climb_bounds import CACHE_CALLS, climb_bounds
from ctxengine.engine.capacity.ladder import next_sample, rungs
from ctxengine.engine.capacity.profile import Grade, Observation


@given(
    window=st.integers(1_000, 1_000_000),
    follows=st.integers(0, 1_000_000),
    wavers=st.booleans(),
)
def test_a_steady_or_wavering_climb_takes_about_what_is_told(
    window: int, follows: int, wavers: bool
) -> None:
    seen: list[Observation] = []
    while (sample := next_sample(seen, declared_window=window)) is not None:
        passes = (sample.tokens <= follows) is not (wavers and sample.number == 1)
        grade = Grade.STRICT if passes else Grade.FAIL
        seen.append(Observation(tokens=sample.tokens, actual_tokens=sample.tokens, grade=grade))
    bounds = climb_bounds(window)
    sizes = [one.tokens for one in seen]
    beside = CACHE_CALLS * bounds.rungs[0]
    assert len(sizes) + CACHE_CALLS <= bounds.most_calls + 2
    assert sum(bounds.least) <= sum(sizes) + beside
    # A place between those that were played may cost one more narrowing of the edge.
    assert sum(sizes) + beside <= sum(bounds.most) * 1.25


def test_a_limit_makes_it_smaller() -> None:
    whole, limited = climb_bounds(200_000), climb_bounds(200_000, largest=8_000)
    assert limited.rungs == rungs(200_000, largest=8_000) == (4_000, 8_000)
    assert sum(limited.most) < sum(whole.most) / 5
    assert limited.most_output_tokens < whole.most_output_tokens


def test_a_window_too_small_for_a_rung_takes_nothing() -> None:
    bounds = climb_bounds(1)
    assert (bounds.rungs, bounds.most_calls, sum(bounds.most)) == ((), 0, 0)
