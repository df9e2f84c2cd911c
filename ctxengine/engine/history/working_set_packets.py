"""Packets of a working set: summaries of exact turn ranges, kept as a cache and never a boundary (capacity spec 4; design 7.9).

A stored packet stands in a request only where the plan wants exactly its range. One that is to reach further grows from the
longest stored one over the same first turn, and so reads what is new alone.

Which of several over one range: in requests the newest stands, as it was made because none before it would do, by hand or in a
smaller room. Not so one that a job wrote ahead of its plan and that came too late: it is kept in reserve behind the one that
stood before it, so that its arrival moves no byte. A longer packet grows from one that a model wrote, where there is one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict

from ctxengine.engine.compaction.acts import HandForm
from ctxengine.engine.compaction.packet import (
    PACKET_REASON,
    CompactionResult,
    Packet,
    whole_of,
)
from ctxengine.engine.events import EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.log.records import EventRecord
from ctxengine.engine.ports import SessionLog


class StoredPacket(NamedTuple):
    """A packet of the log with what it was made of."""

    sequence: EventSeq
    result: CompactionResult


class PacketStore(NamedTuple):
    """The packets that may be used, newest first; read once for each plan."""

    events: Sequence[EventRecord]
    held_out: Sequence[tuple[int, int]] = ()
    """Ranges whose packet an operator took back, until one is made by hand."""

    def may_be_made(self, first: int, through: int) -> bool:
        """Whether a packet over this range leaves all that is held out alone."""
        return not any(first <= last and start <= through for start, last in self.held_out)

    def over(self, first: int, through: int, most_tokens: int) -> Sequence[EventRecord]:
        """Those over exactly this range that are small enough, in the order in which they may stand."""
        return self._to_stand((first, through), most_tokens)

    def longest(self, first: int, through: int, most_tokens: int) -> Sequence[EventRecord]:
        """Those over the same first event that end earlier and are small enough, the longest first, as they may stand."""
        ends = {_range(e)[1] for e in self.events if _range(e)[0] == first}
        return [
            event
            for end in sorted(ends, reverse=True)
            if end < through
            for event in self._to_stand((first, end), most_tokens)
        ]

    def shorter(self, first: int, through: int) -> Sequence[EventRecord]:
        """Those over the same first event that end earlier, as one that reaches further is to grow from them."""
        found = [e for e in self.events if _range(e)[0] == first and _range(e)[1] < through]
        return sorted(found, key=lambda e: (-_range(e)[1], not is_told(e), -e.sequence))

    def to_refit(self, first: int, through: int) -> Sequence[EventRecord]:
        """Those over exactly this range that hold a model's prose, newest first: where they are only too large, it is kept."""
        wanted = (first, through)
        return [e for e in self.events if _range(e) == wanted and e.payload["kind"] == "model"]

    def reserve(self, named: int | None) -> frozenset[int]:
        """Events of those in reserve.

        Args:
            named: the packet of the newest plan: it stands, whatever came before it.
        """
        return frozenset(
            int(event.sequence)
            for event in self.events
            if event.sequence != named and in_reserve(event, self.events)
        )

    def reaches(self, first: int, through: int) -> EventRecord | None:
        """The newest over the same first event that ends at this one or later."""
        return next(
            (e for e in self.events if _range(e)[0] == first and _range(e)[1] >= through), None
        )

    def _to_stand(self, wanted: tuple[int, int], most_tokens: int) -> Sequence[EventRecord]:
        fitting = [
            event
            for event in self.events
            if _range(event) == wanted and event.payload["tokens_after"] <= most_tokens
        ]
        late = [event for event in fitting if in_reserve(event, fitting)]
        return [*(event for event in fitting if event not in late), *late]


def is_told(event: EventRecord) -> bool:
    """Whether a model wrote this packet itself; one that grew from it only keeps its prose."""
    return bool(event.payload.get("writer"))


def in_reserve(event: EventRecord, made: Iterable[EventRecord]) -> bool:
    """Whether a job wrote it ahead of a plan, by nobody's wish, when one of these stood over the same turns already."""
    ahead = is_told(event) and event.run is not None
    return ahead and any(
        other.sequence < event.sequence and _range(other) == _range(event) for other in made
    )


def packet_store(log: SessionLog, undone: Collection[int]) -> PacketStore:
    """The packets of a session.

    One that an operator took back does not count, nor another over the same turns; nor one that may quote an item excluded
    since it was made.
    """
    made = [
        event
        for event in log.every(EventType.COMPACTED)
        if event.payload["reason"] == PACKET_REASON
    ]
    if not made:
        return PacketStore(())
    held = _held_out(log, made, undone)
    packets = [
        event
        for event in made
        if event.sequence not in undone and not any(_covers(event, *out) for out in held)
    ]
    acts = [
        (act.sequence, act.payload["sequences"][0])
        for act in log.every(EventType.PRESENTATION_SET)
        if act.payload["ordinal"] is not None
    ]
    return PacketStore(
        [
            event
            for event in packets
            if not any(
                at > event.sequence and _range(event)[0] <= item <= _range(event)[1]
                for at, item in acts
            )
        ],
        held,
    )


def packet_lost(
    log: SessionLog, since: int, first: int, last: int, *, packet: int | None = None
) -> bool:
    """Whether an act behind the event `since` takes the packet over this range away: an undoing, or an item left out.

    Args:
        packet: the event of the packet itself, where there is one.
    """
    undoing, marking = (
        log.newest(type) for type in (EventType.COMPACTION_UNDONE, EventType.PRESENTATION_SET)
    )
    if undoing is not None and undoing.sequence > since:
        undone = {
            event.payload["compaction"]: event.sequence
            for event in log.every(EventType.COMPACTION_UNDONE)
            if event.sequence > since
        }
        made = [e for e in log.every(EventType.COMPACTED) if e.payload["reason"] == PACKET_REASON]
        for event in made:
            start, end = _range(event)
            at = undone.get(event.sequence)
            if at is None or not (first <= end and start <= last):
                continue
            if event.sequence == packet or _is_missed(log, event, made, at):
                return True
    if marking is None or marking.sequence <= since:
        return False
    return any(
        act.sequence > since
        and act.payload["ordinal"] is not None
        and act.payload["form"] == HandForm.EXCLUDED.value
        and first <= act.payload["sequences"][0] <= last
        for act in log.every(EventType.PRESENTATION_SET)
    )


def undone_with(log: SessionLog, packet: EventRecord, undone: Collection[int]) -> tuple[int, ...]:
    """Events of the packets that stand no more once this one is taken back: itself, and those that hold its turns too.

    None at all where no request shows anything of it: it waits in reserve, and no longer one has grown from it.
    """
    made = [e for e in log.every(EventType.COMPACTED) if e.payload["reason"] == PACKET_REASON]
    if not _is_missed(log, packet, made, log.head().sequence + 1):
        return ()
    alive = packet_store(log, undone).events
    return tuple(e.sequence for e in alive if _covers(e, *_range(packet)))


def _held_out(
    log: SessionLog, made: Sequence[EventRecord], undone: Collection[int]
) -> tuple[tuple[int, int], ...]:
    """Ranges of packets that were taken back; one made by hand afterwards, outside any run, ends that.

    One in reserve that no request shows anything of holds nothing out.
    """
    at = {
        event.payload["compaction"]: event.sequence
        for event in log.every(EventType.COMPACTION_UNDONE)
        if event.payload["compaction"] in undone
    }
    return tuple(
        _range(event)
        for event in made
        if event.sequence in at
        and _is_missed(log, event, made, at[event.sequence])
        and not any(
            other.run is None
            and other.sequence > at[event.sequence]
            and other.sequence not in undone
            and _covers(other, *_range(event))
            for other in made
        )
    )


def _is_missed(
    log: SessionLog, event: EventRecord, made: Iterable[EventRecord], undone_at: int
) -> bool:
    """Whether requests showed something of a packet when it was taken back.

    They did not of one in reserve that stood in no plan, unless a longer one had gone on from its prose.
    """
    start, end = _range(event)
    return (
        not in_reserve(event, made)
        or _stood(log, event)
        or any(
            event.sequence < other.sequence < undone_at
            and other.payload["kind"] == "model"
            and _range(other)[0] == start
            and _range(other)[1] > end
            for other in made
        )
    )


def _stood(log: SessionLog, event: EventRecord) -> bool:
    """Whether a plan showed it: one in reserve does stand where the room is too small for those before it."""
    plans = log.every(EventType.WORKING_SET_PLANNED)
    return any(plan.payload["packet"] == event.sequence for plan in plans)


def _covers(event: EventRecord, first: int, last: int) -> bool:
    start, end = _range(event)
    return start <= first and last <= end


def first_kept(log: SessionLog, events: Sequence[EventRecord]) -> EventRecord | None:
    """The first of these packets whose content was not erased."""
    return next((event for event in events if _text(log, event) is not None), None)


def first_readable(log: SessionLog, events: Sequence[EventRecord]) -> StoredPacket | None:
    """The same with its content; also all that it took over from those it grew from has to be there."""
    return next((found for event in events if (found := _stored(log, event)) is not None), None)


def _stored(log: SessionLog, event: EventRecord) -> StoredPacket | None:
    chain = grown_from(event, log.every(EventType.COMPACTED))
    ids = [one.body.id for one in chain if one.body is not None]
    texts = log.texts(ids)
    parts = [text for id in ids if (text := texts.get(id)) is not None]
    if len(parts) < len(chain):
        return None
    whole = whole_of([CompactionResult.model_validate_json(text) for text in parts])
    return StoredPacket(event.sequence, whole)


def grown_from(event: EventRecord, made: Iterable[EventRecord]) -> Sequence[EventRecord]:
    """The packets whose material one holds, the oldest first, itself last.

    Args:
        made: the session's compactions.
    """
    by_sequence = {int(one.sequence): one for one in made}
    chain = [event]
    while (before := chain[0].payload.get("grown_from")) is not None:
        chain.insert(0, by_sequence[before])
    return chain


def _text(log: SessionLog, event: EventRecord) -> str | None:
    return log.body(event.body.id) if event.body is not None else None


class _Summary(BaseModel):
    """What of a packet reaches a request; the material it grows from stays unread."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    summary: str


def packet_at(log: SessionLog, sequence: int) -> Packet | None:
    """The packet that an event holds; None once its content was erased."""
    (event,) = log.events(after=EventSeq(sequence - 1), limit=1)
    text = _text(log, event)
    if text is None:
        return None
    told = event.payload
    return Packet(
        sequence=event.sequence,
        first=EventSeq(told["first_sequence"]),
        through=EventSeq(told["replaced_through_sequence"]),
        depth=told["depth"],
        kind=told["kind"],
        turns=told["turns"],
        units=told["units"],
        text=_Summary.model_validate_json(text).summary,
        tokens=told["tokens_after"],
        tokens_before=told["tokens_before"],
    )


def _range(event: EventRecord) -> tuple[int, int]:
    return event.payload["first_sequence"], event.payload["replaced_through_sequence"]
