"""Small readings of text that several formats share: titles, times, half characters, harness notes."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from ctxengine.engine.content.decode import decode
from ctxengine.engine.importers.transcript import Entry
from ctxengine.engine.items import TextPart
from ctxengine.engine.lexeme import LexemeError, parse

_TITLE_LENGTH = 80
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_EARLIEST, _LATEST = 0, 4_102_444_800
"""Seconds since 1970 that are taken for a time: up to the year 2100."""


def first_line(entry: Entry) -> str:
    """First line of what an entry says that is not blank, cut to the length of a title."""
    for item in decode(entry.format, entry.body).items:
        for part in item.parts:
            if isinstance(part, TextPart) and part.text.strip():
                return shorten(part.text.strip().splitlines()[0])
    return "Untitled session"


def shorten(text: str, length: int = _TITLE_LENGTH) -> str:
    """A text cut to a length, with an ellipsis where something is missing and no half characters."""
    clean = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    clean = " ".join(clean.split())
    return clean if len(clean) <= length else clean[: length - 1].rstrip() + "…"


def has_lone_surrogate(raw: str) -> bool:
    """Whether a JSON text holds half of a surrogate pair, written out or escaped."""
    if not raw.isascii():
        try:
            raw.encode()
        except UnicodeEncodeError:
            return True
    if "\\ud" not in raw and "\\uD" not in raw:
        return False
    if not _SURROGATE_ESCAPE.search(raw):
        return False
    try:
        _texts_in(parse(raw).peek()).encode()
    except UnicodeEncodeError:
        return True
    except (LexemeError, RecursionError):
        return False
    return False


def _texts_in(value: Any) -> str:
    """Every text of a value in a row, names of members among them."""
    if isinstance(value, dict):
        return "".join(key + _texts_in(inner) for key, inner in value.items())
    if isinstance(value, list):
        return "".join(map(_texts_in, value))
    return value if isinstance(value, str) else ""


def json_text(value: Any, *, sort_keys: bool = False) -> str:
    """JSON text of a decoded value, whole numbers of any length among what it holds."""
    try:
        return json.dumps(value, sort_keys=sort_keys)
    except ValueError:
        # The interpreter refuses to write numbers of thousands of digits.
        return _long_text(value, sort_keys)


def _long_text(value: Any, sort_keys: bool) -> str:
    if isinstance(value, dict):
        named = sorted(value.items()) if sort_keys else value.items()
        return (
            "{"
            + ",".join(f"{json.dumps(k)}:{json_text(v, sort_keys=sort_keys)}" for k, v in named)
            + "}"
        )
    if isinstance(value, list):
        return "[" + ",".join(json_text(v, sort_keys=sort_keys) for v in value) + "]"
    return format(Decimal(value), "f")


def time_of(value: Any) -> str | None:
    """A time, if it is ISO 8601 with an offset; None for anything else.

    It stays as the file wrote it, unless its date and its clock are parted by neither a T nor a blank: the parser takes any
    character there, even one that no database keeps.
    """
    if not isinstance(value, str) or len(value) > 40:
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    if moment.tzinfo is None:
        return None
    return value if value[10] in "T " else moment.isoformat()


def time_of_epoch(value: Any, *, per_second: int = 1) -> str | None:
    """ISO 8601 form of a number of seconds (or parts of one) since 1970."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # Asked before it is divided: a whole number may be too large for that.
    if not _EARLIEST * per_second < value < _LATEST * per_second:
        return None
    return datetime.fromtimestamp(value / per_second, UTC).isoformat().replace("+00:00", "Z")
