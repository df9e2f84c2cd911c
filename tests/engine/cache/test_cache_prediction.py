"""Predicted reads and writes, and what is said about silent no-cache."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.cache.markers import MAX_MARKERS, place_markers
from ctxengine.engine.cache.predict import Entry, predict
from ctxengine.engine.cache.rules import CacheRules, cache_rules
from ctxengine.engine.cache.trail import Place, Trail
from ctxengine.engine.cache.ttl import advise_ttl
from ctxengine.engine.cache.warnings import cache_warnings
from ctxengine.engine.wire.base import WireApi

CLAUDE = cache_rules(WireApi.ANTHROPIC, "anthropic", "claude-sonnet-4-6")
OLD_GPT = cache_rules(WireApi.OPENAI_CHAT, "openai", "gpt-4.1")


def trail(*tokens: int) -> tuple[Place, ...]:
    return tuple(Place(f"p{place}", count, place + 1) for place, count in enumerate(tokens))


def of(*places: Place) -> Trail:
    return Trail(places, prefix=0, stable=len(places) - 1, images=False)


def test_the_first_request_writes_to_its_last_marker_and_leaves_the_tail_fresh() -> None:
    places = trail(2_000, 3_000, 3_100)
    first = predict(of(*places), [(places[0], 300), (places[1], 300)], (), rules=CLAUDE, now=0)
    assert (first.read, first.write, first.fresh, first.why) == (0, 3_000, 100, "first")


def test_the_next_request_reads_what_was_written_and_writes_the_rest() -> None:
    places = trail(2_000, 3_000, 3_100)
    first = predict(of(*places), [(places[0], 300), (places[1], 300)], (), rules=CLAUDE, now=0)
    longer = (*places[:2], Place("q2", 4_000, 3), Place("q3", 4_100, 4))
    marks = [(longer[0], 300), (longer[2], 300)]
    second = predict(of(*longer), marks, first.entries, rules=CLAUDE, now=60)
    assert (second.read, second.write, second.fresh, second.why) == (3_000, 1_000, 100, "hit")


def test_an_entry_expires_and_is_kept_alive_by_reading() -> None:
    places = trail(2_000)
    marks = [(places[0], 300)]
    first = predict(of(*places), marks, (), rules=CLAUDE, now=0)
    again = predict(of(*places), marks, first.entries, rules=CLAUDE, now=250)
    assert again.why == "hit"
    assert predict(of(*places), marks, again.entries, rules=CLAUDE, now=500).why == "hit"
    late = predict(of(*places), marks, again.entries, rules=CLAUDE, now=600)
    assert (late.read, late.why) == (0, "expired")


def test_an_entry_beyond_the_look_back_is_not_found() -> None:
    places = trail(*(2_000 + place for place in range(40)))
    first = predict(of(*places[:1]), [(places[0], 300)], (), rules=CLAUDE, now=0)
    far = predict(of(*places), [(places[39], 300)], first.entries, rules=CLAUDE, now=1)
    assert (far.read, far.why) == (0, "lookback")
    near = predict(of(*places[:20]), [(places[19], 300)], first.entries, rules=CLAUDE, now=1)
    assert (near.read, near.why) == (2_000, "hit")


def test_a_prompt_below_the_minimum_is_not_cached_and_the_warning_says_so() -> None:
    places = trail(600, 900)
    found = predict(of(*places), [(places[1], 300)], (), rules=CLAUDE, now=0)
    assert (found.read, found.write, found.why) == (0, 0, "below_minimum")
    (warning,) = cache_warnings(found, rules=CLAUDE, advice=None, gap=None)
    assert "1,024" in warning


def test_a_prefix_cache_reads_in_steps_without_any_marker() -> None:
    places = trail(2_000, 3_000)
    first = predict(of(*places), (), (), rules=OLD_GPT, now=0)
    longer = (*places, Place("p2", 5_000, 3))
    second = predict(of(*longer), (), first.entries, rules=OLD_GPT, now=10)
    assert second.read == 1_024 + (3_000 - 1_024) // 128 * 128
    assert second.read + second.write + second.fresh == 5_000


def test_where_a_long_run_began_is_read_again_when_its_reasoning_has_left() -> None:
    began = (*trail(2_000, 2_500), Place("question", 3_000, 3))
    thought = tuple(Place(f"thought{n}", 3_000 + 100 * n, 3 + n) for n in range(1, 31))
    run = replace(of(*began, *thought), lasting=2)
    last = predict(run, (), (), rules=OLD_GPT, now=0)
    assert len(last.entries) <= 13
    bare = tuple(Place(f"bare{n}", 3_000 + 60 * n, 3 + n) for n in range(1, 31))
    following = predict(of(*began, *bare), (), last.entries, rules=OLD_GPT, now=10)
    assert (following.at, following.why) == ("question", "hit")


@given(
    tokens=st.lists(st.integers(0, 5_000), min_size=1, max_size=12),
    marked=st.sets(st.integers(0, 11), max_size=4),
    now=st.integers(0, 1_000),
)
def test_buckets_are_disjoint_and_add_up(tokens: list[int], marked: set[int], now: int) -> None:
    total, sums = 0, []
    for count in tokens:
        total += count
        sums.append(total)
    places = trail(*sums)
    marks = [(places[place], 300) for place in sorted(marked) if place < len(places)]
    entries = (Entry(places[0].digest, places[0].tokens, 300, 0.0),)
    for rules in (CLAUDE, OLD_GPT, CacheRules("none", 0, None, 0, None)):
        found = predict(of(*places), marks, entries, rules=rules, now=now)
        assert min(found.read, found.write, found.fresh) >= 0
        assert found.read + found.write + found.fresh == total


def test_pauses_of_minutes_advise_the_longer_life_and_short_ones_do_not() -> None:
    assert advise_ttl([600.0] * 10, CLAUDE).ttl == "1h"  # type: ignore[union-attr]
    assert advise_ttl([20.0] * 10, CLAUDE).ttl == "5m"  # type: ignore[union-attr]
    assert advise_ttl([20.0], CLAUDE) is None
    assert advise_ttl([600.0] * 10, OLD_GPT) is None


def test_markers_never_exceed_the_limit_and_a_long_life_stands_first() -> None:
    markers = place_markers(
        api=WireApi.ANTHROPIC,
        model="claude-sonnet-4-6",
        has_tools=True,
        history_fragments=10,
        completed_fragments=14,
        prefix_ttl="1h",
    )
    assert len(markers) == MAX_MARKERS
    assert [marker.ttl for marker in markers] == ["1h", "1h", "5m", "5m"]
    assert (
        place_markers(
            api=WireApi.OPENAI_CHAT,
            model="gpt-4.1",
            has_tools=True,
            history_fragments=10,
            completed_fragments=14,
        )
        == ()
    )
