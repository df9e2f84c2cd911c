"""Terms that turns are found by, and how much each term of a directive says (capacity spec 4 and 10).

Words meet in a common form of theirs; names made of several words (paths, identifiers, dotted or dashed names) are found as
they stand, by each word, and by two words side by side, as people say them. A name or a number says more than a word of prose.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from ctxengine.engine.turns.function_words import FUNCTION_WORDS

MAX_TERM_CHARS = 64
"""A longer word or name is known by its end, where names differ."""
_MAX_TEXT_CHARS = 200_000
NAME_WEIGHT, PAIR_WEIGHT, NUMBER_WEIGHT = 3.0, 2.0, 2.0
"""How much more than a word of prose a whole name, two neighbouring words of one, and a number of three digits say."""

_GROUPED = re.compile(r"(?<![\w.,])\d{1,3}(?:[,'\u202f\u00a0]\d{3})+(?![\w])")
_NAME = re.compile(r"[^\W_]+(?:[_./\\:@#+~-]{1,3}[^\W_]+)*")
_WORD = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NO_BLANKS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]")
_STEPS = re.compile(r"[/\\]")
_UNDOUBLED = frozenset("bdgmnprt")


class _Found(NamedTuple):
    """One name or word of a text."""

    words: list[str]
    whole: str
    """The name as it stands, in lower case; empty for a plain word."""


def found_by(text: str) -> list[str]:
    """The terms of a text, as often as they occur."""
    terms: list[str] = []
    for found in _names(text):
        terms += found.words
        if found.whole:
            terms += _wholes(found.whole)
            terms += [f"{one}_{other}"[-MAX_TERM_CHARS:] for one, other in pairwise(found.words)]
    return terms


def asked_by(directive: str) -> dict[str, float]:
    """The terms of a directive with the weight of each.

    Words of no subject are asked for in pairs alone: only names are found by those.
    """
    weights: dict[str, float] = {}

    def take(term: str, weight: float) -> None:
        weights[term] = max(weight, weights.get(term, 0.0))

    before = ""
    for found in _names(directive):
        for whole in _wholes(found.whole) if found.whole else ():
            take(whole, NAME_WEIGHT)
        for word in found.words:
            if before:
                take(f"{before}_{word}"[-MAX_TERM_CHARS:], PAIR_WEIGHT)
            before = word
            if found.whole or word not in _FUNCTION_STEMS:
                take(word, NUMBER_WEIGHT if word.isdigit() and len(word) > 2 else 1.0)
    return weights


def _names(text: str) -> Iterator[_Found]:
    plain = _GROUPED.sub(lambda match: re.sub(r"\D", "", match[0]), text[:_MAX_TEXT_CHARS])
    for match in _NAME.finditer(plain):
        name = match[0]
        words = [part for word in _WORD.findall(name) for part in _parts(word)]
        is_name = len(words) > 1 and not _NO_BLANKS.search(name)
        yield _Found(words, name.casefold() if is_name else "")


def _parts(word: str) -> list[str]:
    """The words of a word: of an identifier its parts, of a script without blanks its pairs of characters."""
    if _NO_BLANKS.search(word):
        return [word[place : place + 2] for place in range(max(1, len(word) - 1))]
    return [stem(part.casefold())[-MAX_TERM_CHARS:] for part in _CAMEL.split(word)]


def _wholes(name: str) -> list[str]:
    """A name as it stands, and the last step of a path."""
    last = _STEPS.split(name)[-1]
    names = [name] if last == name or last.isalnum() else [name, last]
    return [f"={each}"[:1] + each[-(MAX_TERM_CHARS - 1) :] for each in names]


def stem(word: str) -> str:
    """The common form of a word: endings that only inflect are taken off."""
    if len(word) < 5 or not word.isalpha():
        return word[:-1] if len(word) == 4 and word[-1] == "s" and word[-2] != "s" else word
    for ending in ("ings", "ing", "ied", "ies", "ed"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            rest = word[: -len(ending)]
            if ending in {"ied", "ies"}:
                return rest + "i"
            doubled = len(rest) > 3 and rest[-1] == rest[-2] and rest[-1] in _UNDOUBLED
            return rest[:-1] if doubled else _without_e(rest)
    if word.endswith("sses"):
        return word[:-2]
    if word.endswith("s") and word[-2] not in "siu":
        word = word[:-1]
    return word[:-1] + "i" if word.endswith("y") else _without_e(word)


def _without_e(word: str) -> str:
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


_FUNCTION_STEMS = frozenset({*FUNCTION_WORDS, *map(stem, FUNCTION_WORDS)})
