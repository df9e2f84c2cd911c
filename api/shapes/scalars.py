"""Shapes of single values. Numbers, texts and flags are never taken for one another."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from uuid import UUID

from api.shapes.base import FieldErrors, Schema, Shape
from ctxengine.engine.lexeme import Node, NodeKind

_SAFE_INTEGER = 2**53 - 1
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_SURROGATE = re.compile("[\ud800-\udfff]")
_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST = datetime(9000, 1, 1, tzinfo=UTC)


def expect(node: Node, at: str, kind: NodeKind, what: str) -> None:
    """Refuse a node of another kind.

    Raises:
        FieldErrors: naming what is required and what was found.
    """
    if node.kind is not kind:
        raise FieldErrors.one(at, f"{what} is required, found {node.kind}.")


class Text(Shape[str]):
    """A text that we index: a name, a title, an id. No column can hold U+0000."""

    def __init__(self, **facts: int) -> None:
        """Bounds by their OpenAPI names: `minLength` and `maxLength` together, in characters."""
        self._facts = facts

    def read(self, node: Node, at: str) -> str:
        """The decoded text; raises for U+0000 and for lone surrogates."""
        expect(node, at, NodeKind.STRING, "a string")
        text = _unicode(node, at)
        if "\0" in text:
            raise FieldErrors.one(at, "U+0000 cannot be stored in this field; remove it.")
        least, most = self._facts.get("minLength", 0), self._facts.get("maxLength")
        if len(text) < least or (most is not None and len(text) > most):
            raise FieldErrors.one(
                at, f"{least:,} to {most:,} characters are accepted, found {len(text):,}."
            )
        return text

    def schema(self) -> Schema:
        """A string, with the facts given."""
        return {"type": "string", **self._facts}


class PinnedText(Shape[str]):
    """Configuration that becomes part of a prefix: any character that UTF-8 can carry."""

    def read(self, node: Node, at: str) -> str:
        """The decoded text; raises for lone surrogates."""
        expect(node, at, NodeKind.STRING, "a string")
        return _unicode(node, at)

    def schema(self) -> Schema:
        """A string."""
        return {"type": "string"}


class AnyText(Shape[str]):
    """Content as text: every character is kept, lone surrogates and U+0000 too."""

    def read(self, node: Node, at: str) -> str:
        """The decoded text."""
        expect(node, at, NodeKind.STRING, "a string")
        text: str = node.value()
        return text

    def schema(self) -> Schema:
        """A string."""
        return {"type": "string"}


class Whole(Shape[int]):
    """A whole number that every JSON reader can carry exactly."""

    def __init__(self, **facts: int) -> None:
        """Bounds by their OpenAPI names: `minimum` and `maximum`."""
        self._facts = facts

    def read(self, node: Node, at: str) -> int:
        """The number; `3.0` is refused, since a count is written as one."""
        expect(node, at, NodeKind.NUMBER, "a whole number")
        if not node.raw.removeprefix("-").isdigit():
            raise FieldErrors.one(at, f"a whole number is required, found {node.raw[:40]}.")
        if len(node.raw) > 17 or abs(int(node.raw)) > _SAFE_INTEGER:
            raise FieldErrors.one(at, f"at most {_SAFE_INTEGER:,} either side of zero is accepted.")
        number = int(node.raw)
        least = self._facts.get("minimum", -_SAFE_INTEGER)
        most = self._facts.get("maximum", _SAFE_INTEGER)
        if not least <= number <= most:
            raise FieldErrors.one(at, f"{least:,} to {most:,} is accepted, found {number:,}.")
        return number

    def schema(self) -> Schema:
        """An integer, with the facts given."""
        return {"type": "integer", "format": "int64", **self._facts}


class Number(Shape[float]):
    """A finite number."""

    def read(self, node: Node, at: str) -> float:
        """The number; `NaN`, `Infinity` and what overflows to it are refused."""
        expect(node, at, NodeKind.NUMBER, "a number")
        try:
            number = float(node.raw)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise FieldErrors.one(at, f"a finite number is required, found {node.raw[:40]}.")
        return number

    def schema(self) -> Schema:
        """A number."""
        return {"type": "number"}


class Flag(Shape[bool]):
    """True or false."""

    def read(self, node: Node, at: str) -> bool:
        """The flag."""
        if node.kind not in (NodeKind.TRUE, NodeKind.FALSE):
            raise FieldErrors.one(at, f"true or false is required, found {node.kind}.")
        return node.kind is NodeKind.TRUE

    def schema(self) -> Schema:
        """A boolean."""
        return {"type": "boolean"}


class Identifier(Shape[UUID]):
    """A UUID in its usual form."""

    def read(self, node: Node, at: str) -> UUID:
        """The UUID."""
        expect(node, at, NodeKind.STRING, "a UUID")
        if _UUID.fullmatch(node.value()) is None:
            raise FieldErrors.one(at, "a UUID like 0195a1b2-… is required.")
        return UUID(node.value())

    def schema(self) -> Schema:
        """A string of format `uuid`."""
        return {"type": "string", "format": "uuid"}


class Moment(Shape[datetime]):
    """A point in time with its offset (RFC 3339)."""

    def read(self, node: Node, at: str) -> datetime:
        """The moment; a time without an offset is refused, since it could mean several."""
        expect(node, at, NodeKind.STRING, "a time like 2026-11-29T09:30:00+01:00")
        return moment_of(node.value(), at)

    def schema(self) -> Schema:
        """A string of format `date-time`."""
        return {"type": "string", "format": "date-time"}


def _unicode(node: Node, at: str) -> str:
    text: str = node.value()
    if _SURROGATE.search(text):
        raise FieldErrors.one(at, "a lone surrogate cannot be carried in this field; remove it.")
    return text


def moment_of(text: str, at: str) -> datetime:
    """The moment a text names.

    Raises:
        FieldErrors: no RFC 3339 time with offset, or one outside the years 1970 to 8999.
    """
    try:
        moment = datetime.fromisoformat(text) if len(text) <= 40 and text.isascii() else None
        within = moment is not None and moment.tzinfo and _EARLIEST <= moment < _LATEST
    except (ValueError, OverflowError):
        moment, within = None, False
    if moment is None or not within:
        raise FieldErrors.one(
            at, "a time with offset like 2026-11-29T09:30:00+01:00 is required, from 1970 to 8999."
        )
    return moment
