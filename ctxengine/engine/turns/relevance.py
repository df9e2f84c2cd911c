"""How much a new directive is about each closed turn (capacity spec 4).

value = max(recency, relevance, anaphora): BM25 over what turns are found by, scaled so that the best is 1, or likeness of
meaning where an embedder is configured and that is more; the newest turn is 1 by recency, and by anaphora where the directive
refers back.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, Protocol

from ctxengine.engine.turns.terms import asked_by

_K1, _B = 1.2, 0.75
MIN_SHARE = 0.5
"""Share of the weight of the directive's known terms that a turn must hold to count as relevant at all: with less, most of what
the directive is about lies elsewhere, and what it has in common with the turn may be chance."""
RECENT_TURNS = 16
"""Older turns are worth nothing to a plan by their age alone."""
_COMMON = 0.5
"""A term that more than this share of turns holds tells nothing."""
_MIN_TURNS_FOR_COMMON = 8
_SHORT_WORDS = 12
"""Only a directive of at most so many words is read as referring back by a single small word."""

_REFERS_BACK = re.compile(
    r"(?i)\b(again|same|previous|earlier|above|continue|go on|carry on|once more|redo|undo that|do (?:it|that)|"
    r"(?:the )?(?:first|second|third|last|other|latter|former) (?:one|ones)|instead|what about|and (?:for|in|with)|"
    r"nochmal|weiter|dasselbe|das gleiche|vorher(?:ige[nrs]?)?|encore|continue[zr]?|le même|la même|"
    r"otra vez|lo mismo|sigue|anterior)\b"
)
_PRONOUN = re.compile(
    r"(?i)\b(it|its|that|this|these|those|them|they|he|she|das|dies|diese[nrs]?|es|sie|ça|cela|eso|esto)\b"
)


class Values(NamedTuple):
    """The three values of one turn."""

    recency: float
    relevance: float
    anaphora: float

    @property
    def value(self) -> float:
        """What turns are ranked by."""
        return max(self)


class Postings(Protocol):
    """The index over a session's closed turns."""

    @property
    def turns(self) -> int:
        """Closed turns indexed."""
        ...

    @property
    def mean_length(self) -> float:
        """Terms of an average turn."""
        ...

    def holding(self, terms: Sequence[str]) -> Mapping[str, Mapping[int, int]]:
        """For each known term: turn number to how often that turn holds it."""
        ...

    def lengths(self, turns: Sequence[int]) -> Mapping[int, int]:
        """Terms of each of these turns."""
        ...


def relevance_of(directive: str, postings: Postings) -> dict[int, float]:
    """Relevance of each turn that shares enough with the directive, the best being 1."""
    asked = asked_by(directive)
    if not asked or not postings.turns:
        return {}
    found = postings.holding(list(asked))
    weights = {
        term: asked[term] * _weight(len(held), postings.turns) for term, held in found.items()
    }
    # What most turns hold weighs nothing, and is not gone through.
    found = {term: held for term, held in found.items() if weights[term] > 0}
    total = sum(weights.values())
    if total <= 0:
        return {}
    numbers = sorted({turn for held in found.values() for turn in held})
    lengths = postings.lengths(numbers)
    mean = max(1.0, postings.mean_length)
    scores: dict[int, float] = {}
    for turn in numbers:
        held = [term for term, turns in found.items() if turn in turns]
        if sum(weights[term] for term in held) < MIN_SHARE * total:
            continue
        norm = _K1 * (1 - _B + _B * lengths[turn] / mean)
        scores[turn] = sum(
            weights[term] * found[term][turn] * (_K1 + 1) / (found[term][turn] + norm)
            for term in held
        )
    best = max(scores.values(), default=0.0)
    return {turn: score / best for turn, score in scores.items()} if best > 0 else {}


def refers_back(directive: str) -> bool:
    """Whether a directive leans on the turn before it: by saying so, or by being short and naming nothing itself."""
    words = directive.split()
    if not words:
        return False
    if len(words) <= 2 * _SHORT_WORDS and _REFERS_BACK.search(directive):
        return True
    return len(words) <= _SHORT_WORDS and _PRONOUN.search(directive) is not None


def values_of(
    directive: str,
    *,
    newest: int,
    postings: Postings,
    like: Mapping[int, float] = MappingProxyType({}),
    oldest: int = 1,
) -> dict[int, Values]:
    """Values of closed turns, the newest of which has this number.

    Args:
        like: likeness of meaning by turn, 0 to 1, where something measures it.
        oldest: turns before this one are given where more than their age speaks for them.
    """
    relevance = relevance_of(directive, postings)
    back = refers_back(directive)
    return {
        turn: Values(
            recency=1 / (1 + newest - turn),
            relevance=max(relevance.get(turn, 0.0), like.get(turn, 0.0)),
            anaphora=1.0 if back and turn == newest else 0.0,
        )
        for turn in _given(relevance, like, oldest, newest)
    }


def _given(
    relevance: Mapping[int, float], like: Mapping[int, float], oldest: int, newest: int
) -> Sequence[int]:
    older = {n for found in (relevance, like) for n in found if n < oldest and n <= newest}
    return [*sorted(older), *range(max(1, oldest), newest + 1)]


def _weight(holding: int, turns: int) -> float:
    if turns >= _MIN_TURNS_FOR_COMMON and holding > turns * _COMMON:
        return 0.0
    return math.log(1 + (turns - holding + 0.5) / (holding + 0.5))
