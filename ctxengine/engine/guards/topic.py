"""Topic mismatch: a card that has nothing to do with what was asked and found (capacity spec 7).

Judged only once something was retrieved: a card made from the model's own reasoning often shares no word with anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from ctxengine.engine.guards.judgement import Guard, Judgement
from ctxengine.engine.turns.index_text import terms_of
from ctxengine.engine.turns.terms import stem

_MAX_CHARS = 200_000
_NUMBER = re.compile(r"\d+(?:[.,'\u00a0\u202f]\d+)*")
_SEPARATOR = re.compile(r"[.,'\u00a0\u202f]")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SHORTEST = 3
"""Characters of a word that tells anything; scripts without blanks come as pairs of characters and are taken as they are."""
_SMALL_WORDS = _words(
    "the and for are was were has have had not but you your our its this that these those with from into over under than then "
    "about what when where which who how why tell show give say please can could would should will there here now them they "
    "all any some more most one two new use get make see let only also very just "
    "der die das und ist ein eine mit von für auf was wer wie wo wann mir mich bitte über "
    "les des une est pour avec dans quoi qui que quel quelle sur moi los las una con por para qué cómo sobre che per del della"
)


class TopicEvidence(NamedTuple):
    """What the verdict rests on."""

    card: str
    """All texts of the card."""
    directive: str
    """All that the user said in the run."""
    retrieved: tuple[str, ...]
    """Texts of what the run retrieved with success: without any of them a card is not judged."""
    strikes: int
    beside: tuple[str, ...] = ()
    """Other texts that a card may rest on: what any other tool gave, and what was recalled."""


def judge_topic(evidence: TopicEvidence, *, may_close: bool = True) -> Judgement | None:
    """One repair, then the turn closes on the evidence itself; None where the guard has nothing to say."""
    words = telling_words([evidence.card])
    if not evidence.retrieved or not words:
        return None
    ground = [evidence.directive, *evidence.retrieved, *evidence.beside]
    shared = len(words & telling_words(ground))
    shared += len(telling_numbers([evidence.card]) & telling_numbers(ground))
    figures: dict[str, int | str | bool] = {
        "words": len(words),
        "shared": shared,
        "results": len(evidence.retrieved),
    }
    if shared:
        return Judgement(Guard.TOPIC, "passed", 0, figures)
    if evidence.strikes and may_close:
        return Judgement(Guard.TOPIC, "closed", evidence.strikes + 1, figures)
    return Judgement(Guard.TOPIC, "repair", max(1, evidence.strikes), figures)


def telling_words(texts: Iterable[str]) -> frozenset[str]:
    """Words that tell what a text is about, in their common form: no small ones and no bare numbers."""
    found = {term for text in texts for term in terms_of(text)}
    return frozenset(
        stem(term)
        for term in found
        if not term.isdigit()
        and term not in _SMALL_WORDS
        and (len(term) >= _SHORTEST or not term.isascii())
    )


def telling_numbers(texts: Iterable[str]) -> frozenset[str]:
    """Numbers that hardly occur twice by chance: those of three digits or more, and those with decimals.

    A number is given in each way it may be meant: `9.100` is nine thousand one hundred to some, and nine and a tenth to others.
    """
    return frozenset(
        form
        for text in texts
        for number in _NUMBER.findall(text[:_MAX_CHARS])
        for form in _meant(number)
    )


def _meant(number: str) -> Iterable[str]:
    *before, last = _SEPARATOR.split(number)
    if not before:
        return [number.lstrip("0")] if len(number) >= _SHORTEST else []
    whole = "".join(before)
    found = [f"{whole.lstrip('0')}.{last.rstrip('0')}"]
    if all(len(group) == 3 for group in (*before[1:], last)):
        found.append((whole + last).lstrip("0"))
    return found
