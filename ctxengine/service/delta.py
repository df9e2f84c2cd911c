"""The delta form of assemble: only what changed since a request the caller already has (design 5)."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from ctxengine.engine.request import ModelRequest
from ctxengine.engine.wire.base import WireApi

_LISTS = ("messages", "input", "contents")
"""Where the APIs keep what a longer conversation appends to."""
# Numbers stay as they are spelt: the interpreter refuses to read very long ones.
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str)
_BLANK = " \t\r\n"


@dataclass(frozen=True, slots=True)
class Taken:
    """A request body taken apart, every part as it is spelt there."""

    api: WireApi
    sha256: str
    key: str
    """The member that holds the conversation."""
    messages: tuple[str, ...]
    fields: dict[str, str]
    """The other members."""


def taken_apart(built: ModelRequest) -> Taken | None:
    """The parts of a request; None where its body cannot be rebuilt whole."""
    if not built.body:
        return None
    text = built.body.decode()
    members = dict(_members(text))
    key = next(name for name in _LISTS if name in members)
    sha256 = hashlib.sha256(built.body).hexdigest()
    return Taken(built.renderer.api, sha256, key, tuple(_elements(members.pop(key))), members)


def delta_of(base: Taken | None, new: Taken | None) -> bytes | None:
    """Ready JSON of the difference between two bodies of one API; None when one of them cannot be rebuilt whole.

    `keep` counts messages (input items for the Responses API, contents for Gemini) of the base that stand unchanged at the
    head of the new request, cache markers included. Fields beside the messages are given only where they differ; `removed`
    names those that went.
    """
    if base is None or new is None or base.api is not new.api:
        return None
    pairs = zip(base.messages, new.messages, strict=False)
    shorter = min(len(base.messages), len(new.messages))
    keep = next((place for place, (old, one) in enumerate(pairs) if old != one), shorter)
    fields = [
        f'"keep":{keep}',
        f"{json.dumps(new.key)}:[{','.join(new.messages[keep:])}]",
        *(
            f"{json.dumps(name)}:{raw}"
            for name, raw in new.fields.items()
            if base.fields.get(name) != raw
        ),
        f'"base_sha256":"{base.sha256}"',
        f'"sha256":"{new.sha256}"',
    ]
    removed = sorted(set(base.fields) - set(new.fields))
    if removed:
        fields.append(f'"removed":{json.dumps(removed)}')
    return ("{" + ",".join(fields) + "}").encode()


def _members(text: str) -> list[tuple[str, str]]:
    """Members of an object, each value as it is spelt."""
    return [(name, raw) for name, raw in _spelt(text, named=True)]


def _elements(text: str) -> list[str]:
    """Elements of an array, each as it is spelt."""
    return [raw for _, raw in _spelt(text, named=False)]


def _spelt(text: str, *, named: bool) -> list[tuple[Any, str]]:
    """Parts of an object or array that is known to be valid JSON: the scanner only says where each of them ends."""
    found, at = [], _behind(text, 0) + 1
    while text[(at := _behind(text, at))] not in "]}":
        if text[at] == ",":
            at = _behind(text, at + 1)
        name = None
        if named:
            name, at = _DECODER.raw_decode(text, at)
            at = _behind(text, _behind(text, at) + 1)
        _, end = _DECODER.raw_decode(text, at)
        found.append((name, text[at:end]))
        at = end
    return found


def _behind(text: str, at: int) -> int:
    while text[at] in _BLANK:
        at += 1
    return at
