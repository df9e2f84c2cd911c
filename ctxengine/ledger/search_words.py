"""How a text becomes words, for the search index and for what is asked of it: both sides must cut alike.

Postgres' parser keeps paths, versions and addresses as one word each, so that `main.py` would never be found in `src/main.py`.
Everything that is neither letter nor digit therefore parts words, here, before Postgres sees the text; scripts that write
without blanks are parted character by character. A word that was parted so is asked for as a phrase.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from uuid import UUID

_PARTS = re.compile(r"[\W_]+")
_UNSPACED = re.compile("([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff])")
_TERM = re.compile(r'(?P<minus>-?)(?:"(?P<quoted>[^"]*)"|(?P<plain>\S+))')


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is looked for in texts."""

    asked: str
    """In the form that `websearch_to_tsquery` reads; empty where no word is left."""
    phrases: tuple[tuple[str, ...], ...]
    """The words of every term that must occur, to mark them in what was found."""


def spaced(text: str) -> str:
    """The text's words in small letters, a blank between each two."""
    return " ".join(_PARTS.sub(" ", _UNSPACED.sub(r" \1 ", text.lower())).split())


def tenant_word(tenant_id: UUID) -> str:
    """The word that every text of a tenant holds, so that the index itself keeps tenants apart."""
    return f"tenant{tenant_id.hex}"


def wanted(text: str) -> Wanted:
    """Read words, "quoted phrases" and -left-out ones."""
    asked: list[str] = []
    phrases: list[tuple[str, ...]] = []
    for match in _TERM.finditer(text):
        words = spaced(match["quoted"] if match["quoted"] is not None else match["plain"])
        if not words:
            continue
        asked.append(f'{match["minus"]}"{words}"')
        if not match["minus"]:
            phrases.append(tuple(words.split()))
    return Wanted(" ".join(asked), tuple(phrases))


def places(text: str, phrases: tuple[tuple[str, ...], ...]) -> list[tuple[int, int]]:
    """Where the phrases stand in a text, as (start, end) in characters, in order and without overlap."""
    if not phrases:
        return []
    pattern = "|".join(
        r"(?<![^\W_])" + r"[\W_]*".join(map(re.escape, words)) + r"(?![^\W_])"
        for words in sorted(phrases, key=len, reverse=True)
    )
    return [match.span() for match in re.finditer(pattern, text, re.IGNORECASE)]
