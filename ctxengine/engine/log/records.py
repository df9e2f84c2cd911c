"""What a log holds: its head, its events, the facts of its units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ctxengine.engine.events import EventType, ItemFacts
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.trust.levels import Trust

GENESIS_HASH = "0" * 64


@dataclass(frozen=True, slots=True)
class Head:
    """Where a session's log ends; what a writer compares before it appends."""

    sequence: EventSeq = EventSeq(0)
    hash: str = GENESIS_HASH
    content_sequence: EventSeq = EventSeq(0)
    """Newest content event."""
    act_sequence: EventSeq = EventSeq(0)
    """Newest rotation or operator act."""
    items: int = 0
    units: int = 0
    turns: int = 0
    tokens: int = 0
    pointer_tokens: int = 0
    result_tokens: int = 0


@dataclass(frozen=True, slots=True)
class BodyCommitment:
    """What an event commits to about its content: erasing bytes and salt leaves the chain intact."""

    id: str
    sha256: str
    """sha256(salt + bytes)."""
    length: int
    """Bytes."""


@dataclass(frozen=True, slots=True)
class EventRecord:
    """One appended event."""

    sequence: EventSeq
    type: EventType
    trust: Trust
    payload: Mapping[str, Any]
    run: str | None
    body: BodyCommitment | None
    tokens: int
    """Tokens of the event's items, as counted at append."""
    prev_hash: str
    hash: str
    recorded_at: datetime
    idempotency_key: str = ""


@dataclass(slots=True)
class UnitFacts:
    """A unit's row: what it takes and what came before it."""

    sequence: EventSeq
    index: int
    kind: str
    run: str | None
    last_sequence: EventSeq
    open_calls: int = 0
    tokens: int = 0
    pointer_tokens: int = 0
    result_tokens: int = 0
    before_tokens: int = 0
    before_pointer_tokens: int = 0
    before_result_tokens: int = 0
    before_turns: int = 0


@dataclass(slots=True)
class UnitDelta:
    """What results add to a unit that was appended earlier."""

    sequence: EventSeq
    last_sequence: EventSeq
    closed_calls: int = 0
    tokens: int = 0
    pointer_tokens: int = 0
    result_tokens: int = 0


@dataclass(frozen=True, slots=True)
class ItemRecord:
    """An item's facts with its place."""

    sequence: EventSeq
    unit: EventSeq
    trust: Trust
    run: str | None
    facts: ItemFacts


@dataclass(slots=True)
class Batch:
    """Everything one append writes."""

    events: list[EventRecord] = field(default_factory=list)
    items: list[ItemRecord] = field(default_factory=list)
    units: list[UnitFacts] = field(default_factory=list)
    deltas: dict[EventSeq, UnitDelta] = field(default_factory=dict)
    head: Head = field(default_factory=Head)
