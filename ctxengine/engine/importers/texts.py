"""Small readings of text that several formats share: titles, times, half characters, harness notes."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

from ctxengine.engine.content.decode import decode
from ctxengine.engine.importers.transcript import Entry
from ctxengine.engine.items import TextPart

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
        json.dumps(json.loads(raw), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    except (ValueError, RecursionError):
        return False
    return False


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
    seconds = value / per_second
    if not _EARLIEST < seconds < _LATEST:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
