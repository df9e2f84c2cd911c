"""Cards written into a message: the way of models that call no tools (capacity spec 10).

A fence opens with three backquotes, the word `card` and the semantic type, and holds one JSON object. Where it names no type,
the object's own member `type` does.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from ctxengine.engine.lexeme import is_json_object, parse
from ctxengine.engine.presentations.payload import canonical_payload, payload_sha256

FENCE_WORD = "card"
MAX_FENCES = 12
"""Fences of one message that are read."""

_FENCE = re.compile(
    r"^[ ]{0,3}```[ \t]*"
    + FENCE_WORD
    + r"(?:[ \t:]+(?P<type>[\w.-]{1,100}))?[ \t]*\n(?P<payload>.*?)\n[ ]{0,3}```[ \t]*$",
    re.DOTALL | re.MULTILINE,
)


class Fence(NamedTuple):
    """One fenced card."""

    semantic_type: str
    payload: str
    """Text of a JSON object, as written."""


def fences_in(text: str) -> tuple[Fence, ...]:
    """The fences of a message that hold a JSON object, in order; anything else is plain text."""
    found = []
    for match in _FENCE.finditer(text):
        fence = _read(match)
        if fence is not None:
            found.append(fence)
        if len(found) == MAX_FENCES:
            break
    return tuple(found)


def without_shown(text: str, shown: Collection[str]) -> str:
    """A message without the fences whose cards are ledger entries of their own.

    Args:
        shown: payload digests of the turn's presentations.
    """

    def kept(match: re.Match[str]) -> str:
        fence = _read(match)
        if fence is None or payload_sha256(canonical_payload(parse(fence.payload))) not in shown:
            return match[0]
        return ""

    return _FENCE.sub(kept, text).strip() if shown else text


def _read(match: re.Match[str]) -> Fence | None:
    payload = match["payload"].strip()
    if not is_json_object(payload):
        return None
    named = match["type"]
    if named is None:
        member = parse(payload).get("type")
        named = member.text() if member is not None else None
    return Fence(named, payload) if named else None
