"""Reading a session's compactions: what each replaced, what became of it, what covers the history now."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from ctxengine.engine.compaction.acts import BOUNDARY_KINDS, tiles_of
from ctxengine.engine.compaction.packet import PACKET_REASON, CompactionResult, Packet, Tile
from ctxengine.engine.events import EventType
from ctxengine.engine.log.records import EventRecord
from ctxengine.engine.standing import history_acts, standing_of
from ctxengine.engine.step import fixed_frame, floors_of
from ctxengine.service.access import plan_row_of, session_of
from ctxengine.service.specs import Actor
from ctxengine.service.undo_compaction import UndoBar, undo_bar
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
    """`standing`, `merged`, `undone`, or `superseded`: a packet in whose place a newer one over the same turns stands."""
    result: CompactionResult | None
    """What its body holds; None once erased."""
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
            "source_event_ids": list(result.source_event_ids) if result else [],
            "elided": [span.model_dump(mode="json") for span in result.elided] if result else [],
            "erased": result is None,
            "undo_first": self.bar.first if self.bar else None,
        }


@dataclass(frozen=True, slots=True)
class Compactions:
    """All of a session's."""

    lines: tuple[CompactionLine, ...]
    tiles: tuple[Tile, ...]
    refusals: tuple[EventRecord, ...]

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "items": [line.as_json() for line in self.lines],
            "coverage": [
                {
                    "first": tile.first,
                    "through": tile.through,
                    "told_by": "summary" if isinstance(tile, Packet) else "omission",
                    "event": tile.sequence if isinstance(tile, Packet) else None,
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
    plan = plan_from(log, plan_row_of(session))
    total = fixed_frame(plan, 1_000_000).total
    events = [
        event
        for event in log.latest({EventType.COMPACTED})
        if event.payload["kind"] not in BOUNDARY_KINDS
    ]
    acts = history_acts(log)
    standing = standing_of(log, plan_total=total)
    alive = {event.sequence for event in acts.compactions}
    texts = log.texts([event.body.id for event in events if event.body is not None])
    lines = []
    newer: set[tuple[bool, int, int]] = set()
    for event in events:
        text = texts.get(event.body.id) if event.body is not None else None
        lines.append(
            CompactionLine(
                event,
                "standing" if event.sequence in alive else _state(event, acts.undone, newer),
                CompactionResult.model_validate_json(text) if text is not None else None,
                None
                if event.sequence in acts.undone
                else undo_bar(acts, (), event, compactions=events),
            )
        )
        if text is not None:
            newer.add(_packet_range(event))
    cut = floors_of(log.newest_yields(), total, acts.undone).cut
    return Compactions(
        tuple(lines),
        tiles_of(standing.packets, cut, log),
        tuple(log.latest({EventType.COMPACTION_REFUSED}, limit=50)),
    )


def _state(
    event: EventRecord, undone: Collection[int], newer: Collection[tuple[bool, int, int]]
) -> str:
    """What became of a compaction that is not in force by itself.

    Args:
        newer: ranges of those made later whose content is still there.
    """
    if event.sequence in undone:
        return "undone"
    if event.payload["reason"] != PACKET_REASON:
        return "merged"
    return "superseded" if _packet_range(event) in newer else "standing"


def _packet_range(event: EventRecord) -> tuple[bool, int, int]:
    told = event.payload
    packet = told["reason"] == PACKET_REASON
    return packet, told["first_sequence"], told["replaced_through_sequence"]
