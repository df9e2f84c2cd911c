"""What changed between two request bodies, part by part, then line by line and word by word."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher

from inspector.jsonview import JsonPart, pretty_text
from inspector.textdiff import DiffLine, compare

_PART_LIMIT = 600
"""Changed parts beyond which the middle is listed without matching."""
_TEXT_LIMIT_BYTES = 60_000
"""A part larger than this is listed with its size instead of its lines."""


@dataclass(frozen=True, slots=True)
class PartChange:
    """One part that differs, or a run of equal ones."""

    kind: str
    """`equal`, `changed`, `added` or `removed`."""
    count: int = 1
    """Parts in it: more than one only for `equal`."""
    path: str = ""
    caption: str = ""
    length: int = 0
    """Bytes of the newer side (the older for `removed`)."""
    was: int = 0
    """Bytes before, for `changed`."""
    lines: tuple[DiffLine, ...] = ()
    """Line differences; empty when the part is too large to compare here."""


def changes(before: tuple[JsonPart, ...], after: tuple[JsonPart, ...]) -> tuple[PartChange, ...]:
    """Compare two bodies that were cut into parts."""
    head = 0
    while head < min(len(before), len(after)) and _same(before[head], after[head]):
        head += 1
    tail = 0
    while tail < min(len(before), len(after)) - head and _same(before[-1 - tail], after[-1 - tail]):
        tail += 1
    found = [PartChange("equal", head)] if head else []
    found += _middle(before[head : len(before) - tail], after[head : len(after) - tail])
    if tail:
        found.append(PartChange("equal", tail))
    return tuple(found)


def _same(one: JsonPart, other: JsonPart) -> bool:
    return one.raw == other.raw and _family(one) == _family(other)


def _family(part: JsonPart) -> str:
    return part.path.partition(".")[0]


def _middle(before: tuple[JsonPart, ...], after: tuple[JsonPart, ...]) -> list[PartChange]:
    if len(before) > _PART_LIMIT or len(after) > _PART_LIMIT:
        return _unmatched(before, "removed") + _unmatched(after, "added")
    found: list[PartChange] = []
    left = [(_family(part), part.raw) for part in before]
    right = [(_family(part), part.raw) for part in after]
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if tag == "equal":
            found.append(PartChange("equal", i2 - i1))
        else:
            found += _paired(before[i1:i2], after[j1:j2])
    return found


def _paired(before: tuple[JsonPart, ...], after: tuple[JsonPart, ...]) -> list[PartChange]:
    """Parts of one family in the same place are one changed part; what is over was added or removed."""
    found: list[PartChange] = []
    pairs = min(len(before), len(after))
    for old, new in zip(before[:pairs], after[:pairs], strict=True):
        if _family(old) == _family(new):
            found.append(_changed(old, new))
        else:
            found += [*_unmatched((old,), "removed"), *_unmatched((new,), "added")]
    return found + _unmatched(before[pairs:], "removed") + _unmatched(after[pairs:], "added")


def _changed(old: JsonPart, new: JsonPart) -> PartChange:
    small = max(old.length, new.length) <= _TEXT_LIMIT_BYTES
    lines = compare(pretty_text(old.raw), pretty_text(new.raw)) if small else ()
    return PartChange("changed", 1, new.path, new.caption, new.length, old.length, lines)


def _unmatched(parts: tuple[JsonPart, ...], kind: str) -> list[PartChange]:
    return [PartChange(kind, 1, part.path, part.caption, part.length) for part in parts]
