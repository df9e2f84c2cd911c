"""The log of a session that is being imported: written down as lines at once and handed over part by part (design 4).

Nobody else writes to it, and a result always follows its call's step. So an event needs no batch and no records: its place, its
hash and its lines follow from what stands here. `append` is for everything else, and both may be mixed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from json.encoder import encode_basestring
from typing import Any, NamedTuple

from ctxengine.engine.canonical import canonical_bytes
from ctxengine.engine.events import EventDraft, EventType, ItemFacts
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import ContentFormat, DecodedItem, ItemKind, Unit
from ctxengine.engine.log.chain import hashed_text, payload_text, stamp
from ctxengine.engine.log.hydrate import DecodeOnce, decode_event, hydrate_units
from ctxengine.engine.log.records import Batch, EventRecord, Head, ItemRecord, UnitDelta, UnitFacts
from ctxengine.engine.log.units import UNIT_KIND
from ctxengine.engine.memory import MemoryLog
from ctxengine.engine.ports import OpenCall, SumColumn
from ctxengine.engine.trust.levels import Trust
from ctxengine.ledger.copy_lines import (
    BODY,
    EVENT,
    ITEM,
    NO_BODY,
    UNIT,
    Columns,
    Facts,
    Key,
    body_line,
    body_line_of,
    body_named,
    event_line,
    event_line_of,
    hex_field,
    item_line,
    item_line_of,
    text_field,
    unit_line,
)

_GONE = EventRecord(
    EventSeq(0),
    EventType.REQUEST_STARTED,
    Trust.PLATFORM,
    {},
    None,
    None,
    0,
    "",
    "",
    datetime.min.replace(tzinfo=UTC),
)
"""Stands where an event's record was, or never was."""

_TYPES = {type: type.value for type in EventType}
_TRUSTS = {trust: trust.value for trust in Trust}
"""Looking a value up is much faster than asking the member for it."""


class Lines(NamedTuple):
    """Lines of one table."""

    columns: Columns
    lines: list[str]


class Content(NamedTuple):
    """A content event as it comes out of a file."""

    type: EventType
    format: ContentFormat
    trust: Trust
    run: str
    raw: str
    payload: dict[str, Any]
    rows: Sequence[Facts]
    answers: OpenCall | None


class _Placed(NamedTuple):
    """An item as `append_content` keeps it: a record where somebody asks for it."""

    sequence: EventSeq
    unit: EventSeq
    trust: Trust
    run: str
    row: Facts

    def record(self) -> ItemRecord:
        return ItemRecord(self.sequence, self.unit, self.trust, self.run, ItemFacts(*self.row))


class ImportLog(MemoryLog):
    """A log in memory that lets go of what was handed over; sums and open calls stay.

    Whoever hands over must not ask for older events or contents again.
    """

    def __init__(
        self, tenant: str, session: str, *, salt: Callable[[], bytes], body_id: Callable[[int], str]
    ) -> None:
        """Start an empty log; see `MemoryLog`."""
        self._key = Key(tenant, session)
        self._begins = self._key.begins
        self._whose = f'"session":{encode_basestring(session)},"tenant":{encode_basestring(tenant)}'
        self._at: datetime | None = None
        self._stamp = self._iso = ""
        """The newest event's moment, as its hash and as its line say it."""
        self._body_lines: list[str] = []
        self._event_lines: list[str] = []
        self._item_lines: list[str] = []
        self._kept: list[tuple[EventSeq, str]] = []
        """Events with contents, and their bodies' ids, that may be asked for."""
        self._contents: dict[EventSeq, tuple[EventType, ContentFormat, str]] = {}
        """Of those that `append_content` wrote: what reading them again takes."""
        self._placed: dict[EventSeq, list[_Placed]] = {}
        """Their items, by unit."""
        self._units_told = 0
        """Units that were handed over."""
        self._forgotten = 0
        """Events whose records are gone."""
        self.waiting_bytes = 0
        """Bytes of contents that were not handed over."""
        self.shifts = 0
        """How often a late result changed the sums behind its unit."""
        self.newest_content: EventType | None = None
        """Type of the newest content event."""
        self.newest_results = EventSeq(0)
        """The newest unit that `append_content` gave a tool result of at least a token."""
        super().__init__(tenant, session, salt=salt, body_id=body_id)

    @property
    def _head(self) -> Head:
        return Head(
            EventSeq(self.sequence),
            self._hash,
            EventSeq(self.content_sequence),
            EventSeq(self._act),
            self._item_count,
            len(self._units),
            self._turns,
            self._tokens,
            self._pointer,
            self._results,
        )

    @_head.setter
    def _head(self, head: Head) -> None:
        self.sequence, self._hash = int(head.sequence), head.hash
        self.content_sequence, self._act = int(head.content_sequence), head.act_sequence
        self._item_count, self._turns = head.items, head.turns
        self._tokens, self._pointer = head.tokens, head.pointer_tokens
        self._results = head.result_tokens

    def append(
        self,
        drafts: Sequence[EventDraft],
        *,
        expected: EventSeq | None,
        at: datetime,
        key: str = "",
    ) -> Batch:
        """Append all drafts or none; see `SessionLog.append`."""
        batch = super().append(drafts, expected=expected, at=at, key=key)
        self.shifts += len(batch.deltas)
        for event in batch.events:
            self._event_lines.append(event_line(self._key, event))
            body = event.body
            kept = self._bodies[body.id] if body is not None else None
            if body is not None and kept is not None:
                self.waiting_bytes += body.length
                self._kept.append((event.sequence, body.id))
                self._body_lines.append(body_line(self._key, *kept, body))
            if event.sequence == self.content_sequence:
                self.newest_content = event.type
        self._item_lines += [item_line(self._key, item) for item in batch.items]
        return batch

    def append_act(self, type: EventType, run: str, payload: dict[str, Any], at: datetime) -> None:
        """Append an event of the platform's that carries nothing and opens no step."""
        self._events.append(_GONE)
        self._chain(type.value, Trust.PLATFORM.value, run, payload, "null", 0, NO_BODY, at)

    def append_content(self, content: Content, at: datetime) -> None:
        """Append one content event with its items; a result's unit is that of its call."""
        type, format, trust, run, raw, payload, rows, _ = content
        salt = self._salt()
        try:
            data = raw.encode()
            field = text_field(raw)
        except UnicodeEncodeError:
            data = raw.encode("utf-8", "surrogatepass")
            field = hex_field(data)
        body_id = self._body_id(self.sequence + 1)
        digest, length = sha256(salt + data).hexdigest(), len(data)
        self._body_lines.append(body_line_of(self._begins, body_id, salt, field, digest, length))
        self._bodies[body_id] = (salt, data)
        self.waiting_bytes += length
        tokens = sum([row[2] for row in rows])
        self._events.append(_GONE)
        self._chain(
            _TYPES[type], _TRUSTS[trust], run, payload,
            f'["{digest}",{length}]', tokens, body_named(body_id, digest, length), at,
        )  # fmt: skip
        sequence = EventSeq(self.sequence)
        self.content_sequence, self.newest_content = self.sequence, type
        self._kept.append((sequence, body_id))
        self._contents[sequence] = (type, format, body_id)
        self._found.clear()
        if rows:
            self._place(content, sequence, tokens)

    def _chain(
        self, type: str, trust: str, run: str, payload: dict[str, Any], body: str, tokens: int,
        about: str, at: datetime,
    ) -> None:  # fmt: skip
        """The next event's hash and line; every event of an import is of one moment, as a rule.

        Args:
            body: what the hash says of the body.
            about: what the line says of it.
        """
        self.sequence += 1
        if at is not self._at:
            self._at, self._stamp, self._iso = at, stamp(at), at.isoformat()
        fields = payload_text(payload)
        before, sequence = self._hash, self.sequence
        text = hashed_text(
            before,
            at=self._stamp,
            body=body,
            payload=fields,
            run=f'"{run}"',
            sequence=sequence,
            whose=self._whose,
            tokens=tokens,
            what=f'"trust":"{trust}","type":"{type}"',
        )
        try:
            data = text.encode()
        except UnicodeEncodeError:
            # This names what is wrong with the text.
            canonical_bytes(payload)
            raise
        self._hash = sha256(data).hexdigest()
        self._event_lines.append(
            event_line_of(
                self._begins, sequence, type, run, trust, fields, about, tokens, before, self._hash, self._iso
            )
        )  # fmt: skip

    def _place(self, content: Content, sequence: EventSeq, tokens: int) -> None:
        """Give an event's items their unit, and the unit and the sums what they take."""
        rows, answers = content.rows, content.answers
        pointer = sum([row[3] for row in rows])
        results = sum([row[2] for row in rows if row[1] is ItemKind.TOOL_RESULT])
        home = sequence if answers is None else answers.sequence
        if answers is None:
            self._new_unit(content, sequence)
        else:
            del self._open[answers.sequence, answers.ordinal]
        last = self._units[-1]
        if last.sequence == home:
            last.last_sequence = sequence
            last.open_calls -= answers is not None
            last.tokens += tokens
            last.pointer_tokens += pointer
            last.result_tokens += results
            self._built.pop(home, None)
        else:
            self.shifts += 1
            self._shift(UnitDelta(home, sequence, 1, tokens, pointer, results))
        self._tokens += tokens
        self._pointer += pointer
        self._results += results
        self._item_count += len(rows)
        if results and home > self.newest_results:
            self.newest_results = home
        trust, run = content.trust, content.run
        kept = self._placed.setdefault(home, [])
        begins, told = f"{self._begins}{sequence}\t", f"{_TRUSTS[trust]}\t{run}"
        for row in rows:
            kept.append(_Placed(sequence, home, trust, run, row))
            self._item_lines.append(item_line_of(begins, home, told, row))

    def _new_unit(self, content: Content, sequence: EventSeq) -> None:
        opened = 0
        for row in content.rows:
            if row[1] is ItemKind.TOOL_CALL:
                opened += 1
                self._calls[row[9]] = (sequence, row[0])
                self._open[sequence, row[0]] = OpenCall(
                    sequence, row[0], row[7], row[8], row[9], content.run
                )
        kind = UNIT_KIND.get(content.type) or ("step" if opened else "answer")
        self._units.append(
            UnitFacts(
                sequence, len(self._units), kind, content.run, sequence, opened, 0, 0, 0,
                self._tokens, self._pointer, self._results, self._turns,
            )
        )  # fmt: skip
        self._turns += kind == "user"
        self._starts.append(sequence)
        sums = self._sums
        sums[SumColumn.TOKENS].append(self._tokens)
        sums[SumColumn.POINTER].append(self._pointer)
        sums[SumColumn.RESULTS].append(self._results)
        sums[SumColumn.SAVED].append(self._tokens - self._pointer)

    def said_last(self, start: EventSeq) -> int:
        """Tokens of the user's and the input's units that the log ends with, as far as they start at a place or behind it."""
        tokens = 0
        for place in range(len(self._units) - 1, -1, -1):
            unit = self._units[place]
            if unit.sequence < start or unit.kind not in ("user", "input"):
                break
            tokens += unit.tokens
        return tokens

    @property
    def any_open(self) -> bool:
        """Whether a call waits for its result."""
        return bool(self._open)

    def open_call(self, sequence: int, ordinal: int) -> OpenCall:
        """A call that waits for its result."""
        return self._open[sequence, ordinal]

    def hand_over(self, cut: EventSeq, *, last: bool = False) -> list[Lines]:
        """The lines of what was appended since the last time; what stands before `cut` is forgotten.

        A unit comes once neither it nor one before it can grow, since its sums follow from theirs.
        """
        lines = [
            Lines(BODY, self._body_lines),
            Lines(EVENT, self._event_lines),
            Lines(ITEM, self._item_lines),
        ]
        told, self._units_told = self._units_told, len(self._units) if last else self._grown
        units = self._units[told : self._units_told]
        lines.append(Lines(UNIT, [unit_line(self._key, unit) for unit in units]))
        self._body_lines, self._event_lines, self._item_lines = [], [], []
        self.waiting_bytes = 0
        self._forget(cut)
        return lines

    @property
    def _grown(self) -> int:
        """Units that grow no more: those before the first with an open call, and before the newest."""
        newest = max(0, len(self._units) - 1)
        waiting = min((EventSeq(sequence) for sequence, _ in self._open), default=None)
        return newest if waiting is None else min(newest, bisect_left(self._starts, waiting))

    def _forget(self, cut: EventSeq) -> None:
        """Drop what stands before the cut: every event's record, the contents, the items."""
        for place in range(self._forgotten, max(self._forgotten, cut - 1)):
            self._events[place] = _GONE
        self._forgotten = max(self._forgotten, cut - 1)
        ahead = []
        for kept in self._kept:
            sequence, body_id = kept
            if sequence >= cut:
                ahead.append(kept)
            else:
                del self._bodies[body_id]
                self._items.pop(sequence, None)
                self._placed.pop(sequence, None)
                self._contents.pop(sequence, None)
        self._kept = ahead
        self.let_go(cut)

    def _unit(self, sequence: EventSeq) -> Unit:
        built = self._built.get(sequence)
        if built is None:
            placed = self._placed.get(sequence)
            records = [entry.record() for entry in placed] if placed else self._items[sequence]
            (built,) = hydrate_units(records, DecodeOnce(self._decode))
            self._built[sequence] = built
        return built

    def _decode(self, record: ItemRecord) -> Sequence[DecodedItem] | None:
        content = self._contents.get(record.sequence)
        if content is None:
            return super()._decode(record)
        type, format, body_id = content
        return decode_event(type, format, self.body(body_id) or "")
