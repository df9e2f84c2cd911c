"""The horizon ladder finds the edge of any model, with few samples, and says how sure it is."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.capacity.ladder import (
    EDGE_WIDTH,
    MIN_EDGE,
    horizon_of,
    next_sample,
    rungs,
)
from ctxengine.engine.capacity.profile import Grade, Observation

AT = "2026-01-01T00:00:00+00:00"
WINDOW = 128_000


def climb(
    follows: Callable[[int, int], bool], *, window: int = WINDOW, largest: int | None = None
) -> list[Observation]:
    """Run the ladder to its end against a model that follows (tokens, sample) or not."""
    seen: list[Observation] = []
    while (sample := next_sample(seen, declared_window=window, largest=largest)) is not None:
        grade = Grade.STRICT if follows(sample.tokens, sample.number) else Grade.FAIL
        seen.append(Observation(tokens=sample.tokens, actual_tokens=sample.tokens, grade=grade))
        assert len(seen) < 200, "the ladder has no end"
    return seen


@given(st.integers(4_000, 115_000))
def test_a_steady_model_is_found_within_the_width_of_the_edge(limit: int) -> None:
    seen = climb(lambda tokens, _: tokens <= limit)
    found = horizon_of(seen, at=AT)
    assert found is not None
    assert found.tokens <= limit
    assert limit - found.tokens <= max(MIN_EDGE, found.tokens * EDGE_WIDTH) + 1


@given(st.integers(4_000, 115_000))
def test_the_ladder_takes_few_samples(limit: int) -> None:
    assert len(climb(lambda tokens, _: tokens <= limit)) <= 40


@given(st.integers(4_000, 200_000), st.data())
def test_the_ladder_ends_against_any_model_however_it_answers(
    window: int, data: st.DataObject
) -> None:
    seen = climb(lambda tokens, number: data.draw(st.booleans()), window=window)
    found = horizon_of(seen, at=AT)
    assert found is None or 0 < found.tokens <= window


def test_a_model_that_follows_nothing_has_no_horizon() -> None:
    assert horizon_of(climb(lambda *_: False), at=AT) is None


def test_a_model_that_always_follows_reaches_nine_tenths_of_its_window() -> None:
    found = horizon_of(climb(lambda *_: True), at=AT)
    assert found is not None
    assert found.tokens == WINDOW * 9 // 10


def test_one_odd_sample_does_not_move_the_edge() -> None:
    seen = climb(lambda tokens, number: tokens <= 30_000 and number != 2)
    found = horizon_of(seen, at=AT)
    assert found is not None
    assert found.tokens > 26_000


def test_more_samples_of_the_edge_give_more_confidence_than_three() -> None:
    found = horizon_of(climb(lambda tokens, _: tokens <= 30_000), at=AT)
    three = [Observation(tokens=9, actual_tokens=9, grade=Grade.STRICT)] * 3
    few = horizon_of(three, at=AT)
    assert found is not None and few is not None
    assert found.confidence > few.confidence


def test_calls_written_as_text_pass_but_are_said_to_be_no_native_calls() -> None:
    seen = [Observation(tokens=4_000, actual_tokens=4_100, grade=Grade.LOOSE)] * 3
    found = horizon_of(seen, at=AT)
    assert found is not None
    assert (found.tokens, found.native_calls) == (4_100, False)


def test_the_horizon_is_counted_as_the_provider_counts() -> None:
    seen = [
        Observation(tokens=4_000, actual_tokens=actual, grade=Grade.STRICT)
        for actual in (5_010, 5_000, 5_020)
    ]
    found = horizon_of(seen, at=AT)
    assert found is not None and found.tokens == 5_000


def test_rungs_double_up_to_nine_tenths_of_the_window_or_the_operators_limit() -> None:
    assert rungs(40_000) == (4_000, 8_000, 16_000, 32_000, 36_000)
    assert rungs(40_000, largest=9_000) == (4_000, 8_000, 9_000)
    assert rungs(2_000) == (1_800,)
