"""Both ends of a text in whole lines, with one line between them that says how to read the rest (capacity spec 3)."""

from __future__ import annotations

from itertools import accumulate
from typing import NamedTuple

from ctxengine.engine.evidence.window import LineRange
from ctxengine.engine.trust.truncation import truncate_text

LONG_LINE_CHARS = 2_000
"""Inside a window a longer line shows its start, unless there are so few lines that each may show more (characters)."""

_NOTE_CHARS = 200
_HEAD_PARTS, _ALL_PARTS = 2, 3


class Ends(NamedTuple):
    """A text within a size."""

    text: str
    omitted: LineRange | None
    """Lines that are not shown at all."""
    omitted_chars: int
    """Characters of them."""
    cut_lines: int
    """Lines of which only the start is shown."""

    @property
    def whole(self) -> bool:
        """Whether nothing is left out."""
        return self.omitted is None and not self.cut_lines


def both_ends(text: str, max_chars: int, *, reference: str, first_line: int = 1) -> Ends:
    """The text where it fits; else its first and last whole lines.

    Args:
        max_chars: size of the window, its notes not counted (characters).
        reference: the arguments of `recall` that give the text back, for example `id "12.0"`.
        first_line: what the text's first line is called in what `reference` names, where it is a part of that.
    """
    if len(text) <= max_chars:
        return Ends(text, None, 0, 0)
    lines = text.split("\n")
    longest = max(LONG_LINE_CHARS, max_chars // len(lines) - _NOTE_CHARS)
    offsets = [0, *accumulate(len(line) + 1 for line in lines)]
    shown = _Lines(lines, longest, reference, first_line)
    head = _fitting(shown, range(len(lines)), max_chars * _HEAD_PARTS // _ALL_PARTS)
    behind = range(len(lines) - 1, head - 1, -1)
    tail = len(lines) - _fitting(shown, behind, max_chars - max_chars * _HEAD_PARTS // _ALL_PARTS)
    parts = [shown.line(place) for place in range(head)]
    omitted, chars = None, 0
    if head < tail:
        omitted = LineRange(first_line + head, first_line + tail - 1)
        chars = offsets[tail] - offsets[head]
        parts.append(_between(omitted, chars, reference))
    parts += [shown.line(place) for place in range(tail, len(lines))]
    cut = sum(shown.is_cut(place) for place in (*range(head), *range(tail, len(lines))))
    return Ends("\n".join(parts), omitted, chars, cut)


class _Lines:
    """Lines as a window shows them."""

    def __init__(self, lines: list[str], longest: int, reference: str, first_line: int) -> None:
        self._lines = lines
        self._longest = longest
        self._reference = reference
        self._first = first_line

    def is_cut(self, place: int) -> bool:
        """Whether only the start of a line is shown."""
        return len(self._lines[place]) > self._longest

    def line(self, place: int) -> str:
        """A line, or its start with a note of how it goes on."""
        line = self._lines[place]
        if not self.is_cut(place):
            return line
        start = truncate_text(line, self._longest)
        number = self._first + place
        return (
            f"{start} [... the line goes on for {len(line) - len(start):,} characters; recall them with "
            f'{self._reference}, lines "{number}" and chars "{len(start) + 1}-{len(line)}" ...]'
        )

    def size(self, place: int) -> int:
        """What a line takes of the window (characters)."""
        return min(len(self._lines[place]), self._longest) + 1


def _fitting(lines: _Lines, places: range, room: int) -> int:
    """How many lines fit, in this order; the first one always does where it comes first of all."""
    count = 0
    for place in places:
        room -= lines.size(place)
        if room < 0 and not (count == 0 and place == 0):
            break
        count += 1
    return count


def _between(omitted: LineRange, chars: int, reference: str) -> str:
    which = f"{omitted.first}-{omitted.last}"
    return f'[... lines {which} ({chars:,} characters) are not shown; recall them with {reference} and lines "{which}" ...]'
