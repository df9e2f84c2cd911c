"""A card names every result of its turn, of however many calls (design 11, no cut)."""

from __future__ import annotations

import pytest

from ctxengine.engine.turns.card import TurnCard, card_text
from ctxengine.engine.turns.closed import cards_of
from tests.working_lab import Exchange, WorkingLab

NUMBER = 50


def card_of_turn(results: int) -> TurnCard:
    """The card of a turn of so many calls in one step."""
    lab = WorkingLab()
    lab.live(Exchange("look", (tuple(f"result {n}" for n in range(results)),), "done"))
    (card,) = cards_of(lab.log, [1])
    assert card is not None
    return card


def test_results_beyond_those_listed_are_named_by_their_ends() -> None:
    card = card_of_turn(NUMBER)
    first, last = card.more_evidence
    assert card.more_calls == NUMBER - len(card.did) > 0
    assert f"{card.more_calls} more calls; their results: more between {first} and {last}" in (
        card_text(card)
    )


@pytest.mark.parametrize("results", [1, 40])
def test_a_card_that_lists_all_says_nothing_of_more(results: int) -> None:
    assert "more" not in card_text(card_of_turn(results))


def test_cards_written_before_say_what_they_said() -> None:
    older = card_of_turn(NUMBER).model_copy(update={"version": "card@2", "more_evidence": ()})
    assert f"\ndid: {older.more_calls} more calls\n" in card_text(older)
