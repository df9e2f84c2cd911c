"""Which exact facts a transcript's answers really use, and where they stood before (design 8: fidelity).

A use is a fact in what the model wrote (its prose, the arguments of its calls) that something earlier in the same transcript
held already: a path, a command, a number, a quoted string. A user's constraint counts as used at the first step of every later
turn. What the frozen prefix says is left out: it is in every request. Shape alone decides; nothing here knows a language's
topics.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from ctxengine.engine.compaction.extract import paths_in, quoted_in

LEAST_NUMBER_CHARS = 4
"""A shorter number stands everywhere and proves nothing."""
LEAST_COMMAND_CHARS = 8
MOST_COMMAND_CHARS = 120
MOST_USES = 40
"""Most facts of one answer that are looked for."""
MOST_CONSTRAINTS = 20
"""Most constraints of one transcript that are followed; the latest ones."""
_READ_CHARS = 20_000
"""Characters of one text that facts are taken from."""
_NUMBER = re.compile(r"(?<![\w.])\d[\d,._]*\d%?(?!\w)")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_MUST = re.compile(
    r"\b(?:must(?: not|n't)?|never|always|do not|don't|only|at most|at least|without|instead of|make sure|required?)\b",
    re.IGNORECASE,
)
"""Words by which a sentence binds. A measure, not a rule of the engine: no request depends on it."""
_LEAST_CONSTRAINT, _MOST_CONSTRAINT = 20, 300


class FactKind(StrEnum):
    """Kinds of fact."""

    PATH = "path"
    COMMAND = "command"
    NUMBER = "number"
    QUOTED = "quoted"
    CONSTRAINT = "constraint"


class Said(NamedTuple):
    """One item of a transcript as a reader sees it."""

    place: int
    """Index of its message in the transcript."""
    ordinal: int
    speaker: str
    """`user`, `model`, `call`, `result` or `other`."""
    text: str
    arguments: tuple[str, ...] = ()
    """The texts among a call's arguments, the first one first."""


class Holder(NamedTuple):
    """An item that holds a fact."""

    place: int
    ordinal: int
    offset: int
    """Characters before the fact."""


class Use(NamedTuple):
    """A fact that one answer uses, and every earlier item that holds it."""

    kind: FactKind
    fact: str
    holders: tuple[Holder, ...]


def uses_of(said: Sequence[Said], *, prefix: str = "") -> Mapping[int, tuple[Use, ...]]:
    """The facts each answer uses, by the place of the answer.

    Args:
        said: all items of a transcript in order.
        prefix: text that stands in every request; facts in it are no evidence for anything.
    """
    finder = _Finder(said, prefix)
    found: dict[int, tuple[Use, ...]] = {}
    for place, facts in _facts_by_answer(said).items():
        uses = [use for kind, fact in facts if (use := finder.use(kind, fact, place))]
        found[place] = tuple(uses[:MOST_USES])
    for place, used in _constraint_uses(said, finder).items():
        found[place] = (*found.get(place, ()), *used)
    return found


class _Finder:
    """Looks for facts in what stood before, each fact in each item once."""

    def __init__(self, said: Sequence[Said], prefix: str) -> None:
        self._items = [(item, "\n".join((item.text, *item.arguments))) for item in said]
        self._prefix = prefix
        self._known: dict[str, tuple[Holder, ...]] = {}

    def use(self, kind: FactKind, fact: str, place: int) -> Use | None:
        holders = self._holders(fact)
        before = tuple(holder for holder in holders if holder.place < place)
        return Use(kind, fact, before) if before else None

    def _holders(self, fact: str) -> tuple[Holder, ...]:
        known = self._known.get(fact)
        if known is None:
            found = [] if fact in self._prefix else self._search(fact)
            known = self._known[fact] = tuple(found)
        return known

    def _search(self, fact: str) -> list[Holder]:
        return [
            Holder(item.place, item.ordinal, offset)
            for item, text in self._items
            if (offset := text.find(fact)) >= 0
        ]


def _facts_by_answer(said: Sequence[Said]) -> dict[int, list[tuple[FactKind, str]]]:
    by_place: dict[int, list[tuple[FactKind, str]]] = {}
    for item in said:
        if item.speaker in {"model", "call"}:
            facts = by_place.setdefault(item.place, [])
            facts.extend(fact for fact in facts_in(item) if fact not in facts)
    return by_place


def facts_in(item: Said) -> list[tuple[FactKind, str]]:
    """The exact facts in one item, each once."""
    found: list[tuple[FactKind, str]] = []
    for text in (item.text[:_READ_CHARS], *(text[:_READ_CHARS] for text in item.arguments)):
        found += [(FactKind.PATH, path) for path in paths_in(text)]
        numbers = (match[0] for match in _NUMBER.finditer(text))
        found += [(FactKind.NUMBER, n) for n in numbers if len(n) >= LEAST_NUMBER_CHARS]
        found += [(FactKind.QUOTED, quoted) for quoted in quoted_in(text)]
    if item.speaker == "call" and item.arguments:
        command = item.arguments[0].strip().split("\n", 1)[0].strip()
        if " " in command and LEAST_COMMAND_CHARS <= len(command) <= MOST_COMMAND_CHARS:
            found.append((FactKind.COMMAND, command))
    return list(dict.fromkeys(found))


def constraints_in(text: str) -> list[str]:
    """Sentences of a user that bind what comes later, word for word."""
    sentences = (sentence.strip() for sentence in _SENTENCE.split(text[:_READ_CHARS]))
    return [
        sentence
        for sentence in sentences
        if _LEAST_CONSTRAINT <= len(sentence) <= _MOST_CONSTRAINT and _MUST.search(sentence)
    ]


def _constraint_uses(said: Sequence[Said], finder: _Finder) -> dict[int, tuple[Use, ...]]:
    """Constraints stated so far, at the first answer of each later turn."""
    stated: list[str] = []
    fresh: list[str] = []
    found: dict[int, tuple[Use, ...]] = {}
    opened = False
    for item in said:
        if item.speaker == "user":
            opened, stated, fresh = True, [*stated, *fresh], constraints_in(item.text)
        elif item.speaker in {"model", "call"} and opened:
            opened = False
            wanted = list(dict.fromkeys(stated))[-MOST_CONSTRAINTS:]
            uses = [finder.use(FactKind.CONSTRAINT, fact, item.place) for fact in wanted]
            found[item.place] = tuple(use for use in uses if use)
    return found
