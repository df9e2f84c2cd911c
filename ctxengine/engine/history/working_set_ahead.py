"""The packet that a plan's next growth will want: eight turns further, known once they are closed (capacity spec 4)."""

from __future__ import annotations

from typing import NamedTuple

from ctxengine.engine.compaction.summarise import Range
from ctxengine.engine.history.working_set import BATCH_TURNS
from ctxengine.engine.history.working_set_record import PlannedSet
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.log.records import EventRecord
from ctxengine.engine.turns.closed import ClosedTurns


class TurnsAhead(NamedTuple):
    """Closed turns that a packet is to cover."""

    first: int
    """Number of the first of them."""
    last: int
    range: Range
    """Their events, with what they would cost as full turns."""
    budget_tokens: int
    """Most tokens of the packet, its frame included."""


def last_ahead(record: PlannedSet) -> int | None:
    """The last turn that the next growth will want in the packet; None where no packet stands."""
    return record.packet_through + BATCH_TURNS if record.packet is not None else None


def turns_ahead(record: PlannedSet, closed: ClosedTurns) -> TurnsAhead | None:
    """The turns of the next growth; None where no packet stands, or they are not all closed."""
    last = last_ahead(record)
    if last is None or last > len(closed.events):
        return None
    return turns_between(record, closed, last)


def turns_between(record: PlannedSet, closed: ClosedTurns, last: int) -> TurnsAhead:
    """The turns that a plan's packet covers when it reaches up to turn `last`, which is closed."""
    covered = closed.costs[record.behind : last]
    wanted = Range(
        EventSeq(covered[0].first),
        EventSeq(covered[-1].last + 1),
        sum(turn.full for turn in covered),
    )
    return TurnsAhead(record.behind + 1, last, wanted, record.room.packet)


def tokens_read(turns: TurnsAhead, closed: ClosedTurns, base: EventRecord | None) -> int:
    """What a model reads to write the packet of these turns, at most: the packet it goes on from, and the turns behind that.

    Args:
        base: that packet; None where there is none, and all turns are read.
    """
    if base is None:
        return turns.range.tokens
    behind = base.payload["replaced_through_sequence"]
    covered = closed.costs[turns.first - 1 : turns.last]
    new = sum(turn.full for turn in covered if turn.first > behind)
    return int(base.payload["tokens_after"]) + new
