"""What comes in and what goes out, free of sockets: calls, answers, and the two ways to stream."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

SCRIPTED_HEADER = "x-strict-provider"
"""Stands on every answer, so that nobody takes one for a model's."""

PIECE_CHARS = 24
"""Characters of text in one streamed event."""


@dataclass(frozen=True, slots=True)
class Call:
    """One HTTP request."""

    method: str
    path: str
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP response, whole or as a list of events."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    events: tuple[bytes, ...] | None = None
    """Sent one by one when it is not None; `body` is then unused."""
    stall_seconds: float = 0.0
    """How long nothing is sent, the head included."""
    cut_after_events: int | None = None
    """Events after which the connection breaks off; a whole body breaks off in its middle."""
    begun: Callable[[], None] | None = None
    """Called when the first byte goes out: from then on the request's cache entries can be read."""


def dump(value: object) -> bytes:
    """Compact JSON bytes. Half of a surrogate pair is escaped, so this never fails."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode()


def json_answer(value: object, status: int = 200, **headers: str) -> Answer:
    """A whole JSON answer."""
    return Answer(status=status, body=dump(value), headers=headers)


def named_event(data: Json) -> bytes:
    """A server-sent event that carries its type as its name, too."""
    return b"event: " + str(data["type"]).encode() + b"\ndata: " + dump(data) + b"\n\n"


def plain_event(data: object) -> bytes:
    """A server-sent event without a name."""
    return b"data: " + dump(data) + b"\n\n"


def pieces(text: str) -> list[str]:
    """A text in the pieces in which it is streamed; one empty piece for an empty text."""
    cuts = range(0, len(text), PIECE_CHARS)
    return [text[start : start + PIECE_CHARS] for start in cuts] or [""]


def objects(value: object) -> list[Json]:
    """The objects of a list; nothing for anything that is no list."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def text_of(value: object) -> str:
    """A string; empty when it is anything else."""
    return value if isinstance(value, str) else ""


def object_of(value: object) -> Json:
    """An object; empty when it is anything else."""
    return value if isinstance(value, dict) else {}
