"""Labelled questions about one old turn each, made from the turns' own facts: what the share of right recalls is measured on.

A fact is a path, an identifier, a number or a quoted string that stands in the call arguments or the answers of exactly one
turn of a session and nowhere else in it: no other turn's words, calls, answers or results hold it, nor does its own directive.
That turn is the label. The question is a fixed frame around the fact; it shares no further word with the turn on purpose. Facts
are asked for

- `exact`: as they stand,
- `spoken`: as people say them (no folders, no ending, identifiers in words, numbers grouped otherwise),
- `inflected`: two words of one sentence of an answer that no other turn holds in any form, each in another form than there,

and two kinds need no fact: `back` refers to the turn before with small words alone; `reuse` is a later directive of the
transcript itself that names facts of exactly one earlier turn. Which facts and frames are taken follows from a digest of their
text, so that the set is the same on every run and nobody has picked it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import islice, pairwise
from typing import NamedTuple

from ctxengine.engine.compaction.extract import file_names_in, paths_in, quoted_in
from ctxengine.engine.compaction.source import argument_texts
from ctxengine.engine.derive import text_of_item
from ctxengine.engine.items import ItemKind
from ctxengine.engine.turns.turn import Turn

FRAMES = (
    "What did we learn about {}?",
    "Please look at {} once more, I am not sure about that part.",
    "Where did {} come from?",
    "Is {} still right after the latest changes?",
    "Somebody asked me about {} today. What should I tell them?",
    "Write one line for the changelog about {}.",
)
BACK = (
    "Do that again.",
    "And the second one?",
    "Why is it so slow?",
    "Can you explain that in other words?",
    "Undo it, please.",
    "Now the same for the other one.",
)
KINDS = ("exact", "spoken", "inflected", "back", "reuse")

_IDENTIFIER = re.compile(
    r"\b[A-Za-z_][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+\b|\b[a-z]+(?:[A-Z][a-z0-9]+)+\b"
)
_NUMBER = re.compile(r"(?<![\w.,-])\d{4,9}(?![\w.,-]\d|\w)")
_WORD = re.compile(r"\b[a-z]{7,16}\b")
_ROOT_CHARS = 5
_PIECES = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_MIN_TURNS = 5
_PER_KIND_AND_TURN = 3
_SENTENCE = re.compile(r"[^.!?\n]{20,400}")


class Question(NamedTuple):
    """A new directive, the turns before it, and the one of them it is about."""

    kind: str
    text: str
    turn: int
    closed: int
    """Turns 1 to this one are closed when it is asked."""
    fact: str


def questions_of(turns: Sequence[Turn]) -> list[Question]:
    """The labelled questions of one session; none for a short one."""
    if len(turns) < _MIN_TURNS:
        return []
    texts = [_Texts(turn) for turn in turns]
    return [*_about_facts(texts), *_back(turns), *_reused(texts)]


class _Texts:
    """The texts of one turn."""

    def __init__(self, turn: Turn) -> None:
        self.number = turn.number
        self.asked = "\n".join(text_of_item(item) for item in turn.directives)
        self.answers = [
            text_of_item(item) for item in turn.items if item.kind is ItemKind.ASSISTANT_MESSAGE
        ]
        self.arguments = [
            text
            for item in turn.items
            if item.kind is ItemKind.TOOL_CALL
            for _, text in argument_texts(item.arguments)
        ]
        calls = [i.arguments or "" for i in turn.items if i.kind is ItemKind.TOOL_CALL]
        said = [text_of_item(item) for item in turn.items]
        self.all = "\n".join([*said, *calls, *self.arguments]).casefold()
        self.asked_words = set(_words(self.asked))


def _about_facts(texts: Sequence[_Texts]) -> Iterator[Question]:
    closed = len(texts)
    for text in texts[:-1]:
        makers: Mapping[str, Callable[[], Iterable[tuple[str, str]]]] = {
            "exact": lambda t=text: ((fact, fact) for fact in _facts(t)),  # type: ignore[misc]
            "spoken": lambda t=text: (  # type: ignore[misc]
                (fact, said) for fact in _facts(t) if (said := _spoken(fact)) and said != fact
            ),
            "inflected": lambda t=text: _inflected(t, texts),  # type: ignore[misc]
        }
        for kind, make in makers.items():
            pairs = sorted(make(), key=_by_digest)
            found = (pair for pair in pairs if _is_only_in(text, texts, *pair))
            for fact, said in islice(found, _PER_KIND_AND_TURN):
                yield Question(kind, _framed(said), text.number, closed, fact)


def _back(turns: Sequence[Turn]) -> Iterator[Question]:
    for number in range(2, len(turns) + 1, 3):
        phrase = BACK[_roll(f"{turns[0].first}.{number}.{len(turns)}") % len(BACK)]
        yield Question("back", phrase, number, number, "")


def _reused(texts: Sequence[_Texts]) -> Iterator[Question]:
    for place, text in enumerate(texts):
        if place < 3 or not text.asked or len(text.asked) > 4_000:
            continue
        votes: Counter[int] = Counter()
        for fact in _facts_in([text.asked]):
            holders = [other.number for other in texts[:place] if fact.casefold() in other.all]
            if len(holders) == 1 and holders[0] < text.number - 1:
                votes[holders[0]] += 1
        ranked = votes.most_common(2)
        if ranked and (len(ranked) == 1 or ranked[0][1] > ranked[1][1]):
            yield Question("reuse", text.asked, ranked[0][0], place, "")


def _facts(text: _Texts) -> set[str]:
    return _facts_in([*text.arguments, *text.answers])


def _facts_in(texts: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for text in texts:
        shown = text[:20_000]
        found |= {*paths_in(shown), *file_names_in(shown), *_IDENTIFIER.findall(shown)}
        found |= {quote for quote in quoted_in(shown) if len(_words(quote)) >= 2}
        found |= set(_NUMBER.findall(shown))
    return {fact for fact in found if 4 <= len(fact) <= 80}


def _is_only_in(text: _Texts, texts: Sequence[_Texts], fact: str, said: str) -> bool:
    """Whether only this turn holds the fact, in either form, and its directive says none of it."""
    known = set(_words(fact)) | set(_words(said))
    if known & text.asked_words:
        return False
    shapes = {fact.casefold(), said.casefold()}
    return not any(
        shape in other.all for other in texts if other.number != text.number for shape in shapes
    )


def _spoken(fact: str) -> str:
    """The fact as somebody would say it; empty where that is no other form."""
    if fact.isdigit():
        return f"{int(fact):,}"
    last = fact.rstrip("/").rsplit("/", 1)[-1]
    stem = last.rsplit(".", 1)[0] if re.fullmatch(r".+\.[A-Za-z][A-Za-z0-9]{0,4}", last) else last
    words = [piece.lower() for piece in _PIECES.findall(stem)]
    return " ".join(words) if len(words) >= 2 or len(stem) >= 6 else ""


def _inflected(text: _Texts, texts: Sequence[_Texts]) -> Iterator[tuple[str, str]]:
    """Pairs of words of one sentence of the answers that only this turn holds, each in another form."""
    others = "\n".join(other.all for other in texts if other is not text)
    for answer in text.answers:
        for sentence in _SENTENCE.findall(answer[:20_000]):
            words = sorted(
                {
                    word
                    for word in _WORD.findall(sentence)
                    if _other_form(word)
                    and (root := _root(word)) not in others
                    and root not in text.asked.casefold()
                },
                key=_roll,
            )
            for one, other in pairwise(words):
                if _root(one) != _root(other):
                    yield f"{one} {other}", f"{_other_form(one)} and {_other_form(other)}"


def _root(word: str) -> str:
    return word[: max(_ROOT_CHARS, len(word) - 4)]


def _other_form(word: str) -> str:
    """Another form of a word that has one by its ending; empty for other words."""
    if word.endswith("ing"):
        return f"{word[:-3]}ed"
    if word.endswith("ed") and not word.endswith("eed"):
        return f"{word[:-2]}ing"
    if word.endswith("s") and word[-2] not in "siu":
        return word[:-1]
    return ""


def _framed(said: str) -> str:
    return FRAMES[_roll(said) % len(FRAMES)].format(said)


def _words(text: str) -> list[str]:
    return [word.casefold() for word in re.findall(r"[^\W_]{3,}", text)]


def _by_digest(pair: tuple[str, str]) -> int:
    return _roll("\n".join(pair))


def _roll(text: str) -> int:
    return int.from_bytes(sha256(text.encode("utf-8", "surrogatepass")).digest()[:6])
