"""Rules of a cache that nobody documents: what was seen of the model decides, and what nobody knows is not predicted."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.cache.causes import OF_BYTES, Cause
from ctxengine.engine.cache.predict import NOT_KNOWN, UNPREDICTED, Entry, predict
from ctxengine.engine.cache.rules import cache_rules, rules_in_force
from ctxengine.engine.cache.trail import Place, Trail
from ctxengine.engine.cache.verdict import Expected, Reported, judge
from ctxengine.engine.capacity.profile import CacheBehaviour
from ctxengine.engine.wire.base import WireApi

CHAT, SEEN = WireApi.OPENAI_CHAT, CacheBehaviour.REPORTED
HOUSE = rules_in_force(CHAT, "compatible", "house-coder-7b", SEEN)


def places(*tokens: int, name: str = "p") -> tuple[Place, ...]:
    return tuple(
        Place(f"{name}{place}", count, place + 1, place) for place, count in enumerate(tokens)
    )


def of(*spots: Place) -> Trail:
    return Trail(spots, prefix=0, stable=len(spots) - 1, images=False)


@pytest.mark.parametrize(
    ("provider", "api", "model"),
    [
        ("compatible", CHAT, "house-coder-7b"),
        ("ollama", WireApi.OLLAMA, "gemma4:e2b"),
        ("openrouter", CHAT, "qwen/qwen3-coder"),
        ("openrouter-responses", WireApi.OPENAI_RESPONSES, "deepseek/deepseek-v4"),
        ("bedrock", WireApi.BEDROCK, "meta.llama4-70b"),
    ],
)
def test_without_stated_rules_the_measured_behaviour_decides(
    provider: str, api: WireApi, model: str
) -> None:
    kinds = {
        seen: rules_in_force(api, provider, model, seen).kind
        for seen in (
            CacheBehaviour.UNKNOWN,
            CacheBehaviour.NONE,
            CacheBehaviour.PREFIX_STABLE,
            CacheBehaviour.REPORTED,
        )
    }
    assert list(kinds.values()) == ["unknown", "none", "prefix", "prefix"]
    found = rules_in_force(api, provider, model, CacheBehaviour.PREFIX_STABLE)
    assert (found.minimum, found.write_percent, found.tells, found.life_known) == (
        0,
        100,
        False,
        False,
    )


@pytest.mark.parametrize("seen", list(CacheBehaviour))
def test_markers_are_asked_for_whatever_a_probe_without_them_saw(seen: CacheBehaviour) -> None:
    for provider, api, model in (
        ("anthropic", WireApi.ANTHROPIC, "claude-sonnet-4-6"),
        ("openrouter", CHAT, "anthropic/claude-sonnet-4-6"),
        ("openai", CHAT, "gpt-5.6"),
    ):
        assert rules_in_force(api, provider, model, seen) == cache_rules(api, provider, model)


def test_a_cache_that_works_by_itself_is_none_where_a_proxy_was_seen_not_to_pass_it_on() -> None:
    assert cache_rules(CHAT, "openai", "gpt-4.1").kind == "prefix"
    assert rules_in_force(CHAT, "openai", "gpt-4.1", CacheBehaviour.NONE).kind == "none"
    stated = rules_in_force(CHAT, "openai", "gpt-4.1", SEEN)
    assert stated == cache_rules(CHAT, "openai", "gpt-4.1")


@pytest.mark.parametrize(
    ("model", "kind", "minimum"),
    [
        ("gemini-2.5-pro", "prefix", 2_048),
        ("gemini-3.1-pro", "prefix", 4_096),
        ("gemini-3.8-flash", "prefix", 4_096),
        ("gemini-4-argon", "prefix", 4_096),
        ("gemini-flash-latest", "prefix", 4_096),
        ("gemini-2.0-flash", "unknown", 0),
        ("gemini-1.5-pro", "unknown", 0),
    ],
)
def test_gemini_caches_by_itself_from_its_stated_minimum_for_a_life_nobody_states(
    model: str, kind: str, minimum: int
) -> None:
    rules = cache_rules(WireApi.GOOGLE, "google", model)
    assert (rules.kind, rules.minimum, rules.life_known) == (kind, minimum, False)
    if kind == "prefix":
        assert rules.by == "provider"
    elsewhere = rules_in_force(CHAT, "openrouter", f"google/{model}", SEEN)
    assert (elsewhere.kind, elsewhere.by) == ("prefix", "profile")
    assert elsewhere.minimum == minimum


def test_after_a_pause_nobody_knows_and_nothing_counts_as_lost() -> None:
    first = predict(of(*places(2_000, 3_000)), (), (), rules=HOUSE, now=0)
    longer = of(*places(2_000, 3_000, 3_400))
    soon = predict(longer, (), first.entries, rules=HOUSE, now=20, reach="p1")
    assert (soon.read, soon.fresh, soon.why, soon.lost) == (3_000, 400, "hit", 0)
    late = predict(longer, (), first.entries, rules=HOUSE, now=4_000, reach="p1")
    assert (late.read, late.why, late.lost, late.slack) == (0, NOT_KNOWN, 0, None)
    assert late.why in UNPREDICTED
    assert predict(longer, (), late.entries, rules=HOUSE, now=4_010).why == "hit"


def test_other_bytes_are_other_bytes_whatever_time_has_passed() -> None:
    first = predict(of(*places(2_000, 3_000)), (), (), rules=HOUSE, now=0)
    other = of(*places(2_000, 3_400, name="q"))
    for now in (10, 4_000):
        found = predict(other, (), first.entries, rules=HOUSE, now=now)
        assert (found.why, found.read) == ("changed", 0)


def test_what_a_request_leaves_is_kept_while_nothing_is_known_of_its_cache() -> None:
    unknown = cache_rules(CHAT, "compatible", "house-coder-7b")
    first = predict(of(*places(2_000, 3_000)), (), (), rules=unknown, now=0)
    assert (first.why, first.read) == ("no_cache", 0)
    second = predict(of(*places(2_000, 3_000, 3_400)), (), first.entries, rules=HOUSE, now=20)
    assert (second.why, second.read) == ("hit", 3_000)


def test_a_server_may_hold_the_beginning_of_what_follows_and_no_more() -> None:
    first = predict(of(*places(2_000, 3_000)), (), (), rules=HOUSE, now=0)
    second = predict(of(*places(2_000, 3_000, 5_000, 5_200)), (), first.entries, rules=HOUSE, now=9)
    assert second.behind == 2_000
    expected = Expected(3_000, 0, 5_200, "hit", Cause.NONE, step=256, behind=second.behind)
    outcomes = [judge(expected, Reported(read, None, 5_200)).outcome for read in (4_990, 2_600)]
    assert outcomes == ["agrees", "agrees"]
    plain = replace(expected, behind=0)
    assert judge(plain, Reported(4_990, None, 5_200)).outcome == "surplus"
    assert judge(expected, Reported(0, None, 5_200)).outcome == "shortfall"


def test_causes_of_bytes_are_those_that_a_digest_can_tell() -> None:
    silent = {Cause.EXPIRED, Cause.LIFE_UNKNOWN, Cause.UNEXPLAINED, Cause.FIRST, Cause.NONE}
    assert not OF_BYTES & silent
    assert {Cause.EPOCH, Cause.COMPACTED, Cause.REWRITTEN} <= OF_BYTES


@given(
    tokens=st.lists(st.integers(0, 5_000), min_size=1, max_size=12),
    kept=st.sets(st.integers(0, 11), max_size=6),
    now=st.integers(0, 1_000),
    seen=st.sampled_from(list(CacheBehaviour)),
)
def test_buckets_add_up_and_only_what_both_requests_hold_is_read(
    tokens: list[int], kept: set[int], now: int, seen: CacheBehaviour
) -> None:
    sums = [sum(tokens[: place + 1]) for place in range(len(tokens))]
    spots = places(*sums)
    entries = [
        Entry(spots[place].digest, sums[place], 300, 0.0) for place in kept if place < len(spots)
    ]
    rules = rules_in_force(CHAT, "compatible", "m", seen)
    found = predict(of(*spots), (), entries, rules=rules, now=now)
    assert found.write == 0
    assert found.read + found.fresh == sums[-1]
    assert found.behind >= 0
    held = {entry.tokens for entry in entries} if now < 300 else set()
    assert found.read in {0, *held}


@pytest.mark.parametrize(
    ("read", "outcome"), [(2_950, "agrees"), (3_600, "agrees"), (0, "shortfall")]
)
def test_a_template_that_leaves_the_tools_out_makes_no_shortfall(read: int, outcome: str) -> None:
    # Counted by us: 10,000, of which the server's template drops 6,000 of tools; 1,000 are new.
    expected = Expected(9_000, 0, 10_000, "hit", Cause.NONE, step=256, back=3_000)
    assert judge(expected, Reported(read, None, 4_000)).outcome == outcome
