"""Reading a session's compactions: what each replaced, what became of it, what covers the history now."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from ctxengine.engine.compaction.acts import BOUNDARY_KINDS, HistoryActs, tiles_of
from ctxengine.engine.compaction.packet import PACKET_REASON, CompactionResult, whole_of
from ctxengine.engine.events import EventType
from ctxengine.engine.history.working_set_packets import PacketStore, grown_from, packet_store
from ctxengine.engine.log.records import EventRecord
from ctxengine.engine.standing import history_acts, standing_of
from ctxengine.engine.step import fixed_frame, floors_of
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import SessionRow
from ctxengine.service.access import plan_row_of, session_of
from ctxengine.service.coverage import Covered, covered_by, planned_coverage
from ctxengine.service.specs import Actor
from ctxengine.service.turns.seen_by import PLANNED_ENGINES
from ctxengine.service.undo_compaction import UndoBar, named_packet, undo_bar
from ctxengine.service.wiring import log_of, plan_from

_SHOWN = (
    "kind",
    "depth",
    "merges",
    "turns",
    "units",
    "tokens_before",
    "tokens_after",
    "plan_total",
    "reason",
    "forced_by",
    "compactor",
    "detector",
    "masked",
    "source_sha256",
    "verdict",
)


@dataclass(frozen=True, slots=True)
class CompactionLine:
    """One compaction."""

    event: EventRecord
    state: str
    """`standing`, `merged`, `undone`, or of a packet `superseded` or `reserve`: a newer or an older one over the same turns
    stands in its place. Longer ones grow from one in reserve. `held_out`: an operator took back another over its turns, or left
    something of them out, and so no request may show it."""
    result: CompactionResult | None
    """What its body holds, of a packet that grew only what it adds; None once erased."""
    bar: UndoBar | None = None
    """Why it cannot be undone now; None where it can, and for one that is undone."""

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        payload, result = self.event.payload, self.result
        return {
            "event": self.event.sequence,
            "at": self.event.recorded_at.isoformat(),
            "state": self.state,
            "first": payload["first_sequence"],
            "through": payload["replaced_through_sequence"],
            **{name: payload[name] for name in _SHOWN},
            "writer": payload.get("writer"),
            "summary": result.summary if result else None,
            "constraints": list(result.constraints) if result else [],
            "sources": payload["sources"],
            "pointers": payload["elided"],
            "grown_from": payload.get("grown_from"),
            "source_event_ids": list(result.source_event_ids) if result else [],
            "elided": [span.model_dump(mode="json") for span in result.elided] if result else [],
            "erased": result is None,
            "undo_first": self.bar.first if self.bar else None,
        }


@dataclass(frozen=True, slots=True)
class Compactions:
    """All of a session's."""

    lines: tuple[CompactionLine, ...]
    tiles: tuple[Covered, ...]
    """What covers the history before the cut, oldest first."""
    refusals: tuple[EventRecord, ...]

    def whole(self, line: CompactionLine) -> CompactionResult | None:
        """What a compaction tells, with all that a packet took over from those it grew from; None once erased."""
        if line.result is None:
            return None
        by_event = {int(one.event.sequence): one for one in self.lines}
        chain = grown_from(line.event, [one.event for one in self.lines])
        results = [by_event[int(event.sequence)].result for event in chain]
        return whole_of([result for result in results if result is not None])

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "items": [line.as_json() for line in self.lines],
            "coverage": [
                {
                    "first": tile.first,
                    "through": tile.through,
                    "told_by": tile.told_by,
                    "event": tile.event,
                }
                for tile in self.tiles
            ],
            "refusals": [{"event": event.sequence, **event.payload} for event in self.refusals],
        }


def compactions_of(*, actor: Actor, session_id: UUID) -> Compactions:
    """A session's compactions, newest first, and what covers its history under the present plan.

    Raises:
        ServiceError: 404.
    """
    session = session_of(actor, session_id)
    log = log_of(session)
    acts = history_acts(log)
    planned = session.engine in PLANNED_ENGINES
    store = packet_store(log, acts.undone) if planned else PacketStore(())
    return Compactions(
        tuple(_lines(log, acts, store, named_packet(log) if planned else None)),
        planned_coverage(log, store.events) if planned else _cut_coverage(session, log, acts),
        tuple(log.latest({EventType.COMPACTION_REFUSED}, limit=50)),
    )


def _lines(
    log: PostgresLog, acts: HistoryActs, store: PacketStore, named: int | None
) -> Iterator[CompactionLine]:
    events = [
        event
        for event in log.latest({EventType.COMPACTED})
        if event.payload["kind"] not in BOUNDARY_KINDS
    ]
    alive = {event.sequence for event in acts.compactions}
    texts = log.texts([event.body.id for event in events if event.body is not None])
    packets = _Packets(store, named)
    for event in events:
        text = texts.get(event.body.id) if event.body is not None else None
        undone = event.sequence in acts.undone
        yield CompactionLine(
            event,
            "standing" if event.sequence in alive else _state(event, acts.undone, packets),
            CompactionResult.model_validate_json(text) if text is not None else None,
            None if undone else undo_bar(acts, (), event, compactions=events, named=named),
        )
        if text is not None:
            packets.seen(event)


def _cut_coverage(session: SessionRow, log: PostgresLog, acts: HistoryActs) -> tuple[Covered, ...]:
    """Of an engine that drops everything before its cut."""
    total = fixed_frame(plan_from(log, plan_row_of(session)), 1_000_000).total
    cut = floors_of(log.newest_yields(), total, acts.undone).cut
    return covered_by(tiles_of(standing_of(log, plan_total=total).packets, cut, log))


class _Packets:
    """What became of packets, which are looked at from the newest on."""

    def __init__(self, store: PacketStore, named: int | None) -> None:
        self._kept = {int(event.sequence) for event in store.events}
        self._reserve = store.reserve(named)
        self._newer: set[tuple[int, int]] = set()
        """Ranges of those looked at that may stand."""

    def seen(self, event: EventRecord) -> None:
        """Count one whose content is still there."""
        if event.sequence in self._kept and event.sequence not in self._reserve:
            self._newer.add(_range(event))

    def state(self, event: EventRecord) -> str:
        """Of one that nobody took back."""
        if event.sequence not in self._kept:
            return "held_out"
        if event.sequence in self._reserve:
            return "reserve"
        return "superseded" if _range(event) in self._newer else "standing"


def _state(event: EventRecord, undone: Collection[int], packets: _Packets) -> str:
    """What became of a compaction that is not in force by itself."""
    if event.sequence in undone:
        return "undone"
    return packets.state(event) if event.payload["reason"] == PACKET_REASON else "merged"


def _range(event: EventRecord) -> tuple[int, int]:
    return event.payload["first_sequence"], event.payload["replaced_through_sequence"]
