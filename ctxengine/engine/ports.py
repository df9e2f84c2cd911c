"""The engine's ports: what it asks of the world, as small protocols (design 3).

Adapters live in `ctxengine.ledger` (Postgres) and in `ctxengine.engine.memory`; both pass one contract suite.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from ctxengine.engine.compaction.soundness import SummaryAnswer
from ctxengine.engine.compaction.source import SummarySource
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import Part, Unit
from ctxengine.engine.log.records import Batch, EventRecord, Head


class TokenCounter(Protocol):
    """Counts for one model family. Pure: equal arguments give equal numbers, whatever was asked before."""

    label: str
    """Counter version and family, recorded with every stored count."""
    exact: bool
    """Whether text counts are the model's own (then sources say `counted`, else `estimated`)."""
    tools_once: int
    """Tokens that a request pays once for defining any tool at all."""

    def text(self, text: str) -> int:
        """Tokens of a text, rounded up."""
        ...

    def parts(self, parts: Sequence[Part]) -> int:
        """Tokens of a message's content, framing included."""
        ...

    def call(self, name: str, arguments: str) -> int:
        """Tokens of a tool call, framing included."""
        ...

    def tool(self, name: str, description: str, schema: str) -> int:
        """Tokens of a tool definition, framing included."""
        ...


class SumColumn(StrEnum):
    """Running sums that a cut can be looked up by."""

    TOKENS = "before_tokens"
    POINTER = "before_pointer_tokens"
    RESULTS = "before_result_tokens"
    SAVED = "before_saved_tokens"


@dataclass(frozen=True, slots=True)
class UnitSums:
    """Sums over all units before a place in the log. None of them ever falls from one unit to the next."""

    sequence: EventSeq
    """Where the next unit starts."""
    index: int
    turns: int
    tokens: int
    pointer_tokens: int
    result_tokens: int

    @property
    def saved_tokens(self) -> int:
        """What a pointer floor at this place saves."""
        return self.tokens - self.pointer_tokens


class UnitIndex(Protocol):
    """Indexed look-ups over a session's units; none of them costs more as the session ages."""

    def at(self, sequence: EventSeq) -> UnitSums:
        """Sums over the units that start before `sequence`."""
        ...

    def first(self, column: SumColumn, at_least: int, below: EventSeq) -> UnitSums:
        """The first place whose sum reaches `at_least`; the place `below` when no unit before it does."""
        ...


class UnitSource(Protocol):
    """Reads units with their content."""

    def units(self, first: EventSeq, below: EventSeq) -> Sequence[Unit]:
        """Units that start in [first, below), oldest first."""
        ...


class Summariser(Protocol):
    """Writes summaries. What it gets holds nothing untrusted; what it gives is installed only when it is sound."""

    version: str
    """Recorded with every summary it wrote."""

    def summarise(self, source: SummarySource, budget_tokens: int) -> SummaryAnswer:
        """A summary of the source within a budget."""
        ...


class MemorySource(Protocol):
    """Where recall lines come from. Asked once per step; what it answers is recorded with the step (design 7.16)."""

    def recall(self, directive: str, limit: int) -> Sequence[tuple[str, str]]:
        """Lines worth recalling for what the user asks now, best first, as (id, text)."""
        ...


class Embedder(Protocol):
    """Turns texts into vectors whose directions are alike where the texts mean alike. Off unless one is configured."""

    version: str
    """Stored with every vector: vectors of two versions are never compared."""

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """One vector of finite numbers for each text, all of one length."""
        ...


class StaleHead(Exception):
    """The log has grown since the writer looked; look again and redo the work."""


class SessionLog(UnitIndex, UnitSource, Protocol):
    """One session's log: append and read. Reads cost what they return, not what the session has lived through."""

    tenant: str
    session: str

    def head(self) -> Head:
        """Where the log ends now."""
        ...

    def append(
        self,
        drafts: Sequence[EventDraft],
        *,
        expected: EventSeq | None,
        at: datetime,
        key: str = "",
    ) -> Batch:
        """Append all drafts or none, in order, gapless.

        Args:
            expected: last sequence the writer has seen; None appends behind whatever is there.
            at: time of recording, with offset.
            key: idempotency key of the call that writes.

        Raises:
            StaleHead: the log has grown since.
            OrphanPair: a result answers no call.
        """
        ...

    def events(
        self, *, after: EventSeq = EventSeq(0), limit: int | None = None
    ) -> Sequence[EventRecord]:
        """Events behind `after`, oldest first."""
        ...

    def newest(self, type: EventType) -> EventRecord | None:
        """The newest event of a type."""
        ...

    def newest_yields(self) -> Sequence[EventRecord]:
        """All `context.yield.applied` events, newest first; a session has few."""
        ...

    def every(self, type: EventType) -> Sequence[EventRecord]:
        """All events of a type that a session has few of, newest first."""
        ...

    def latest(
        self,
        types: Collection[EventType],
        *,
        limit: int | None = None,
        skip: int = 0,
        after: EventSeq = EventSeq(0),
    ) -> Sequence[EventRecord]:
        """The newest events of these types, newest first; all of them without a limit.

        Args:
            skip: how many of the newest are left out.
            after: only events behind this one.
        """
        ...

    def body(self, body_id: str) -> str | None:
        """Raw text of a body; None when it was erased."""
        ...

    def texts(self, body_ids: Collection[str]) -> Mapping[str, str | None]:
        """Raw texts of several bodies in one look; None for an erased one."""
        ...

    def unit_of_item(self, sequence: EventSeq) -> Unit | None:
        """The unit that the event at `sequence` belongs to; None for an event without items."""
        ...

    def taken_call_ids(self, candidates: Collection[str]) -> set[str]:
        """Which of these wire call ids the session already uses."""
        ...

    def open_calls(self) -> Sequence[OpenCall]:
        """Calls nobody has answered yet, in call order."""
        ...


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call that waits for its result."""

    sequence: EventSeq
    ordinal: int
    name: str
    call_id: str
    """As the provider sent it (model view)."""
    wire_call_id: str
    run: str | None
