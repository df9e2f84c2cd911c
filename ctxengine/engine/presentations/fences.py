"""Cards written into a message: the way of models that call no tools (capacity spec 10).

A fence opens with three backquotes, the word `card` and the semantic type, and holds one JSON object. Where it names no type,
the object's own member `type` does. A message is looked at line by line, each line once.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

from ctxengine.engine.lexeme import is_json_object, parse
from ctxengine.engine.presentations.payload import canonical_payload, payload_sha256

FENCE_WORD = "card"
MAX_FENCES = 12
"""Fences of one response that are looked at as cards; the log says how many stand behind them."""

_OPENS = re.compile(
    r"[ ]{0,3}```[ \t]*" + FENCE_WORD + r"(?:[ \t:]+(?P<type>[\w.-]{1,100}))?[ \t]*"
)
_CLOSES = re.compile(r"[ ]{0,3}```[ \t]*")


class Fence(NamedTuple):
    """One fenced card."""

    semantic_type: str
    payload: str
    """Text of a JSON object, as written."""


class _Block(NamedTuple):
    """Lines between an opening and the next closing line, whatever they hold."""

    start: int
    """Where the opening line starts (characters)."""
    end: int
    """Where the closing line ends, its line feed not included."""
    type: str | None
    payload: str


def fences_in(text: str) -> tuple[Fence, ...]:
    """The fences of a message that hold a JSON object, in order; anything else is plain text."""
    return tuple(fence for block in _blocks(text) if (fence := _read(block)) is not None)


def without_shown(text: str, shown: Collection[str]) -> str:
    """A message without the fences whose cards are ledger entries of their own.

    Args:
        shown: payload digests of the turn's presentations.
    """
    if not shown:
        return text
    kept, at = [], 0
    for block in _blocks(text):
        fence = _read(block)
        if fence is None or payload_sha256(canonical_payload(parse(fence.payload))) not in shown:
            continue
        kept.append(text[at : block.start])
        at = block.end
    return "".join([*kept, text[at:]]).strip()


def payloads_in(text: str) -> tuple[str, ...]:
    """Payload digests of all fenced cards of a message, in order."""
    return tuple(
        payload_sha256(canonical_payload(parse(fence.payload)))
        for block in _blocks(text)
        if (fence := _read(block)) is not None
    )


def without_repeats(text: str, shown: set[str]) -> str:
    """A message with each card once: without fences whose payload was shown before them, in it or elsewhere.

    Args:
        shown: payload digests shown so far; those of the fences that stay are added.
    """
    kept, at = [], 0
    for block in _blocks(text):
        fence = _read(block)
        if fence is None:
            continue
        digest = payload_sha256(canonical_payload(parse(fence.payload)))
        if digest in shown:
            kept.append(text[at : block.start])
            at = block.end
        shown.add(digest)
    return "".join([*kept, text[at:]]).strip() if kept else text


def _blocks(text: str) -> Iterator[_Block]:
    """Every opening line with the first closing line behind it, at least one line between them."""
    opened: tuple[int, int, str | None] | None = None
    """Start of the opening line, start of the line behind it, and the type it names."""
    start = 0
    for line in text.split("\n"):
        end = start + len(line)
        if opened is None:
            found = _OPENS.fullmatch(line)
            opened = (start, end + 1, found["type"]) if found is not None else None
        elif start > opened[1] and _CLOSES.fullmatch(line):
            yield _Block(opened[0], end, opened[2], text[opened[1] : start - 1])
            opened = None
        start = end + 1


def _read(block: _Block) -> Fence | None:
    payload = block.payload.strip()
    if not is_json_object(payload):
        return None
    named = block.type
    if named is None:
        member = parse(payload).get("type")
        named = member.text() if member is not None else None
    return Fence(named, payload) if named else None
