"""Streams in the binary framing of AWS, as text: one event, one block of server-sent events.

A frame is its length, the length of its headers, a checksum, the headers, the payload and another checksum; numbers are
big-endian. Bedrock names the kind of an event in the header `:event-type`.
"""

from __future__ import annotations

import binascii
import json
from base64 import b64decode
from collections.abc import Iterator

from ctxengine.engine.lexeme import LexemeError, parse

_PRELUDE, _CHECKSUM = 12, 4
_STRING = 7
"""The type of a header whose value is a text."""
_KIND = ":event-type"
_CHUNK = "chunk"
"""Kind of events that wrap the events of the model's own API in base64."""


def is_aws_stream(body: bytes) -> bool:
    """Whether a body begins with such a frame."""
    return body[:2] == b"\0\0" and b":event-type" in body[:256]


def as_event_stream(body: bytes) -> str:
    """The events of a body as server-sent events, each an object with its kind for a key; broken frames end it."""
    return "".join(f"data: {data}\n\n" for data in _events(body))


def _events(body: bytes) -> Iterator[str]:
    start = 0
    while start + _PRELUDE + _CHECKSUM <= len(body):
        size = int.from_bytes(body[start : start + 4], "big")
        headers = start + _PRELUDE + int.from_bytes(body[start + 4 : start + 8], "big")
        end = start + size - _CHECKSUM
        if not start + _PRELUDE <= headers <= end <= len(body):
            return
        kind = _kind(body[start + _PRELUDE : headers])
        told = _told(kind, body[headers:end].decode("utf-8", "replace"))
        if told is not None:
            yield told
        start += size


def _kind(headers: bytes) -> str:
    """Value of the header that names the kind; empty where there is none."""
    at = 0
    while at < len(headers):
        name_end = at + 1 + headers[at]
        if headers[name_end : name_end + 1] != bytes((_STRING,)):
            return ""
        value = name_end + 3
        size = int.from_bytes(headers[name_end + 1 : value], "big")
        if headers[at + 1 : name_end] == _KIND.encode():
            return headers[value : value + size].decode("utf-8", "replace")
        at = value + size
    return ""


def _told(kind: str, payload: str) -> str | None:
    try:
        node = parse(payload)
        if kind != _CHUNK:
            return f"{{{json.dumps(kind)}:{node.raw}}}" if "\n" not in node.raw else None
        packed = node.get("bytes")
        text = packed.text() if packed is not None else None
        return parse(b64decode(text or "").decode("utf-8", "replace")).raw
    except (LexemeError, ValueError, binascii.Error):
        return None
