"""Repeats: an answer that is an earlier turn's, and cards shown over and over (capacity spec 6 and 7)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ctxengine.engine.guards.judgement import Guard, Judgement

MIN_WORDS = 5
"""A shorter answer may well be right twice: "Done.", "Yes, it is."."""
_STEERING_LIMIT = 3
"""So many verbatim repeats in a row end the turn."""
REPEAT_BATCHES = 3
"""So many batches in a row in which every card was shown before close the turn on that card."""

_WANTED_AGAIN = re.compile(
    r"(?i)\b(?:again|same|repeat|once more|redo|nochmal|noch einmal|wiederhole?|dasselbe|encore|répète[zr]?|le même|la même|"
    r"otra vez|de nuevo|repite|lo mismo|ancora|ripeti|lo stesso|de novo|repita)\b|再|もう一度|다시|еще раз|ещё раз"
)


class Said(NamedTuple):
    """What an earlier turn was asked and answered."""

    asked: str
    answered: str


class SteeringEvidence(NamedTuple):
    """What the verdict rests on."""

    directive: str
    text: str
    """The answer that ends the step."""
    earlier: Sequence[Said]
    strikes: int
    """Repeats in a row before this one."""
    observations: int = 0
    """Successful look-ups of the run itself: the world may well answer two questions with the same words."""


def judge_steering(evidence: SteeringEvidence) -> Judgement | None:
    """A nudge for a verbatim repeat, the end of the turn for the third in a row; None where there is nothing to compare.

    The same question may have the same answer, so may another one that was looked up for itself, and a directive that asks
    for something again wants it again.
    """
    text = _folded(evidence.text)
    if len(text.split()) < MIN_WORDS and len(text) < 4 * MIN_WORDS:
        return None
    asked = _folded(evidence.directive)
    same = [said for said in evidence.earlier if _folded(said.answered) == text]
    figures: dict[str, int | str | bool] = {
        "compared": len(evidence.earlier),
        "equal": len(same),
        "observations": evidence.observations,
    }
    if not same:
        return Judgement(Guard.STEERING, "passed", 0, figures) if evidence.strikes else None
    wanted = _WANTED_AGAIN.search(evidence.directive) or evidence.observations
    if wanted or any(_folded(said.asked) == asked for said in same):
        return Judgement(Guard.STEERING, "accepted", 0, figures)
    strike = evidence.strikes + 1
    if strike >= _STEERING_LIMIT:
        return Judgement(Guard.STEERING, "closed", strike, figures)
    return Judgement(Guard.STEERING, "repair", strike, figures)


def judge_repeats(
    *, cards: int, repeated: int, before: int, may_close: bool = True
) -> Judgement | None:
    """Whether the turn closes on a card that is shown over and over; None for a batch with anything new.

    Args:
        cards: card calls of this batch; other calls make it no batch of repeats, and count as 0.
        repeated: how many of them repeat a card of the run.
        before: batches of nothing but repeats right before this one.
        may_close: whether the turn may end here; not while the user has said more.
    """
    if not cards or repeated < cards:
        return None
    strike = before + 1
    figures: dict[str, int | str | bool] = {"cards": cards}
    if strike >= REPEAT_BATCHES and may_close:
        return Judgement(Guard.REPEATS, "closed", strike, figures)
    return Judgement(Guard.REPEATS, "accepted", strike, figures)


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()
