"""Windows: a stretch of whole lines of a text, within a size (capacity spec; field note 26)."""

from __future__ import annotations

import re
from typing import NamedTuple

from ctxengine.engine.trust.truncation import truncate_text

_RANGE = re.compile(r"\s*(\d{1,9})\s*(?:-\s*(\d{1,9}))?\s*")


class LineRange(NamedTuple):
    """Lines from `first` to `last`, both counted from 1 and both included."""

    first: int
    last: int


class Window(NamedTuple):
    """A stretch of a text."""

    text: str
    lines: LineRange
    total_lines: int
    cut_line: bool
    """Whether the only line shown had to be cut because it alone is over the size."""

    @property
    def whole(self) -> bool:
        """Whether nothing is left out."""
        return self.lines == (1, self.total_lines) and not self.cut_line


def parse_range(text: str) -> LineRange | None:
    """Read `5` or `5-80`; None when it is neither or runs backwards."""
    match = _RANGE.fullmatch(text)
    if match is None:
        return None
    first = int(match[1])
    last = int(match[2]) if match[2] else first
    return LineRange(first, last) if 1 <= first <= last else None


def window(text: str, wanted: LineRange | None, max_chars: int) -> Window:
    """Whole lines of `text` within `wanted`, as many as fit into `max_chars` characters, at least one."""
    lines = text.split("\n")
    first = min(wanted.first, len(lines)) if wanted else 1
    last = min(wanted.last, len(lines)) if wanted else len(lines)
    shown: list[str] = []
    room = max_chars
    for line in lines[first - 1 : last]:
        if len(line) > room and shown:
            break
        shown.append(line)
        room -= len(line) + 1
    only = shown[0] if len(shown) == 1 else ""
    cut = len(only) > max_chars
    body = truncate_text(only, max_chars) if cut else "\n".join(shown)
    return Window(body, LineRange(first, first + len(shown) - 1), len(lines), cut)
