"""The peer policies do what their documentation says, and their requests meet the same cache rules as ours."""

from __future__ import annotations

from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.cache.predict import Entry, predict
from ctxengine.engine.cache.rules import cache_rules
from ctxengine.engine.history.peers.conversation import PeerMessage
from ctxengine.engine.history.peers.places import marks_of_peer, trail_of_peer
from ctxengine.engine.history.peers.policies import (
    PEERS,
    PLACEHOLDER_TOKENS,
    STUB_TOKENS,
    AppendAll,
    ClearToolResults,
    SlidingWindow,
    SummariseWhenFull,
)
from ctxengine.engine.wire.base import WireApi

RULES = cache_rules(WireApi.ANTHROPIC, "anthropic", "claude-sonnet-4-6")


def conversation(*turns: tuple[int, ...]) -> list[PeerMessage]:
    """Turns as sizes: the user's message, then (answer, result) pairs."""
    found: list[PeerMessage] = []
    for turn in turns:
        for place, tokens in enumerate(turn):
            role = "user" if place == 0 else "assistant" if place % 2 else "result"
            at = len(found)
            found.append(PeerMessage(at, role, tokens, str(at), role != "result"))  # type: ignore[arg-type]
    return found


def test_append_all_shows_everything() -> None:
    history = conversation((10, 5, 900), (10, 5, 900))
    assert [m.place for m in AppendAll().show(history, 100).messages] == [0, 1, 2, 3, 4, 5]


def test_a_sliding_window_begins_at_the_oldest_user_message_that_fits() -> None:
    history = conversation((10, 5, 50), (10, 5, 50), (10, 5, 50))
    assert SlidingWindow().show(history, 140).messages[0].place == 3
    assert SlidingWindow().show(history, 70).messages[0].place == 6


def test_a_turn_larger_than_the_window_is_shown_from_an_answer_on_and_never_from_a_result() -> None:
    history = conversation((10, 5, 50, 5, 50, 5, 50))
    first = SlidingWindow().show(history, 120).messages[0]
    assert (first.role, first.place) == ("assistant", 3)


def test_clearing_keeps_the_latest_three_results_and_stays_cleared() -> None:
    policy = ClearToolResults()
    history = conversation(*[(10, 5, 100)] * 6)
    assert policy.show(history, 10_000).cleared == frozenset()
    shown = policy.show(history, 500)
    assert shown.cleared == {2, 5, 8}
    assert shown.tokens(PLACEHOLDER_TOKENS, 0) == 6 * 15 + 3 * 100 + 3 * PLACEHOLDER_TOKENS
    assert policy.show(history, 10_000).cleared == {2, 5, 8}


def test_a_summary_takes_the_place_of_all_but_the_current_turn() -> None:
    policy = SummariseWhenFull()
    history = conversation((10, 5, 3_000), (10, 5, 3_000), (10, 5, 100))
    shown = policy.show(history, 8_000)
    assert (shown.stub, [m.place for m in shown.messages]) == (1, [6, 7, 8])
    assert shown.made_from == sum(m.tokens for m in history)
    again = policy.show(history, 8_000)
    assert (again.stub, again.made_from) == (1, 0)
    assert again.tokens(PLACEHOLDER_TOKENS, STUB_TOKENS) == 115 + STUB_TOKENS


def test_a_turn_that_is_too_long_keeps_its_message_and_its_newest_steps() -> None:
    history = conversation((10, 5, 3_000, 5, 3_000, 5, 100))
    shown = SummariseWhenFull().show(history, 8_000)
    assert [m.place for m in shown.messages] == [0, 3, 4, 5, 6]


@given(
    st.lists(
        st.lists(st.integers(1, 400), min_size=1, max_size=7).map(tuple), min_size=1, max_size=6
    ),
    st.integers(100, 3_000),
)
def test_every_policy_shows_messages_in_order_and_each_at_most_once(
    turns: list[tuple[int, ...]], room: int
) -> None:
    history = conversation(*turns)
    for make in PEERS.values():
        policy = make()
        for end in range(1, len(history) + 1):
            places = [m.place for m in policy.show(history[:end], room).messages]
            assert places == sorted(set(places)) and places, policy.name


def test_a_grown_request_reads_all_that_the_one_before_wrote() -> None:
    left: tuple[Entry, ...] = ()
    history = conversation(*[(300, 200, 900)] * 8)
    wrote = 0
    for end in range(1, len(history) + 1):
        trail = trail_of_peer(AppendAll().show(history[:end], 0), model="m", prefix=1_500)
        marks = marks_of_peer(trail, RULES, life=300)
        found = predict(trail, marks, left, rules=RULES, now=float(end), reach="")
        assert found.read == wrote and found.fresh == 0
        left, wrote = found.entries, trail.end.tokens
    sizes = list(accumulate(m.tokens for m in history))
    assert wrote == 1_500 + sizes[-1]


def test_a_rewritten_message_ends_what_can_be_read() -> None:
    history = conversation(*[(300, 200, 900)] * 8)
    policy = ClearToolResults()
    before = trail_of_peer(policy.show(history, 100_000), model="m", prefix=1_500)
    after = trail_of_peer(policy.show(history, 5_000), model="m", prefix=1_500)
    shared = {place.digest for place in before.places} & {place.digest for place in after.places}
    assert len(shared) == 3, "the prefix and the two messages before the first cleared result"
