"""The `suffix` engine: the largest contiguous tail that fits (frozen-prefix spec, What history selection retains)."""

from __future__ import annotations

from collections.abc import Sequence

from ctxengine.engine.ids import EventSeq, ItemIndex
from ctxengine.engine.items import Item
from ctxengine.engine.ports import SumColumn, UnitIndex, UnitSums


def select_history(
    items: Sequence[Item],
    unit_starts: Sequence[EventSeq],
    summary_floor: EventSeq,
    history_tokens: int,
) -> ItemIndex:
    """The cut index: `items[cut:]` are retained.

    It returns an index because an index can only describe a suffix. The cut falls on unit starts, so a call and its results
    leave together; an item at or below `summary_floor` is no candidate, being told by the summary already.

    Args:
        items: ordered, oldest first.
        unit_starts: for each item, the sequence that opens its unit.
        summary_floor: last sequence a summary replaces, 0 for none. A sequence, never compared with an index.
        history_tokens: room for history (tokens), floors already applied.
    """
    cut = len(items)
    total = 0
    end = len(items)
    while end > 0:
        start = end
        while start > 0 and unit_starts[start - 1] == unit_starts[end - 1]:
            start -= 1
        total += sum(item.tokens for item in items[start:end])
        if total > history_tokens or unit_starts[end - 1] <= summary_floor:
            break
        cut = start
        end = start
    return ItemIndex(cut)


def largest_suffix(
    index: UnitIndex, *, floor: EventSeq, boundary: EventSeq, tokens: int, pointer_floor: EventSeq
) -> UnitSums:
    """The same cut by indexed look-ups: where the largest tail of at most `tokens` starts.

    Results of units before `pointer_floor` count in their pointer form. The answer never lies before `floor` nor after
    `boundary` (the open run's seed).
    """
    end = index.at(boundary)
    split = index.at(max(floor, min(pointer_floor, boundary)))
    above = end.tokens - split.tokens
    if above <= tokens:
        # The cut may lie among the pointer-form units: what they may still take is what the rest leaves.
        place = index.first(
            SumColumn.POINTER, split.pointer_tokens + above - tokens, split.sequence
        )
    else:
        place = index.first(SumColumn.TOKENS, end.tokens - tokens, boundary)
    low = index.at(floor)
    return low if place.index < low.index else place


def suffix_tokens(
    index: UnitIndex, *, cut: EventSeq, boundary: EventSeq, pointer_floor: EventSeq
) -> int:
    """Tokens of the tail that starts at `cut`, results before `pointer_floor` in pointer form."""
    end = index.at(boundary)
    start = index.at(min(cut, boundary))
    split = index.at(max(cut, min(pointer_floor, boundary)))
    return (split.pointer_tokens - start.pointer_tokens) + (end.tokens - split.tokens)
