"""Canonical JSON and digests for values the engine itself writes (design 4).

The form is RFC 8785 with one extension: whole numbers are written exactly, whatever their size.
It is never applied to content that arrived from outside; that stays the text it was (see `lexeme`).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from json.encoder import encode_basestring
from typing import Any

from ctxengine.engine.errors import EngineError

_PLAIN_INTEGER_BITS = 2000
"""Below this size `str(int)` works under every legal setting of the interpreter's digit limit."""
_CHUNK_DIGITS = 600


class CanonicalError(EngineError, ValueError):
    """A value has no canonical JSON form; the message says which value and what to do."""

    code = "not_canonical"


def canonical_text(value: object) -> str:
    """Canonical JSON of dicts, lists, tuples, sets, strings, numbers, booleans and None.

    Object keys and the members of sets are ordered by UTF-16 code units, lists keep their order.

    Raises:
        CanonicalError: a non-finite float, a lone surrogate, a key that is not a string, another
            type, or nesting beyond the interpreter's stack.
    """
    return _checked(value)[0]


def canonical_bytes(value: object) -> bytes:
    """`canonical_text` as UTF-8; raises `CanonicalError` for the same reasons."""
    return _checked(value)[1]


def sha256_hex(*chunks: bytes) -> str:
    """SHA-256 of the chunks joined, as 64 hex digits. Chunk borders leave no trace in it."""
    state = hashlib.sha256()
    for chunk in chunks:
        state.update(chunk)
    return state.hexdigest()


def digest_of(value: object) -> str:
    """SHA-256 (64 hex digits) of a value's canonical bytes; raises as `canonical_text` does."""
    return hashlib.sha256(canonical_bytes(value)).hexdigest()


def _checked(value: object) -> tuple[str, bytes]:
    pieces: list[str] = []
    try:
        _write(value, pieces.append)
    except RecursionError:
        raise CanonicalError(
            "The value is nested too deeply, or contains itself, and has no canonical form; "
            "flatten it."
        ) from None
    text = "".join(pieces)
    try:
        return text, text.encode()
    except UnicodeEncodeError as error:
        raise CanonicalError(
            f"A string holds the lone surrogate U+{ord(text[error.start]):04X}, "
            "which UTF-8 cannot carry; keep such content as raw text, or replace it first."
        ) from None


def _write(value: object, out: Any) -> None:
    if isinstance(value, str):
        out(encode_basestring(value))
    elif value is None:
        out("null")
    elif isinstance(value, bool):
        out("true" if value else "false")
    elif isinstance(value, int):
        out(_integer_text(int(value)))
    elif isinstance(value, float):
        out(_float_text(value))
    elif isinstance(value, Mapping):
        _write_object(value, out)
    elif isinstance(value, (list, tuple)):
        _write_array(value, out)
    elif isinstance(value, AbstractSet):
        _write_set(value, out)
    else:
        raise CanonicalError(
            f"A value of type {type(value).__name__} has no canonical JSON form; "
            "pass dicts, lists, sets, strings, numbers, booleans or None."
        )


def _write_object(value: Mapping[Any, object], out: Any) -> None:
    separator = "{"
    for key in _ordered_keys(value):
        out(separator)
        out(encode_basestring(key))
        out(":")
        _write(value[key], out)
        separator = ","
    out("}" if separator == "," else "{}")


def _write_array(value: list[object] | tuple[object, ...], out: Any) -> None:
    separator = "["
    for member in value:
        out(separator)
        _write(member, out)
        separator = ","
    out("]" if separator == "," else "[]")


def _write_set(value: AbstractSet[object], out: Any) -> None:
    members: list[str] = []
    for member in value:
        pieces: list[str] = []
        _write(member, pieces.append)
        members.append("".join(pieces))
    members.sort(key=_utf16_order)
    out("[" + ",".join(members) + "]")


def _ordered_keys(value: Mapping[Any, object]) -> list[str]:
    for key in value:
        if not isinstance(key, str):
            raise CanonicalError(
                f"An object key must be a string, not {type(key).__name__} ({key!r:.40}); "
                "convert it first."
            )
    keys: list[str] = list(value)
    # Code point order and UTF-16 order agree while no key leaves the ASCII range.
    if all(map(str.isascii, keys)):
        keys.sort()
    else:
        keys.sort(key=_utf16_order)
    return keys


def _utf16_order(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")


def _integer_text(value: int) -> str:
    if value.bit_length() <= _PLAIN_INTEGER_BITS:
        return str(value)
    sign, rest = ("-", -value) if value < 0 else ("", value)
    # Upper bound of the digit count: log10(2) is below 0.30103.
    digits = rest.bit_length() * 30103 // 100000 + 1
    return sign + _digits(rest, digits).lstrip("0")


def _digits(value: int, width: int) -> str:
    """Digits of a non-negative number, zero-padded, in pieces below the interpreter's limit."""
    if width <= _CHUNK_DIGITS:
        return str(value).zfill(width)
    low_width = width // 2
    high, low = divmod(value, 10**low_width)
    return _digits(high, width - low_width) + _digits(low, low_width)


def _float_text(value: float) -> str:
    if not math.isfinite(value):
        raise CanonicalError(
            f"The number {value!r} is not finite and JSON cannot carry it; "
            "use null or a string instead."
        )
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = repr(abs(float(value))).partition("e")
    whole, _, fraction = mantissa.partition(".")
    significant = (whole + fraction).lstrip("0")
    # `point` is where the decimal point stands, counted from the first significant digit.
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(significant))
    significant = significant.rstrip("0")
    return sign + _ecmascript_number(significant, point)


def _ecmascript_number(digits: str, point: int) -> str:
    """Lay out digits as ECMAScript's Number-to-string does."""
    count = len(digits)
    if count <= point <= 21:
        return digits + "0" * (point - count)
    if 0 < point <= 21:
        return f"{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return "0." + "0" * -point + digits
    fraction = f".{digits[1:]}" if count > 1 else ""
    return f"{digits[0]}{fraction}e{point - 1:+d}"
