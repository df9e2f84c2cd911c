"""Cursor pages and query parameters. A cursor says where the last page ended; it opens no door."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.http import HttpRequest

from api.answers import array, joined, to_json
from api.problems import Problem
from api.shapes.base import FieldErrors, shown
from api.shapes.scalars import moment_of

DEFAULT_LIMIT = 50
MAX_LIMIT = 200
_MAX_CURSOR_CHARS = 400
_MAX_TEXT_CHARS = 300
_LARGEST = 2**63 - 1

Parser = Callable[[str, str], Any]
"""(parameter name, text) -> value; raises `Problem`."""


class Parameter(NamedTuple):
    """One query parameter of an endpoint."""

    parse: Parser
    note: str
    schema: dict[str, Any]


class Page(NamedTuple):
    """One page of a list."""

    items: list[bytes]
    """Ready JSON objects."""
    next_key: list[Any] | None
    """Sort key of the last one, when there are more."""

    def as_json(self) -> bytes:
        """`{"items": [...], "next_cursor": "..." | null}`."""
        cursor = None if self.next_key is None else cursor_of(self.next_key)
        return joined({"items": array(self.items), "next_cursor": to_json(cursor)})


def parameters_of(request: HttpRequest, known: Mapping[str, Parameter]) -> dict[str, Any]:
    """The query's values by name; only those that were sent.

    Raises:
        Problem: `unknown_parameter` naming them, or `invalid_parameter`.
    """
    unknown = [name for name in request.GET if name not in known]
    if unknown:
        names = ", ".join(shown(name) for name in unknown[:20])
        raise Problem(
            "unknown_parameter",
            f"Unknown query parameters: {names}. Known here: {', '.join(known) or 'none'}.",
            parameters=[shown(name) for name in unknown[:20]],
        )
    values: dict[str, Any] = {}
    for name, parameter in known.items():
        texts = request.GET.getlist(name)
        if len(texts) > 1:
            raise _invalid(name, "it stands more than once.")
        if texts:
            values[name] = parameter.parse(name, texts[0])
    return values


def cursor_of(key: Iterable[Any]) -> str:
    """The cursor for a sort key of numbers and texts."""
    text = json.dumps(list(key), separators=(",", ":"), default=str)
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def cursor(*kinds: type) -> Parameter:
    """The `cursor` parameter of a list whose sort key has these types (int, UUID, datetime)."""
    note = "Where the page before ended: its `next_cursor`."
    return Parameter(lambda _, text: _key_of(text, kinds), note, {"type": "string"})


def limit(default: int = DEFAULT_LIMIT, most: int = MAX_LIMIT) -> Parameter:
    """The `limit` parameter."""
    schema = {"type": "integer", "minimum": 1, "maximum": most, "default": default}
    return Parameter(lambda name, text: _whole(name, text, 1, most), "Entries on a page.", schema)


def seconds(note: str, most: int) -> Parameter:
    """A parameter that holds whole seconds, 0 to `most`."""
    schema = {"type": "integer", "minimum": 0, "maximum": most}
    return Parameter(lambda name, text: _whole(name, text, 0, most), note, schema)


def sequence(note: str) -> Parameter:
    """A parameter that holds a ledger sequence."""
    schema = {"type": "integer", "minimum": 0, "maximum": _LARGEST, "format": "int64"}
    return Parameter(lambda name, text: _whole(name, text, 0, _LARGEST), note, schema)


def flag(note: str) -> Parameter:
    """A parameter that is `1` or `0`."""

    def parse(name: str, text: str) -> bool:
        if text not in {"0", "1"}:
            raise _invalid(name, "send 1 or 0.")
        return text == "1"

    return Parameter(parse, note, {"type": "string", "enum": ["0", "1"], "default": "0"})


RAW = flag("Leave secrets unmasked: needs the scope `operate`, and stands in the audit log.")
"""Of every endpoint that shows stored content."""


def word(note: str, *allowed: str) -> Parameter:
    """A parameter that holds one of a few words, or any short text where none are named."""

    def parse(name: str, text: str) -> str:
        if allowed and text not in allowed:
            raise _invalid(name, f"send one of {', '.join(allowed)}.")
        if len(text) > _MAX_TEXT_CHARS or "\0" in text:
            raise _invalid(name, f"send at most {_MAX_TEXT_CHARS} characters, and no U+0000.")
        # What no UTF-8 can carry cannot stand in the database either.
        return text.encode("utf-8", "replace").decode()

    schema: dict[str, Any] = {"type": "string", "maxLength": _MAX_TEXT_CHARS}
    return Parameter(parse, note, {"type": "string", "enum": list(allowed)} if allowed else schema)


def identifier(note: str) -> Parameter:
    """A parameter that holds a UUID."""

    def parse(name: str, text: str) -> UUID:
        try:
            return UUID(text)
        except ValueError:
            raise _invalid(name, "send a UUID.") from None

    return Parameter(parse, note, {"type": "string", "format": "uuid"})


def moment(note: str) -> Parameter:
    """A parameter that holds a time with its offset."""

    def parse(name: str, text: str) -> datetime:
        try:
            return moment_of(text, name)
        except FieldErrors as error:
            raise _invalid(name, error.faults[0].fault) from None

    return Parameter(parse, note, {"type": "string", "format": "date-time"})


def _key_of(text: str, kinds: tuple[type, ...]) -> list[Any]:
    refusal = Problem("invalid_cursor", "The cursor is not one that this list gave out.")
    if len(text) > _MAX_CURSOR_CHARS or not text.isascii():
        raise refusal
    try:
        padded = text + "=" * (-len(text) % 4)
        found = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        if not isinstance(found, list) or len(found) != len(kinds):
            raise refusal
        return [_part_of(part, kind) for part, kind in zip(found, kinds, strict=True)]
    except (ValueError, binascii.Error, RecursionError):
        raise refusal from None


def _part_of(part: Any, kind: type) -> Any:
    if kind is int:
        if type(part) is not int or not -_LARGEST <= part <= _LARGEST:
            raise ValueError("not a whole number in range")
        return part
    if not isinstance(part, str):
        raise ValueError("not a text")
    if kind is UUID:
        return UUID(part)
    try:
        return moment_of(part.replace(" ", "T"), "cursor")
    except FieldErrors:
        raise ValueError("not a time") from None


def _whole(name: str, text: str, least: int, most: int) -> int:
    usable = text.isascii() and text.isdigit() and len(text) <= 19
    if not usable or not least <= int(text) <= most:
        raise _invalid(name, f"send a whole number from {least} to {most}.")
    return int(text)


def _invalid(name: str, fault: str) -> Problem:
    return Problem("invalid_parameter", f"The query parameter {name}: {fault}", parameter=name)
