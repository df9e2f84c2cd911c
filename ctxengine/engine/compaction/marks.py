"""Units as an operator's acts want them shown: pinned whole, folded to pointers, single items excluded (design 8).

A marked unit is a unit again, with its tokens counted anew, so that everything behind it works as for any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ctxengine.engine.compaction.acts import Marks
from ctxengine.engine.compaction.elision import KIND_NAMES
from ctxengine.engine.evidence.pointer import pointer_text
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import Item, ItemKind, TextPart, Unit, unit_of
from ctxengine.engine.ports import TokenCounter
from ctxengine.engine.trust.levels import Trust

PROMOTED_TEXT = (
    "[pinned] Kept whole by an operator, from earlier in this conversation; it is not new."
)
"""Opens what stands between history and the directive (design 7.8)."""


def present(units: Sequence[Unit], marks: Marks, counter: TokenCounter) -> Sequence[Unit]:
    """The units as marked; the same objects where nothing is."""
    if not marks:
        return units
    pinned, folded, excluded = set(marks.pinned), set(marks.folded), set(marks.excluded)
    return [
        _presented(unit, unit.sequence in pinned, unit.sequence in folded, excluded, counter)
        for unit in units
    ]


def pinned_below(marks: Marks, cut: EventSeq) -> list[EventSeq]:
    """Pinned units that the cut has passed."""
    return [EventSeq(sequence) for sequence in marks.pinned if sequence < cut]


def _presented(
    unit: Unit, pinned: bool, folded: bool, excluded: set[str], counter: TokenCounter
) -> Unit:
    items = [
        _excluded(item, counter)
        if str(item.id) in excluded
        else _folded(item, counter)
        if folded
        else _pinned(item)
        if pinned
        else item
        for item in unit.items
    ]
    return unit if items == list(unit.items) else unit_of(items)


def _pinned(item: Item) -> Item:
    """No pointer form: it stays whole below the pointer floor too (see `rows`)."""
    return replace(item, pointer_tokens=item.tokens)


def _folded(item: Item, counter: TokenCounter) -> Item:
    if item.kind is ItemKind.TOOL_CALL:
        return item
    if item.kind is ItemKind.TOOL_RESULT:
        return _noted(item, pointer_text(item), counter)
    text = (
        f"[elided] {KIND_NAMES[item.kind].replace('.', ' ')} {item.id} ({item.trust.value.lower()}, "
        f'{item.bytes_len:,} bytes); the whole text is kept: recall it with id "{item.id}".'
    )
    return _noted(item, text, counter)


def _excluded(item: Item, counter: TokenCounter) -> Item:
    name = KIND_NAMES[item.kind].replace(".", " ")
    return _noted(item, f"[excluded] An operator left {name} {item.id} out.", counter, always=True)


def _noted(item: Item, text: str, counter: TokenCounter, *, always: bool = False) -> Item:
    """The item with a platform note for its content, where that is shorter or a must."""
    parts = (TextPart(text),)
    tokens = counter.parts(parts)
    if not always and tokens >= item.tokens:
        return item
    # A note quotes nothing, so a result needs no envelope; a message keeps the trust its role says.
    trust = Trust.PLATFORM if item.kind is ItemKind.TOOL_RESULT else _role_trust(item)
    return replace(
        item,
        parts=parts,
        tokens=tokens,
        pointer_tokens=tokens,
        trust=trust,
        kind=ItemKind.USER_MESSAGE if item.kind is ItemKind.SUMMARY else item.kind,
    )


def _role_trust(item: Item) -> Trust:
    return Trust.MODEL if item.kind is ItemKind.ASSISTANT_MESSAGE else Trust.USER
