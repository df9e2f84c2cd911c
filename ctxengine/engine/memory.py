"""The in-memory log: the ledger's ports without a database (design 3).

For library users and for the replay lab. It passes the same contract suite as the Postgres adapter.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from heapq import merge
from itertools import islice, takewhile

from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import ContentFormat, DecodedItem, ItemKind, Unit
from ctxengine.engine.log.chain import commit_body
from ctxengine.engine.log.hydrate import DecodeOnce, decode_event, hydrate_units
from ctxengine.engine.log.records import (
    Batch,
    BodyCommitment,
    EventRecord,
    Head,
    ItemRecord,
    UnitDelta,
    UnitFacts,
)
from ctxengine.engine.log.units import plan_batch
from ctxengine.engine.ports import OpenCall, StaleHead, SumColumn, UnitSums

_DECODED_KEPT = 64


class MemoryLog:
    """One session's log in lists."""

    def __init__(
        self,
        tenant: str,
        session: str,
        *,
        salt: Callable[[], bytes],
        body_id: Callable[[int], str] = str,
    ) -> None:
        """Start an empty log.

        Args:
            salt: gives 16 unguessable bytes per body.
            body_id: names a body, given the sequence of its event.
        """
        self.tenant = tenant
        self.session = session
        self._salt = salt
        self._body_id = body_id
        self._head = Head()
        self._events: list[EventRecord] = []
        self._by_type: dict[EventType, list[EventRecord]] = {}
        self._bodies: dict[str, tuple[bytes, bytes] | None] = {}
        self._items: dict[EventSeq, list[ItemRecord]] = {}
        self._units: list[UnitFacts] = []
        self._starts: list[EventSeq] = []
        self._sums: dict[SumColumn, list[int]] = {column: [] for column in SumColumn}
        self._calls: dict[str, tuple[EventSeq, int]] = {}
        self._open: dict[tuple[int, int], OpenCall] = {}
        self._built: dict[EventSeq, Unit] = {}
        self._decoded: dict[EventSeq, Sequence[DecodedItem]] = {}
        """Contents of the newest events, as their writer read them."""
        self._found: dict[EventSeq, UnitSums] = {}
        """Answers of `at` since the last append."""

    def copy(self) -> MemoryLog:
        """A log of its own with the same contents: what is appended to one is not in the other."""
        other = MemoryLog(self.tenant, self.session, salt=self._salt, body_id=self._body_id)
        other._head = self._head
        other._events = self._events.copy()
        other._by_type = {type: known.copy() for type, known in self._by_type.items()}
        other._bodies = self._bodies.copy()
        other._items = {start: items.copy() for start, items in self._items.items()}
        # Results that come late are added up in these.
        other._units = [replace(unit) for unit in self._units]
        other._starts = self._starts.copy()
        other._sums = {column: sums.copy() for column, sums in self._sums.items()}
        other._calls, other._open = self._calls.copy(), self._open.copy()
        other._built, other._decoded = self._built.copy(), self._decoded.copy()
        return other

    def head(self) -> Head:
        """Where the log ends now."""
        return self._head

    def append(
        self,
        drafts: Sequence[EventDraft],
        *,
        expected: EventSeq | None,
        at: datetime,
        key: str = "",
    ) -> Batch:
        """Append all drafts or none; see `SessionLog.append`."""
        if expected is not None and expected != self._head.sequence:
            raise StaleHead(f"The log is at {self._head.sequence}, not at {expected}.")
        stored = [self._commit(draft, offset) for offset, draft in enumerate(drafts, start=1)]
        batch = plan_batch(
            drafts,
            head=self._head,
            tenant=self.tenant,
            session=self.session,
            bodies=[commitment for commitment, _ in stored],
            recorded_at=at,
            unit_of_call=self._unit_of_call,
            idempotency_key=key,
        )
        for commitment, kept in stored:
            if commitment is not None:
                self._bodies[commitment.id] = kept
        self._write(batch, drafts)
        return batch

    def _commit(
        self, draft: EventDraft, offset: int
    ) -> tuple[BodyCommitment | None, tuple[bytes, bytes] | None]:
        if draft.body is None:
            return None, None
        salt, data = self._salt(), draft.body.encode("utf-8", "surrogatepass")
        body_id = self._body_id(self._head.sequence + offset)
        return commit_body(body_id, salt, data), (salt, data)

    def _write(self, batch: Batch, drafts: Sequence[EventDraft]) -> None:
        self._found.clear()
        self._events.extend(batch.events)
        for event in batch.events:
            self._by_type.setdefault(event.type, []).append(event)
        for item in batch.items:
            self._items.setdefault(item.unit, []).append(item)
        for delta in batch.deltas.values():
            self._shift(delta)
        for unit in batch.units:
            self._units.append(unit)
            self._starts.append(unit.sequence)
            self._sums[SumColumn.TOKENS].append(unit.before_tokens)
            self._sums[SumColumn.POINTER].append(unit.before_pointer_tokens)
            self._sums[SumColumn.RESULTS].append(unit.before_result_tokens)
            self._sums[SumColumn.SAVED].append(unit.before_tokens - unit.before_pointer_tokens)
        for event, draft in zip(batch.events, drafts, strict=True):
            if draft.decoded:
                self._decoded[event.sequence] = draft.decoded
        while len(self._decoded) > _DECODED_KEPT:
            del self._decoded[next(iter(self._decoded))]
        self._track_calls(batch, drafts)
        self._head = batch.head

    def _shift(self, delta: UnitDelta) -> None:
        place = bisect_left(self._starts, delta.sequence)
        unit = self._units[place]
        unit.last_sequence = delta.last_sequence
        unit.open_calls -= delta.closed_calls
        unit.tokens += delta.tokens
        unit.pointer_tokens += delta.pointer_tokens
        unit.result_tokens += delta.result_tokens
        self._built.pop(unit.sequence, None)
        for later in range(place + 1, len(self._units)):
            after = self._units[later]
            after.before_tokens += delta.tokens
            after.before_pointer_tokens += delta.pointer_tokens
            after.before_result_tokens += delta.result_tokens
            self._sums[SumColumn.TOKENS][later] = after.before_tokens
            self._sums[SumColumn.POINTER][later] = after.before_pointer_tokens
            self._sums[SumColumn.RESULTS][later] = after.before_result_tokens
            self._sums[SumColumn.SAVED][later] = after.before_tokens - after.before_pointer_tokens

    def _track_calls(self, batch: Batch, drafts: Sequence[EventDraft]) -> None:
        for item in batch.items:
            facts = item.facts
            if facts.kind is ItemKind.TOOL_CALL:
                self._calls[facts.wire_call_id] = (item.sequence, facts.ordinal)
                self._open[item.sequence, facts.ordinal] = OpenCall(
                    item.sequence,
                    facts.ordinal,
                    facts.name,
                    facts.call_id,
                    facts.wire_call_id,
                    item.run,
                )
        for draft in drafts:
            if draft.answers is not None:
                self._open.pop(draft.answers, None)

    def _unit_of_call(self, call: tuple[int, int]) -> EventSeq | None:
        return EventSeq(call[0]) if call in self._open else None

    def events(
        self, *, after: EventSeq = EventSeq(0), limit: int | None = None
    ) -> Sequence[EventRecord]:
        """Events behind `after`, oldest first."""
        end = None if limit is None else after + limit
        return self._events[after:end]

    def newest(self, type: EventType) -> EventRecord | None:
        """The newest event of a type."""
        known = self._by_type.get(type)
        return known[-1] if known else None

    def newest_yields(self) -> Sequence[EventRecord]:
        """All yields applied, newest first."""
        return self.every(EventType.YIELD_APPLIED)

    def every(self, type: EventType) -> Sequence[EventRecord]:
        """All events of a type, newest first."""
        return self._by_type.get(type, [])[::-1]

    def latest(
        self,
        types: Collection[EventType],
        *,
        limit: int | None = None,
        skip: int = 0,
        after: EventSeq = EventSeq(0),
    ) -> Sequence[EventRecord]:
        """The newest events of these types, newest first."""
        lists = [reversed(self._by_type[type]) for type in types if type in self._by_type]
        found = merge(*lists, key=lambda event: event.sequence, reverse=True)
        behind = takewhile(lambda event: event.sequence > after, found)
        return list(islice(behind, skip, None if limit is None else skip + limit))

    def texts(self, body_ids: Collection[str]) -> Mapping[str, str | None]:
        """Raw texts of several bodies; None for an erased one."""
        return {body_id: self.body(body_id) for body_id in body_ids}

    def body(self, body_id: str) -> str | None:
        """Raw text of a body; None when it was erased."""
        kept = self._bodies[body_id]
        return None if kept is None else kept[1].decode("utf-8", "surrogatepass")

    def erase(self, body_id: str) -> None:
        """Blank a body and its salt; the event's commitment stays and the chain still verifies."""
        self._bodies[body_id] = None
        self._built.clear()
        self._decoded.clear()

    def let_go(self, below: EventSeq) -> None:
        """Forget the contents of units before `below` as they were read; whoever asks for one reads it again."""
        for start in [start for start in self._built if start < below]:
            del self._built[start]

    def taken_call_ids(self, candidates: Collection[str]) -> set[str]:
        """Which of these wire call ids the session already uses."""
        return {candidate for candidate in candidates if candidate in self._calls}

    def open_calls(self) -> Sequence[OpenCall]:
        """Calls nobody has answered yet, in call order."""
        return [self._open[place] for place in sorted(self._open)]

    def at(self, sequence: EventSeq) -> UnitSums:
        """Sums over the units that start before `sequence`."""
        found = self._found.get(sequence)
        if found is None:
            found = self._sums_at(bisect_left(self._starts, sequence), sequence)
            self._found[sequence] = found
        return found

    def first(self, column: SumColumn, at_least: int, below: EventSeq) -> UnitSums:
        """The first place whose sum reaches `at_least`; `below` when none before it does."""
        limit = bisect_left(self._starts, below)
        place = bisect_left(self._sums[column], at_least, 0, limit)
        return self._sums_at(place, self._starts[place] if place < limit else below)

    def _sums_at(self, place: int, sequence: EventSeq) -> UnitSums:
        if place < len(self._units):
            unit = self._units[place]
            return UnitSums(
                sequence,
                place,
                unit.before_turns,
                unit.before_tokens,
                unit.before_pointer_tokens,
                unit.before_result_tokens,
            )
        head = self._head
        return UnitSums(
            sequence,
            head.units,
            head.turns,
            head.tokens,
            head.pointer_tokens,
            head.result_tokens,
        )

    def units(self, first: EventSeq, below: EventSeq) -> Sequence[Unit]:
        """Units that start in [first, below), oldest first."""
        start, end = bisect_left(self._starts, first), bisect_left(self._starts, below)
        starts = self._starts[start:end]
        known = [unit for unit in map(self._built.get, starts) if unit is not None]
        return known if len(known) == len(starts) else [self._unit(start) for start in starts]

    def unit_of_item(self, sequence: EventSeq) -> Unit | None:
        """The unit that the event at `sequence` belongs to; None for an event without items."""
        for start in self._starts[: bisect_left(self._starts, sequence + 1)][::-1]:
            if any(item.sequence == sequence for item in self._items[start]):
                return self._unit(start)
        return None

    def _unit(self, sequence: EventSeq) -> Unit:
        built = self._built.get(sequence)
        if built is None:
            once = DecodeOnce(self._decode)
            (built,) = hydrate_units(self._items[sequence], once)
            self._built[sequence] = built
        return built

    def _decode(self, record: ItemRecord) -> Sequence[DecodedItem] | None:
        known = self._decoded.pop(record.sequence, None)
        if known is not None:
            return known
        event = self._events[record.sequence - 1]
        text = self.body(event.body.id) if event.body is not None else ""
        if text is None:
            return None
        return decode_event(event.type, ContentFormat(event.payload["format"]), text)
