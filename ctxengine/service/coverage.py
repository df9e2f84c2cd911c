"""What stands for the history before the cut, range by range: each event once, whatever the engine (design 6 and 9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from ctxengine.engine.compaction.packet import PACKET_REASON, Packet, Tile
from ctxengine.engine.events import EventType
from ctxengine.engine.history.working_set_record import PlannedSet, planned_of
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.log.records import EventRecord
from ctxengine.engine.ports import SessionLog
from ctxengine.engine.turns.closed import ClosedTurns, closed_turns

ToldBy = Literal["summary", "omission", "cards", "handoff"]
"""`omission`: a line says that it is left out; `handoff`: the text that opened the session anew."""


class Covered(NamedTuple):
    """One stretch of the log, and what stands for it in requests."""

    first: int
    through: int
    told_by: ToldBy
    event: int | None
    """The event that holds what stands for it, where one does."""
    turns: int
    tokens: int
    """Of what it stands for."""


def covered_by(tiles: Sequence[Tile]) -> tuple[Covered, ...]:
    """The stretches before the cut of an engine that drops everything before it."""
    return tuple(
        Covered(t.first, t.through, "summary", t.sequence, t.turns, t.tokens_before)
        if isinstance(t, Packet)
        else Covered(t.first, t.through, "omission", None, t.turns, t.tokens)
        for t in tiles
    )


def planned_coverage(log: SessionLog, packets: Sequence[EventRecord]) -> tuple[Covered, ...]:
    """The stretches before the cut of a working set, as its newest plan shows them; a packet made since takes its place.

    Args:
        packets: the session's packets that no act of an operator keeps out of requests.
    """
    newest = log.newest(EventType.WORKING_SET_PLANNED)
    if newest is None:
        return ()
    record = planned_of(newest.payload)
    stretches = _Stretches(log, closed_turns(log))
    if record.handoff is not None:
        stretches.add(record.behind_through, "handoff", record.handoff)
    packet = _packet(record, newest.sequence, packets, stretches.at)
    if packet is not None:
        stretches.add(packet.payload["replaced_through_sequence"], "summary", packet.sequence)
    stretches.add(record.told_last, "omission")
    stretches.add(record.cut - 1, "cards")
    return tuple(stretches.found)


def _packet(
    record: PlannedSet, planned_at: int, packets: Sequence[EventRecord], first: int
) -> EventRecord | None:
    """The packet of a plan, or the newest one that was made by hand since: the next run will want it.

    One that a job wrote ahead, which names the run of its plan, waits for a plan that wants just its turns.
    """
    standing = [
        event
        for event in packets
        if event.payload["reason"] == PACKET_REASON and event.payload["first_sequence"] >= first
    ]
    since = [event for event in standing if event.sequence > planned_at and event.run is None]
    own = [event for event in standing if event.sequence == record.packet]
    return max(since or own, key=lambda event: event.sequence, default=None)


class _Stretches:
    """Neighbouring stretches of whole turns, from the first one on."""

    def __init__(self, log: SessionLog, closed: ClosedTurns) -> None:
        self.found: list[Covered] = []
        self.at = 1
        self._log = log
        self._turns = [(event.payload["first"], event.payload["last"]) for event in closed.events]

    def add(self, through: int, told_by: ToldBy, event: int | None = None) -> None:
        """All turns from where the last stretch ends up to an event; nothing where they were told already."""
        turns = [turn for turn in self._turns if self.at <= turn[0] and turn[1] <= through]
        if not turns:
            return
        first = turns[0][0]
        start, end = self._log.at(EventSeq(first)), self._log.at(EventSeq(through + 1))
        tokens = end.tokens - start.tokens
        self.found.append(Covered(first, through, told_by, event, len(turns), tokens))
        self.at = through + 1
