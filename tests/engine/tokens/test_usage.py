"""Usage figures of three dialects in buckets that add up, and what they teach the estimator."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.tokens.factors import CalibrationFactor
from ctxengine.engine.tokens.usage import Usage, normalise, output_of_message

ANTHROPIC = {
    "input_tokens": 311,
    "cache_read_input_tokens": 91204,
    "cache_creation_input_tokens": 1500,
    "output_tokens": 64,
}
OPENAI_CHAT = {
    "prompt_tokens": 41250,
    "prompt_tokens_details": {"cached_tokens": 41088},
    "completion_tokens": 52,
}
FULL_HIT = {"input_tokens": 0, "cache_read_input_tokens": 93015, "output_tokens": 5}
COMPACTION = {
    "input_tokens": 300,
    "output_tokens": 12,
    "iterations": [
        {"type": "compaction", "input_tokens": 61000, "output_tokens": 140},
        {"type": "message", "input_tokens": 300, "output_tokens": 12},
    ],
}
RESPONSES = {
    "input_tokens": 5000,
    "input_tokens_details": {"cached_tokens": 4096},
    "output_tokens": 70,
    "output_tokens_details": {"reasoning_tokens": 64},
    "total_tokens": 5070,
}


def test_anthropic_input_leaves_out_what_the_cache_gave() -> None:
    usage = normalise("anthropic", ANTHROPIC)
    assert usage.prompt_total == 93015
    assert (usage.fresh, usage.cache_read, usage.cache_write_5m) == (311, 91204, 1500)
    assert usage.output == 64


def test_openai_input_holds_what_the_cache_gave() -> None:
    usage = normalise("openai", OPENAI_CHAT)
    assert usage.prompt_total == 41250
    assert (usage.fresh, usage.cache_read, usage.output) == (162, 41088, 52)


def test_openai_responses_use_other_names_for_the_same() -> None:
    usage = normalise("openai-responses", RESPONSES)
    assert (usage.prompt_total, usage.fresh, usage.cache_read, usage.output) == (
        5000,
        904,
        4096,
        70,
    )


@pytest.mark.parametrize(
    "said",
    [
        {"prompt_tokens_details": {"cached_tokens": 800}},
        {"prompt_cache_hit_tokens": 800, "prompt_cache_miss_tokens": 200},
        {"cached_tokens": 800},
        {"cache_read_input_tokens": 800},
    ],
)
def test_kin_of_the_api_say_what_was_read_under_other_names(said: dict[str, Any]) -> None:
    usage = normalise("compatible", {"prompt_tokens": 1_000, "completion_tokens": 5, **said})
    assert (usage.fresh, usage.cache_read, usage.prompt_total) == (200, 800, 1_000)
    assert usage.tells_reads and usage.calibrates


@pytest.mark.parametrize("inside", [True, False])
def test_kin_of_the_api_say_what_was_written(inside: bool) -> None:
    written = {"cache_creation_input_tokens": 100}
    details = {"cached_tokens": 700, **(written if inside else {})}
    said = {"prompt_tokens_details": details, **({} if inside else written)}
    usage = normalise("compatible", {"prompt_tokens": 1_000, **said})
    assert (usage.fresh, usage.cache_read, usage.cache_write_5m) == (200, 700, 100)


def test_a_full_hit_is_a_full_prompt() -> None:
    usage = normalise("anthropic", FULL_HIT)
    assert usage.prompt_total == 93015
    assert usage.calibrates
    assert CalibrationFactor("m").reconcile(93015, usage).value == 1.0


def test_a_server_compaction_is_billed_and_teaches_nothing() -> None:
    usage = normalise("anthropic", COMPACTION)
    assert usage.billed_input == 61300
    assert usage.billed_output == 152
    assert usage.prompt_total == 300
    factor = CalibrationFactor("m", millionths=1_500_000, samples=4)
    assert factor.reconcile(55_000, usage) is factor


def test_cache_writes_are_split_by_the_life_they_have() -> None:
    usage = normalise(
        "anthropic",
        {
            "input_tokens": 10,
            "cache_creation_input_tokens": 900,
            "cache_creation": {"ephemeral_5m_input_tokens": 300, "ephemeral_1h_input_tokens": 600},
        },
    )
    assert (usage.cache_write_5m, usage.cache_write_1h, usage.prompt_total) == (300, 600, 910)
    assert usage.problems == ()


figure = st.none() | st.integers(-5, 10**6) | st.floats() | st.text(max_size=3) | st.booleans()
receipt = st.dictionaries(
    st.sampled_from(
        [*ANTHROPIC, *OPENAI_CHAT, "cache_creation", "input_tokens_details", "iterations"]
    ),
    figure
    | st.dictionaries(
        st.sampled_from(["cached_tokens", "cache_write_tokens", "ephemeral_1h_input_tokens"]),
        figure,
    )
    | st.lists(st.dictionaries(st.sampled_from(["type", *ANTHROPIC]), figure), max_size=3),
)


@given(st.sampled_from(["anthropic", "openai", "openai-responses", "other"]), receipt)
def test_whatever_is_reported_the_buckets_are_disjoint_and_add_up(
    provider: str, reported: dict[str, Any]
) -> None:
    usage = normalise(provider, reported)
    buckets = (usage.fresh, usage.cache_read, usage.cache_write_5m, usage.cache_write_1h)
    assert min(*buckets, usage.output, usage.extra_input) >= 0
    assert sum(buckets) == usage.prompt_total
    assert usage.billed_input >= usage.prompt_total
    assert isinstance(json.loads(usage.source_raw), dict)


@pytest.mark.parametrize(
    ("provider", "reported", "word"),
    [
        ("anthropic", {"input_tokens": -4}, "no count"),
        ("anthropic", {"input_tokens": "many"}, "whole number"),
        ("openai", {"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 99}}, "part"),
        ("anthropic", {"input_tokens": 10**30}, "no count"),
        ("anthropic", {"input_tokens": 900_000}, "window"),
    ],
)
def test_nonsense_is_flagged_and_teaches_nothing(
    provider: str, reported: dict[str, Any], word: str
) -> None:
    usage = normalise(provider, reported, window=200_000)
    assert any(word in problem for problem in usage.problems)
    factor = CalibrationFactor("m")
    assert factor.reconcile(1000, usage) is factor


def test_one_message_on_three_lines_is_one_message() -> None:
    assert output_of_message([17, 17, 212]) == 212
    assert output_of_message([]) == 0


def sent(tokens: int) -> Usage:
    return normalise("anthropic", {"input_tokens": tokens, "output_tokens": 1})


def test_one_odd_first_receipt_does_not_halve_the_factor() -> None:
    assert CalibrationFactor("m").reconcile(1_650, sent(640)).value > 0.8


def test_the_first_receipt_sets_the_factor_and_later_ones_move_it_by_three_tenths() -> None:
    factor = CalibrationFactor("m").reconcile(10_000, sent(12_000))
    assert factor.value == 1.2
    moved = factor.reconcile(10_000, sent(14_000))
    assert moved.value == pytest.approx(1.26)
    assert moved.samples == 2
    assert moved.signed_error == pytest.approx((14_000 - 12_000) / 14_000)
    assert moved.reconcile(10_000, sent(10_000)).signed_error < 0


@given(st.integers(1_000, 10**6), st.floats(0.6, 3.5))
def test_the_factor_follows_real_usage(estimated: int, truth: float) -> None:
    factor = CalibrationFactor("m")
    for _ in range(12):
        factor = factor.reconcile(estimated, sent(round(estimated * truth)))
    assert factor.value == pytest.approx(truth, rel=0.02)


@given(st.integers(0, 10**6), st.integers(500_000, 4_000_000))
def test_a_budget_divided_by_the_factor_is_never_overrun(budget: int, millionths: int) -> None:
    factor = CalibrationFactor("m", millionths=millionths)
    assert factor.expected(factor.tokens_within(budget)) <= budget


@given(st.integers(-5, 10**7), st.integers(-5, 10**7))
def test_one_odd_receipt_keeps_the_factor_within_bounds(estimated: int, actual: int) -> None:
    factor = CalibrationFactor("m").reconcile(estimated, sent(actual))
    assert 0.5 <= factor.value <= 4


def test_a_refusal_raises_the_factor_and_never_lowers_it() -> None:
    factor = CalibrationFactor("m", millionths=1_100_000, samples=3)
    assert factor.raised_to(100_000, 150_000).value == 1.5
    assert factor.raised_to(100_000, 90_000).value == 1.1
    assert factor.raised_to(0, 90_000) is factor


GEMINI = {
    "promptTokenCount": 900,
    "cachedContentTokenCount": 400,
    "toolUsePromptTokenCount": 10,
    "candidatesTokenCount": 20,
    "thoughtsTokenCount": 5,
}
CONVERSE = {
    "inputTokens": 500,
    "cacheReadInputTokens": 300,
    "cacheWriteInputTokens": 100,
    "cacheDetails": [{"ttl": "5m", "inputTokens": 60}, {"ttl": "1h", "inputTokens": 40}],
    "outputTokens": 25,
}


@pytest.mark.parametrize(
    ("provider", "usage", "buckets"),
    [
        ("google", GEMINI, (510, 400, 0, 0, 25)),
        ("google", {"prompt_token_count": 9, "candidates_token_count": 2}, (9, 0, 0, 0, 2)),
        ("bedrock", CONVERSE, (500, 300, 60, 40, 25)),
        ("bedrock", {"inputTokens": 7, "outputTokens": 1}, (7, 0, 0, 0, 1)),
        ("ollama", {"prompt_eval_count": 26, "eval_count": 298}, (26, 0, 0, 0, 298)),
    ],
)
def test_native_figures_fall_into_the_same_buckets(
    provider: str, usage: dict[str, Any], buckets: tuple[int, ...]
) -> None:
    found = normalise(provider, usage)
    assert found.problems == ()
    written = (found.cache_write_5m, found.cache_write_1h)
    assert (found.fresh, found.cache_read, *written, found.output) == buckets
    assert found.prompt_total == sum(buckets[:4])


def test_gemini_leaves_the_figure_of_a_miss_out_and_others_that_of_what_they_do_not_know() -> None:
    assert normalise("google", {"promptTokenCount": 9}).tells_reads
    assert not normalise("google", {"candidatesTokenCount": 2}).tells_reads
    assert not normalise("ollama", {"prompt_eval_count": 26, "eval_count": 298}).tells_reads


@pytest.mark.parametrize(
    "usage",
    [
        {"promptTokenCount": 10, "cachedContentTokenCount": 11},
        {
            "inputTokens": 1,
            "cacheWriteInputTokens": 5,
            "cacheDetails": [{"ttl": "1h", "inputTokens": 6}],
        },
        {"prompt_eval_count": -1},
    ],
)
def test_native_figures_that_cannot_be_are_flagged(usage: dict[str, Any]) -> None:
    found = normalise("google", usage)
    assert found.problems and not found.calibrates
