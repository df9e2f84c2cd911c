"""What operators and compactions have done to a session's history, read from its events (design 8).

Summaries, undoings, pins, folds and exclusions are events like any other, so that a request can be built again from the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from ctxengine.engine.compaction.packet import (
    PACKET_REASON,
    CompactionResult,
    Gap,
    Packet,
    Tile,
    packet_of,
)
from ctxengine.engine.events import EventType
from ctxengine.engine.ids import EventSeq, ItemId
from ctxengine.engine.log.records import EventRecord
from ctxengine.engine.ports import UnitIndex

ACT_TYPES = frozenset(
    {EventType.COMPACTED, EventType.COMPACTION_UNDONE, EventType.PRESENTATION_SET}
)

BOUNDARY_KINDS = frozenset({"native", "note"})
"""Kinds of compaction that are checkpoints of the `boundary` engine: a window or a note, never a summary tile."""


class HandForm(StrEnum):
    """How an operator wants something to stand in requests."""

    PINNED = "pinned"
    """Whole, whatever the cut and the floors say."""
    FOLDED = "folded"
    """As pointers."""
    EXCLUDED = "excluded"
    """A notice in its place."""
    AUTOMATIC = "automatic"
    """As the policy decides: takes an earlier act back."""


@dataclass(frozen=True, slots=True)
class Marks:
    """Acts in force on single units and items."""

    pinned: tuple[int, ...] = ()
    """Sequences that open pinned units."""
    folded: tuple[int, ...] = ()
    excluded: tuple[str, ...] = ()
    """Item ids."""

    def __bool__(self) -> bool:
        """Whether anything is marked."""
        return bool(self.pinned or self.folded or self.excluded)


@dataclass(frozen=True, slots=True)
class HistoryActs:
    """All acts up to a head."""

    compactions: tuple[EventRecord, ...] = ()
    """`context.compacted` events in force for some plan, oldest first: neither undone nor merged."""
    undone: frozenset[int] = frozenset()
    """Sequences of undone compactions and of the yields that came with them."""
    marks: Marks = field(default_factory=Marks)

    def standing(self, plan_total: int) -> tuple[EventRecord, ...]:
        """Compactions that count for a plan of this total: those made for it or for a larger one (design 6)."""
        return tuple(e for e in self.compactions if e.payload["plan_total"] >= plan_total)


def acts_of(events: Iterable[EventRecord]) -> HistoryActs:
    """Read the acts from their events, oldest first."""
    made: dict[int, EventRecord] = {}
    undone: set[int] = set()
    forms: dict[int, HandForm] = {}
    excluded: dict[ItemId, bool] = {}
    for event in events:
        payload = event.payload
        if event.type is EventType.COMPACTED:
            if payload["kind"] not in BOUNDARY_KINDS:
                made[event.sequence] = event
        elif event.type is EventType.COMPACTION_UNDONE:
            undone |= {payload["compaction"], *payload["came_with"]}
        elif event.type is EventType.PRESENTATION_SET:
            _mark(payload, forms, excluded)
    alive = [event for sequence, event in made.items() if sequence not in undone]
    merged = {part for event in alive for part in event.payload["merges"]}
    return HistoryActs(
        compactions=tuple(
            event
            for event in alive
            if event.sequence not in merged and event.payload["reason"] != PACKET_REASON
        ),
        undone=frozenset(undone),
        marks=Marks(
            pinned=tuple(sorted(s for s, form in forms.items() if form is HandForm.PINNED)),
            folded=tuple(sorted(s for s, form in forms.items() if form is HandForm.FOLDED)),
            excluded=tuple(str(item) for item in sorted(i for i, out in excluded.items() if out)),
        ),
    )


def _mark(payload: object, forms: dict[int, HandForm], excluded: dict[ItemId, bool]) -> None:
    if not isinstance(payload, dict):
        return
    form = HandForm(payload["form"])
    if payload["ordinal"] is not None:
        item = ItemId(EventSeq(payload["sequences"][0]), payload["ordinal"])
        excluded[item] = form is HandForm.EXCLUDED
        return
    for sequence in payload["sequences"]:
        forms[sequence] = form


def tiles_of(packets: Sequence[Packet], cut: EventSeq, index: UnitIndex) -> tuple[Tile, ...]:
    """Everything before the cut as summaries and gaps: together they cover it once, without a hole.

    Summaries that reach beyond the cut do not count: the cut of this plan has not come so far.
    """
    tiles: list[Tile] = []
    at = EventSeq(1)
    for packet in sorted(packets, key=lambda entry: entry.first):
        if packet.through >= cut or packet.first < at:
            continue
        _gap(tiles, at, packet.first, index)
        tiles.append(packet)
        at = EventSeq(packet.through + 1)
    _gap(tiles, at, cut, index)
    return tuple(tiles)


def _gap(tiles: list[Tile], first: EventSeq, below: EventSeq, index: UnitIndex) -> None:
    if first >= below:
        return
    start, end = index.at(first), index.at(below)
    if end.index > start.index:
        tiles.append(
            Gap(
                first,
                EventSeq(below - 1),
                end.turns - start.turns,
                end.index - start.index,
                end.tokens - start.tokens,
            )
        )


def packets_from(
    events: Iterable[EventRecord], results: Mapping[int, CompactionResult]
) -> tuple[Packet, ...]:
    """The packets of compaction events, from what those hold by sequence; an erased one keeps its range and says so."""
    return tuple(_packet(event, results.get(event.sequence)) for event in events)


def _packet(event: EventRecord, result: CompactionResult | None) -> Packet:
    if result is not None:
        return packet_of(result, event.sequence)
    payload = event.payload
    return Packet(
        sequence=event.sequence,
        first=EventSeq(payload["first_sequence"]),
        through=EventSeq(payload["replaced_through_sequence"]),
        depth=payload["depth"],
        kind=payload["kind"],
        turns=payload["turns"],
        units=payload["units"],
        text="[erased]",
        tokens=payload["tokens_after"],
        tokens_before=payload["tokens_before"],
    )
