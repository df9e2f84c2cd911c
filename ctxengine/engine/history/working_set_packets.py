"""Packets of a working set: summaries of exact turn ranges, kept as a cache and never a boundary (capacity spec 4; design 7.9).

A stored packet stands in a request only where the plan wants exactly its range. One that is to reach further grows from the
longest stored one over the same first turn, and so reads what is new alone.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict

from ctxengine.engine.canonical import digest_of
from ctxengine.engine.compaction.acts import HandForm
from ctxengine.engine.compaction.deterministic import merged, sections_of, write_summary
from ctxengine.engine.compaction.packet import FRAME_TOKENS, PACKET_REASON, CompactionResult, Packet
from ctxengine.engine.compaction.soundness import Refusal, too_large
from ctxengine.engine.compaction.source import SummarySource
from ctxengine.engine.compaction.summarise import (
    LedgerSummariser,
    Range,
    Surroundings,
    read_source,
    summarise,
)
from ctxengine.engine.events import EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.log.records import EventRecord
from ctxengine.engine.ports import SessionLog, TokenCounter
from ctxengine.engine.redaction.redact import redact

_TRIES = 4


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
        """Those over exactly this range that are small enough, newest first."""
        return [
            event
            for event in self.events
            if _range(event) == (first, through) and event.payload["tokens_after"] <= most_tokens
        ]

    def shorter(self, first: int, through: int) -> Sequence[EventRecord]:
        """Those over the same first event that end earlier, the longest first."""
        found = [e for e in self.events if _range(e)[0] == first and _range(e)[1] < through]
        return sorted(found, key=lambda event: (-_range(event)[1], -event.sequence))


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


def packet_lost(log: SessionLog, since: int, first: int, last: int) -> bool:
    """Whether an act behind the event `since` takes the packet over this range away: an undoing, or an item left out."""
    undoing, marking = (
        log.newest(type) for type in (EventType.COMPACTION_UNDONE, EventType.PRESENTATION_SET)
    )
    if undoing is not None and undoing.sequence > since:
        undone = {
            event.payload["compaction"]
            for event in log.every(EventType.COMPACTION_UNDONE)
            if event.sequence > since
        }
        for event in log.every(EventType.COMPACTED):
            if event.sequence in undone and event.payload["reason"] == PACKET_REASON:
                start, end = _range(event)
                if first <= end and start <= last:
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


def _held_out(
    log: SessionLog, made: Sequence[EventRecord], undone: Collection[int]
) -> tuple[tuple[int, int], ...]:
    """Ranges of packets that were taken back; one made by hand afterwards, outside any run, ends that."""
    at = {
        event.payload["compaction"]: event.sequence
        for event in log.every(EventType.COMPACTION_UNDONE)
        if event.payload["compaction"] in undone
    }
    return tuple(
        _range(event)
        for event in made
        if event.sequence in at
        and not any(
            other.run is None
            and other.sequence > at[event.sequence]
            and other.sequence not in undone
            and _covers(other, *_range(event))
            for other in made
        )
    )


def _covers(event: EventRecord, first: int, last: int) -> bool:
    start, end = _range(event)
    return start <= first and last <= end


def first_kept(log: SessionLog, events: Sequence[EventRecord]) -> EventRecord | None:
    """The first of these packets whose content was not erased."""
    return next((event for event in events if _text(log, event) is not None), None)


def first_readable(log: SessionLog, events: Sequence[EventRecord]) -> StoredPacket | None:
    """The same with its content."""
    event = first_kept(log, events)
    text = _text(log, event) if event is not None else None
    if event is None or text is None:
        return None
    return StoredPacket(event.sequence, CompactionResult.model_validate_json(text))


def _text(log: SessionLog, event: EventRecord) -> str | None:
    return log.body(event.body.id) if event.body is not None else None


def write_packet(
    log: SessionLog,
    wanted: Range,
    grown_from: StoredPacket | None,
    surroundings: Surroundings,
    *,
    counter: TokenCounter,
    budget_tokens: int,
    excluded: frozenset[str] = frozenset(),
) -> CompactionResult | Refusal:
    """A packet over a range, without a model; nothing unsound comes back as a result.

    Args:
        wanted: the range, with what it would cost as full turns.
        grown_from: the stored packet over the range's beginning, whose material is taken over.
        budget_tokens: most tokens of the packet, its frame included.
        excluded: items an operator left out.
    """
    first = wanted.first
    if grown_from is not None:
        first = EventSeq(grown_from.result.replaced_through_sequence + 1)
    source = read_source(
        log, Range(first, wanted.below, wanted.tokens), surroundings, excluded=excluded
    )
    asked = budget_tokens
    for _ in range(_TRIES):
        made = _told(source, grown_from, wanted, surroundings, counter, asked)
        if isinstance(made, Refusal) or made.tokens_after <= budget_tokens:
            return made
        # Entries are counted one by one, and together they may come to a little more.
        asked -= made.tokens_after - budget_tokens + 1
    return Refusal.OVER_BUDGET


def _told(
    source: SummarySource,
    grown_from: StoredPacket | None,
    wanted: Range,
    surroundings: Surroundings,
    counter: TokenCounter,
    budget_tokens: int,
) -> CompactionResult | Refusal:
    if grown_from is None:
        return summarise(
            source,
            surroundings,
            summariser=LedgerSummariser(counter),
            counter=counter,
            budget_tokens=budget_tokens,
        )
    return _grown(grown_from.result, source, wanted, surroundings, counter, budget_tokens)


def _grown(
    stored: CompactionResult,
    source: SummarySource,
    wanted: Range,
    surroundings: Surroundings,
    counter: TokenCounter,
    budget_tokens: int,
) -> CompactionResult | Refusal:
    """The stored packet's material and the new turns' as one text; nothing is summarised twice."""
    sections = merged([stored.sections, sections_of(source)])
    spans = {span.item_id: span for span in (*stored.elided, *source.elided)}
    elided = tuple(sorted(spans.values(), key=lambda span: span.item))
    room = max(1, budget_tokens - FRAME_TOKENS)
    clean = redact(write_summary(sections, elided, counter=counter, budget_tokens=room))
    after = counter.text(clean.text) + FRAME_TOKENS
    refusal = Refusal.EMPTY if not clean.text.strip() else too_large(wanted.tokens, after)
    if refusal is not None:
        return refusal
    constraints = dict.fromkeys((*stored.constraints, *surroundings.constraints))
    return CompactionResult(
        summary=clean.text,
        first_sequence=wanted.first,
        replaced_through_sequence=wanted.below - 1,
        source_event_ids=tuple(sorted({*stored.source_event_ids, *source.source_event_ids})),
        elided=elided,
        constraints=tuple(constraints),
        open_tasks=surroundings.open_tasks,
        turns=stored.turns + source.turns,
        units=stored.units + source.units,
        tokens_before=wanted.tokens,
        tokens_after=after,
        compactor_version=stored.compactor_version,
        masked=stored.masked + source.masked + clean.masked,
        source_sha256=digest_of([stored.source_sha256, source.digest]),
        sections=sections,
    )


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
