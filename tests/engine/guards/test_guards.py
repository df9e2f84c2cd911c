"""The guards as pure functions: evidence in, verdict out (capacity spec 6 and 7)."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.guards.empty_step import StepEvidence, judge_step
from ctxengine.engine.guards.freshness import (
    FreshnessEvidence,
    admits_no_live_data,
    judge_freshness,
)
from ctxengine.engine.guards.judgement import (
    MEANINGS,
    Guard,
    Judgement,
    Verdict,
    nudge_of,
    statement_of,
)
from ctxengine.engine.guards.repeats import Said, SteeringEvidence, judge_repeats, judge_steering
from ctxengine.engine.guards.topic import TopicEvidence, judge_topic

LIVE = FreshnessEvidence(True, True, 0, 0, 0, "It is 9,100.")
SAID = "The plan has three parts and each takes a week."


@given(st.booleans(), st.booleans(), st.integers(0, 3), st.integers(0, 3), st.booleans())
def test_freshness_never_stops_what_is_not_live_or_was_looked_up(
    live: bool, observable: bool, observations: int, strikes: int, may_close: bool
) -> None:
    evidence = FreshnessEvidence(live, observable, observations, 0, strikes, "It is 9,100.")
    found = judge_freshness(evidence, may_close=may_close)
    stopped = found is not None and found.speaks
    assert stopped == (live and observable and not observations)
    if found is not None and found.verdict == "closed":
        assert strikes and may_close


@pytest.mark.parametrize(
    "text",
    [
        "I have no live data.",
        "I could not retrieve a current value.",
        "I don't have real-time access.",
        "Ich habe keine aktuellen Daten.",
        "Je n'ai pas de données en direct.",
        "No tengo datos en tiempo real.",
        "我没有实时数据。",
    ],
)
def test_an_admission_is_understood_in_several_languages(text: str) -> None:
    assert admits_no_live_data(text)
    found = judge_freshness(LIVE._replace(text=text, strikes=1))
    assert found is not None and found.verdict == "accepted"


@pytest.mark.parametrize("text", ["It is 9,100 now.", "The latest figure is 3.", "No."])
def test_a_figure_is_no_admission(text: str) -> None:
    assert not admits_no_live_data(text)


@given(
    words=st.lists(st.text("abcdefgh", min_size=4, max_size=9), min_size=1, max_size=8),
    where=st.sampled_from(["directive", "retrieved"]),
    strikes=st.integers(0, 2),
)
def test_one_word_of_the_directive_or_the_evidence_is_enough_for_a_card(
    words: list[str], where: str, strikes: int
) -> None:
    card, ground = " ".join(words), words[0]
    directive = ground if where == "directive" else "zzzz"
    retrieved = (ground,) if where == "retrieved" else ("yyyy",)
    found = judge_topic(TopicEvidence(card, directive, retrieved, strikes))
    assert found is not None and found.verdict == "passed"
    foreign = judge_topic(TopicEvidence(card, "zzzz", ("yyyy",), strikes))
    assert foreign is not None and foreign.verdict == ("closed" if strikes else "repair")
    assert judge_topic(TopicEvidence(card, "zzzz", (), strikes)) is None


def test_a_bare_figure_is_not_judged_by_its_words() -> None:
    assert judge_topic(TopicEvidence("28 29.1", "tide", ("harbour",), 0)) is None


def test_an_empty_step_is_asked_for_again_once_and_never_after_a_card() -> None:
    first = judge_step(StepEvidence(False, False, 0, 0))
    assert first is not None and first.verdict == "repair"
    again = judge_step(StepEvidence(False, False, 0, 1))
    assert again is not None and not again.speaks
    card = judge_step(StepEvidence(False, False, 1, 0))
    assert card is not None and not card.speaks
    assert judge_step(StepEvidence(True, False, 0, 0)) is None
    assert judge_step(StepEvidence(False, True, 0, 0)) is None


def test_a_verbatim_repeat_is_turned_back_twice_and_ends_the_turn_the_third_time() -> None:
    def strike(before: int) -> str:
        evidence = SteeringEvidence(
            "Who wrote it?", f"  {SAID} ", [Said("Describe it.", SAID)], before
        )
        found = judge_steering(evidence)
        assert found is not None
        return found.verdict

    assert [strike(n) for n in range(3)] == ["repair", "repair", "closed"]


@pytest.mark.parametrize(
    ("directive", "text", "earlier"),
    [
        ("Describe it.", SAID, [Said("describe  it.", SAID)]),
        ("Say it again.", SAID, [Said("Describe it.", SAID)]),
        ("Who wrote it?", SAID + " Really.", [Said("Describe it.", SAID)]),
        ("Who wrote it?", "Done.", [Said("Do it.", "Done.")]),
    ],
)
def test_what_may_rightly_be_the_same_is_left_alone(
    directive: str, text: str, earlier: list[Said]
) -> None:
    found = judge_steering(SteeringEvidence(directive, text, earlier, 0))
    assert found is None or not found.speaks


@given(st.integers(0, 5), st.integers(0, 5), st.integers(0, 6))
def test_only_batches_of_nothing_but_repeats_close_a_turn(
    cards: int, repeated: int, before: int
) -> None:
    found = judge_repeats(cards=cards, repeated=min(repeated, cards), before=before)
    all_repeat = cards > 0 and repeated >= cards
    assert (found is not None) == all_repeat
    if found is not None:
        assert (found.verdict == "closed") == (before >= 2)


def test_every_guard_is_explained_and_says_its_own_name() -> None:
    assert set(MEANINGS) == set(Guard)
    for guard in (Guard.EMPTY_STEP, Guard.FRESHNESS, Guard.TOPIC, Guard.STEERING):
        assert nudge_of(guard).startswith(f"[{guard.value}] ")
    for guard in (Guard.FRESHNESS, Guard.TOPIC, Guard.STEERING):
        assert statement_of(guard).startswith(f"[{guard.value}] ")


@given(st.sampled_from(Guard), st.sampled_from(get_args(Verdict)), st.integers(0, 3))
def test_a_verdict_that_cannot_be_told_stops_what_it_stopped_and_is_no_try(
    guard: Guard, verdict: Verdict, strike: int
) -> None:
    found = Judgement(guard, verdict, strike, {"words": 3})
    untold = found.unspoken()
    assert untold.stops == found.stops and not untold.speaks
    assert untold.evidence == found.evidence
    assert untold == found or (untold.verdict, untold.strike) == ("withheld", 0)


def test_the_steering_nudge_alone_names_its_turn() -> None:
    for guard in (Guard.EMPTY_STEP, Guard.FRESHNESS, Guard.TOPIC):
        assert nudge_of(guard, turn=7) == nudge_of(guard)
    assert nudge_of(Guard.STEERING, turn=7).endswith(" this turn, turn 7.")
