"""Answers as bytes: small parts are written once, ready JSON is joined and never written again."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any
from uuid import UUID

from django.http import HttpResponse

JSON_TYPE = "application/json"


def to_json(value: object) -> bytes:
    """Compact UTF-8 JSON of plain data, with sorted keys below the top.

    Sorting makes an answer the same whether its parts came fresh from a use case or back from
    jsonb. Dates are ISO 8601 in UTC. A text with a lone surrogate is written with escapes.
    """
    if is_dataclass(value) and not isinstance(value, type):
        value = _fields_of(value)
    if isinstance(value, dict):
        return joined({str(key): _written(member) for key, member in value.items()})
    return _written(value)


def stored_json(value: object) -> bytes:
    """The same with sorted keys at the top too, for parts that jsonb gives back in another order."""
    return _written(value)


def joined(members: dict[str, bytes]) -> bytes:
    """A JSON object of members that are JSON bytes already, in the given order."""
    pieces: list[bytes] = []
    separator = b"{"
    for name, body in members.items():
        pieces += (separator, _written(name), b":", body)
        separator = b","
    pieces.append(b"}" if members else b"{}")
    return b"".join(pieces)


def with_members(body: bytes, members: dict[str, bytes]) -> bytes:
    """A non-empty JSON object of ours with more members at its end."""
    if not members:
        return body
    return body[:-1] + b"," + joined(members)[1:]


def array(elements: list[bytes]) -> bytes:
    """A JSON array of elements that are JSON bytes already."""
    return b"[" + b",".join(elements) + b"]"


def json_response(body: bytes, status: int = 200) -> HttpResponse:
    """Ready JSON as an answer that no shared cache may keep."""
    response = HttpResponse(body, status=status, content_type=JSON_TYPE)
    response["Cache-Control"] = "no-store"
    return response


def _fields_of(value: Any) -> dict[str, Any]:
    # An underscore at the end only keeps a name clear of Python's own words.
    return {field.name.rstrip("_"): getattr(value, field.name) for field in fields(value)}


def _written(value: object) -> bytes:
    try:
        return _dump(value, ascii_only=False).encode()
    except UnicodeEncodeError:
        return _dump(value, ascii_only=True).encode()


def _dump(value: object, *, ascii_only: bool) -> str:
    return json.dumps(
        value,
        ensure_ascii=ascii_only,
        allow_nan=False,
        sort_keys=True,
        separators=(",", ":"),
        default=_plain,
    )


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        return _fields_of(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    raise TypeError(f"An answer cannot carry a value of type {type(value).__name__}.")
