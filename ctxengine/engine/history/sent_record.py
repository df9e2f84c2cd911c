"""Turns that a recorded plan shows as they were sent, read back from the log (design 7.8, 7.12).

The plan's event holds their numbers and what stands in front of them. Where a turn lies is told by the event of its close, and
its blocks are those its run sent between its first event and its last: the log only grows, so they are the same at any time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ctxengine.engine.events import EventType
from ctxengine.engine.history.working_set_record import PlannedSet, Stretch
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.log.records import EventRecord
from ctxengine.engine.ports import SessionLog
from ctxengine.engine.turns.closed import ClosedTurns, events_of

_EACH, _BESIDE = 4, 8
"""Newest blocks that are looked at for each turn, and beside those."""


class AsSent(NamedTuple):
    """A closed turn that stands as it was sent, its fresh blocks where they were."""

    number: int
    first: int
    last: int
    blocks: tuple[EventRecord, ...]
    """`context.fresh.sent` events of its blocks, oldest first."""
    promoted: tuple[Stretch, ...]
    """Earlier turns that its run brought back whole; they stand in front of it."""


def turns_as_sent(
    log: SessionLog, record: PlannedSet, closed: ClosedTurns | None = None
) -> tuple[AsSent, ...]:
    """The turns that a plan shows as they were sent, oldest first.

    Args:
        closed: the closed turns, where the caller has read them already.

    Raises:
        LookupError: the log has no close of one of them.
    """
    numbers = record.sent_numbers
    if not numbers:
        return ()
    ends = [_known(n, e) for n, e in zip(numbers, events_of(log, numbers, closed), strict=True)]
    blocks = _by_turn(log, ends)
    brought = record.brought_for
    return tuple(
        AsSent(
            number,
            end.payload["first"],
            end.payload["last"],
            tuple(blocks.get(number, ())),
            brought.get(number, ()),
        )
        for number, end in zip(numbers, ends, strict=True)
    )


def _known(number: int, event: EventRecord | None) -> EventRecord:
    if event is None:
        msg = f"Turn {number} has no event of its close."
        raise LookupError(msg)
    return event


def _by_turn(log: SessionLog, ends: Sequence[EventRecord]) -> Mapping[int, list[EventRecord]]:
    """Blocks of each turn, by its number."""
    first, last = ends[0].payload["first"], ends[-1].payload["last"]
    found: dict[int, list[EventRecord]] = {}
    turns = iter(ends)
    turn = next(turns)
    for block in _blocks(log, first, last, _EACH * len(ends) + _BESIDE):
        while turn.payload["last"] < block.sequence:
            turn = next(turns)
        if turn.payload["first"] < block.sequence and block.run == turn.run:
            found.setdefault(turn.payload["number"], []).append(block)
    return found


def _blocks(log: SessionLog, first: int, last: int, most: int) -> Sequence[EventRecord]:
    """All blocks between two events, oldest first."""
    newest = log.latest({EventType.FRESH_SENT}, limit=most)
    if len(newest) == most and newest[-1].sequence > first:
        # An older plan, or a long run: they are not among the newest ones.
        events = log.events(after=EventSeq(first - 1), limit=last - first + 1)
        return [event for event in events if event.type is EventType.FRESH_SENT]
    return [event for event in reversed(newest) if first <= event.sequence <= last]
