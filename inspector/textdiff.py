"""Two-level differences: lines first, then words inside changed lines (ui 3.14).

Changes of white space alone are drawn with glyphs, since they break caches and cannot be seen.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher

from inspector.visible import drawn_spaces

_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
_LINE_LIMIT = 4_000
"""Lines on either side beyond which the middle is shown as removed and added, without matching."""
_WORD_LIMIT_CHARS = 4_000
"""In longer lines no words are marked."""
_ALIKE = 0.35
"""Lines less alike than this were replaced; marking their words would only paint them over."""
CONTEXT_LINES = 2


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of one line."""

    text: str
    changed: bool = False


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line of the comparison, or a fold of equal ones."""

    kind: str
    """`equal`, `removed`, `added` or `fold`."""
    number: int
    """Line number on its side; for a fold, how many lines it hides."""
    pieces: tuple[Piece, ...] = ()


def compare(before: str, after: str) -> tuple[DiffLine, ...]:
    """Compare two texts line by line and fold what is equal."""
    left, right = before.split("\n"), after.split("\n")
    head = _common(left, right)
    tail = _common(left[head:][::-1], right[head:][::-1])
    middle = _middle(left[head : len(left) - tail], right[head : len(right) - tail], head)
    lines: list[DiffLine] = [
        DiffLine("equal", place + 1, (Piece(text),)) for place, text in enumerate(left[:head])
    ]
    lines += middle
    start = len(right) - tail
    lines += [
        DiffLine("equal", start + place + 1, (Piece(text),))
        for place, text in enumerate(right[start:])
    ]
    return _folded(lines)


def _common(left: list[str], right: list[str]) -> int:
    count = 0
    for one, other in zip(left, right, strict=False):
        if one != other:
            break
        count += 1
    return count


def _middle(left: list[str], right: list[str], offset: int) -> list[DiffLine]:
    if len(left) > _LINE_LIMIT or len(right) > _LINE_LIMIT:
        return _replaced(left, right, offset, offset)
    lines: list[DiffLine] = []
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            lines += [
                DiffLine("equal", offset + j1 + place + 1, (Piece(text),))
                for place, text in enumerate(right[j1:j2])
            ]
        else:
            lines += _replaced(left[i1:i2], right[j1:j2], offset + i1, offset + j1)
    return lines


def _replaced(
    left: list[str], right: list[str], left_offset: int, right_offset: int
) -> list[DiffLine]:
    if len(left) == len(right):
        pairs = [_words(one, other) for one, other in zip(left, right, strict=True)]
        return [
            line
            for place, (old, new) in enumerate(pairs)
            for line in (
                DiffLine("removed", left_offset + place + 1, old),
                DiffLine("added", right_offset + place + 1, new),
            )
        ]
    removed = [
        DiffLine("removed", left_offset + place + 1, (Piece(text),))
        for place, text in enumerate(left)
    ]
    added = [
        DiffLine("added", right_offset + place + 1, (Piece(text),))
        for place, text in enumerate(right)
    ]
    return removed + added


def _words(before: str, after: str) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    if len(before) > _WORD_LIMIT_CHARS or len(after) > _WORD_LIMIT_CHARS:
        return (Piece(before),), (Piece(after),)
    left, right = _WORDS.findall(before), _WORDS.findall(after)
    old: list[Piece] = []
    new: list[Piece] = []
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    if matcher.ratio() < _ALIKE:
        return (Piece(before),), (Piece(after),)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        one, other = "".join(left[i1:i2]), "".join(right[j1:j2])
        if tag == "equal":
            old.append(Piece(one))
            new.append(Piece(other))
            continue
        if not one.strip() and not other.strip():
            one, other = drawn_spaces(one), drawn_spaces(other)
        elif one and other and _edges(one) != _edges(other):
            one, other = _drawn_edges(one), _drawn_edges(other)
        if one:
            old.append(Piece(one, True))
        if other:
            new.append(Piece(other, True))
    return tuple(old), tuple(new)


def _edges(text: str) -> tuple[str, str]:
    """The white space at both ends."""
    inner = text.strip()
    return text[: text.index(inner)], text[text.rindex(inner) + len(inner) :]


def _drawn_edges(text: str) -> str:
    if not text.strip():
        return drawn_spaces(text)
    before, after = _edges(text)
    return drawn_spaces(before) + text.strip() + drawn_spaces(after)


def _folded(lines: list[DiffLine]) -> tuple[DiffLine, ...]:
    near = [False] * len(lines)
    for place, line in enumerate(lines):
        if line.kind != "equal":
            low, high = max(0, place - CONTEXT_LINES), place + CONTEXT_LINES + 1
            near[low:high] = [True] * len(near[low:high])
    folded: list[DiffLine] = []
    hidden = 0
    for line, shown in zip(lines, near, strict=True):
        if shown:
            if hidden:
                folded.append(DiffLine("fold", hidden))
                hidden = 0
            folded.append(line)
        else:
            hidden += 1
    if hidden:
        folded.append(DiffLine("fold", hidden))
    return tuple(folded)
