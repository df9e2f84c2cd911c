"""The stored packets of a session, each over its range of closed turns (capacity spec 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from ctxengine.engine.compaction.packet import PACKET_REASON
from ctxengine.engine.events import EventType
from ctxengine.engine.history.working_set_packets import packet_store
from ctxengine.engine.standing import history_acts
from ctxengine.engine.turns.closed import turn_costs
from ctxengine.ledger.log import PostgresLog
from ctxengine.service.access import session_of
from ctxengine.service.specs import Actor
from ctxengine.service.undo_compaction import named_packet
from ctxengine.service.wiring import log_of


@dataclass(frozen=True, slots=True)
class PacketRange:
    """One stored packet."""

    event: int
    first: int
    """Number of the first turn it covers."""
    last: int
    tokens_before: int
    tokens: int
    undone: bool
    """Whether an operator took it back."""
    kind: str = "deterministic"
    """`model` where a model wrote it, or the prose that it goes on from."""
    writer: str = ""
    """`provider/model` of the one that wrote it; empty for one that the ledger gave."""
    reserve: bool = False
    """Whether it stands in no request, as another over the same turns was there before it."""
    held_out: bool = False
    """Whether no request may show it: another over its turns was taken back, or something of them left out since."""


def packets_of(*, actor: Actor, session_id: UUID) -> tuple[PacketRange, ...]:
    """Every packet of a session, oldest first.

    Raises:
        ServiceError: 404.
    """
    return _packets(log_of(session_of(actor, session_id)))


def _packets(log: PostgresLog) -> tuple[PacketRange, ...]:
    made = [e for e in log.every(EventType.COMPACTED) if e.payload["reason"] == PACKET_REASON]
    if not made:
        return ()
    undone = history_acts(log).undone
    store = packet_store(log, undone)
    kept = {event.sequence for event in store.events}
    reserve = store.reserve(named_packet(log))
    turns = [(turn.first, turn.last, turn.number) for turn in turn_costs(log)]
    return tuple(
        PacketRange(
            event.sequence,
            min(covered),
            max(covered),
            event.payload["tokens_before"],
            event.payload["tokens_after"],
            event.sequence in undone,
            event.payload["kind"],
            (event.payload.get("writer") or {}).get("model", ""),
            event.sequence in reserve,
            event.sequence not in kept,
        )
        for event in sorted(made, key=lambda event: event.sequence)
        if (covered := _covered(turns, event.payload))
    )


def _covered(turns: Sequence[tuple[int, int, int]], told: Mapping[str, Any]) -> list[int]:
    first, last = told["first_sequence"], told["replaced_through_sequence"]
    return [number for begin, end, number in turns if first <= begin and end <= last]
