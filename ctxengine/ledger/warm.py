"""A session's log that remembers decoded units from step to step (design 12).

What is remembered is checked against the ledger before it is used: the chain hash at the remembered head stands for everything
up to it, the number of erased bodies for what went since, the counter's label for the stored counts. So a step reads its new
items and nothing of the session's past.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import Any
from uuid import UUID

from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import ContentFormat, Item, Unit, unit_of
from ctxengine.engine.log.hydrate import decode_event, hydrate
from ctxengine.engine.log.records import Batch, EventRecord, Head
from ctxengine.engine.ports import UnitSums
from ctxengine.ledger import log_reads
from ctxengine.ledger.ahead import Read, Rows, fetch
from ctxengine.ledger.inserts import Statement
from ctxengine.ledger.log import PostgresLog, RunStand
from ctxengine.ledger.models import ItemRow
from ctxengine.ledger.records import item_record

_PLACES_KEPT = 3
"""Places in the log whose sums the next step is taken to ask for too."""
_KEPT_IN_FRONT = 500
"""Units before the first one asked for that are kept in case they are asked for again."""

_ITEM_COLUMNS = tuple(column.attname for column in ItemRow._meta.concrete_fields)
_ITEMS = (
    f"SELECT {', '.join(f'i.{name}' for name in _ITEM_COLUMNS)}, e.type, e.payload->>'format', b.data, b.erased_at FROM item i"  # noqa: S608
    " JOIN event e ON e.tenant_id = i.tenant_id AND e.session_id = i.session_id AND e.sequence = i.sequence"
    " JOIN body b ON b.tenant_id = e.tenant_id AND b.session_id = e.session_id AND b.id = e.body_id"
    " WHERE i.tenant_id = %s AND i.session_id = %s AND"
)
_IN_ORDER = "ORDER BY i.unit_sequence, i.sequence, i.ordinal"
_ITEMS_SINCE = f"{_ITEMS} i.sequence > %s {_IN_ORDER}"
_ITEMS_BETWEEN = f"{_ITEMS} i.unit_sequence >= %s AND i.unit_sequence < %s {_IN_ORDER}"
_STAND = (
    "SELECT s.last_sequence,"
    " (SELECT e.hash FROM event e WHERE e.tenant_id = s.tenant_id AND e.session_id = s.id AND e.sequence = %s),"
    " (SELECT count(*) FROM body b WHERE b.tenant_id = s.tenant_id AND b.session_id = s.id"
    " AND b.erased_at IS NOT NULL),"
    " s.counter,"
    " (SELECT count(*) FROM event e WHERE e.tenant_id = s.tenant_id AND e.session_id = s.id AND e.sequence > %s"
    " AND e.type <> ALL(%s)),"
    " s.last_hash FROM session s WHERE s.tenant_id = %s AND s.id = %s"
)
_TALK = [
    kind.value
    for kind in (
        EventType.USER_MESSAGE,
        EventType.INPUT_RECEIVED,
        EventType.REQUEST_STARTED,
        EventType.RESPONSE_COMPLETED,
        EventType.TOOL_RESULT,
        EventType.GUARD_SPOKE,
        EventType.GUARD_JUDGED,
        EventType.PRESENTATION_EMITTED,
        EventType.READING_TAKEN,
        EventType.MEMORY_READ,
        EventType.FRESH_SENT,
    )
]
"""Events that change neither floors nor acts nor state nor plan."""

_start = attrgetter("sequence")


@dataclass(slots=True)
class KnownUnits:
    """Decoded units of one session, consecutive, as they stood at one head of its log."""

    head: EventSeq = EventSeq(0)
    hash: str = ""
    """Chain hash at `head`."""
    stand: tuple[int, str] = (0, "")
    """How many bodies of the session were erased then, and what its items were counted by."""
    version: int = 0
    """Rises whenever anything but the plain talk of the loop was appended, and whenever all was forgotten."""
    units: list[Unit] = field(default_factory=list, repr=False)
    forgotten: int = 0
    """How often all was forgotten: what was read before the last time may have been erased or replaced."""
    places: tuple[EventSeq, ...] = ()
    """Places whose sums the latest steps asked for: those of floors and of the open run, which stay for many steps."""
    yields: tuple[int, Sequence[EventRecord]] | None = None
    """Yields applied, newest first, with the version they were read at."""
    newest: dict[EventType, tuple[int, EventRecord | None]] = field(default_factory=dict)
    """The newest event of a type that is no plain talk, with the version it was read at."""


class WarmLog(PostgresLog):
    """The same log for the length of one step or one rebuild, with a memory that the caller keeps.

    A proof may share one among the requests of a session, but begins with an empty one: it must not trust what serving read.
    """

    def __init__(self, tenant: UUID | str, session: UUID | str, known: KnownUnits) -> None:
        """Name the session and what is known of it; nothing is read yet."""
        super().__init__(tenant, session)
        self._known = known
        self._checked = False
        self._seen: Head | None = None
        self._at: dict[EventSeq, UnitSums] = {}

    def head(self) -> Head:
        """Where the log ends now."""
        self._seen = super().head()
        return self._seen

    def head_and_run(self, run: UUID | str) -> tuple[Head, RunStand]:
        """The same, with how a run and its session stand at that moment."""
        self._seen, stand = super().head_and_run(run)
        return self._seen, stand

    def append(
        self,
        drafts: Sequence[EventDraft],
        *,
        expected: EventSeq | None,
        at: datetime,
        key: str = "",
        also: Callable[[Batch], Iterable[Statement | None]] | None = None,
    ) -> Batch:
        """Append all drafts or none; see `SessionLog.append`."""
        self._checked, self._seen = False, None
        self._at.clear()
        return super().append(drafts, expected=expected, at=at, key=key, also=also)

    def asks_step(self, run: UUID | str) -> list[Read]:
        """What each step of a run asks, the head before all: to be read ahead."""
        return [
            *super().asks_step(run),
            self._asks_stand(),
            *([self._asks_since(self._known.head)] if self._known.units else []),
            *(log_reads.place(self.tenant, self.session, place) for place in self._known.places),
        ]

    def _asks_stand(self) -> Read:
        head = self._known.head
        return Read(_STAND, (head, head, _TALK, self.tenant, self.session))

    def _asks_since(self, head: EventSeq) -> Read:
        return Read(_ITEMS_SINCE, (self.tenant, self.session, head))

    def at(self, sequence: EventSeq) -> UnitSums:
        """Sums over the units that start before `sequence`."""
        if sequence <= 1:
            return UnitSums(sequence, 0, 0, 0, 0, 0)
        known = self._at.get(sequence)
        if known is None:
            # Units start at content events: behind the newest of them, the head's own sums hold.
            head = self._seen
            behind = head is not None and sequence > head.content_sequence
            if behind:
                known = self._placed(None, sequence)
            else:
                known = super().at(sequence)
                if sequence not in self._known.places:
                    self._known.places = (*self._known.places, sequence)[-_PLACES_KEPT:]
            self._at[sequence] = known
        return known

    def _placed(self, found: UnitSums | None, sequence: EventSeq) -> UnitSums:
        head = self._seen
        if found is not None or head is None:
            return super()._placed(found, sequence)
        return UnitSums(
            sequence, head.units, head.turns, head.tokens, head.pointer_tokens, head.result_tokens
        )

    def version(self) -> int:
        """What floors, acts, state and plan were read at; equal versions mean that none of them changed."""
        if not self._checked:
            self._catch_up()
            self._checked = True
        return self._known.version

    def newest(self, type: EventType) -> EventRecord | None:
        """The newest event of a type."""
        if type.value in _TALK:
            return super().newest(type)
        version = self.version()
        known = self._known.newest.get(type)
        if known is None or known[0] != version:
            known = self._known.newest[type] = (version, super().newest(type))
        return known[1]

    def newest_yields(self) -> Sequence[EventRecord]:
        """All yields applied, newest first."""
        version = self.version()
        if self._known.yields is None or self._known.yields[0] != version:
            self._known.yields = (version, super().newest_yields())
        return self._known.yields[1]

    def units(self, first: EventSeq, below: EventSeq) -> Sequence[Unit]:
        """Units that start in [first, below), oldest first."""
        known = self._known
        self.version()
        if not known.units or first < known.units[0].sequence:
            end = known.units[0].sequence if known.units else EventSeq(known.head + 1)
            older = fetch(_ITEMS_BETWEEN, (self.tenant, self.session, first, end))
            known.units[:0] = [unit_of(items) for items in self._decoded(older).values()]
        start = bisect_left(known.units, first, key=_start)
        end_place = bisect_left(known.units, below, key=_start)
        found = known.units[start:end_place]
        if start > 2 * _KEPT_IN_FRONT:
            del known.units[: start - _KEPT_IN_FRONT]
        return found

    def _catch_up(self) -> None:
        """Bring what is known up to the log's head, or forget it where the log is not the one it was read from."""
        known = self._known
        ((last, hash_there, *stand, acts, last_hash),) = fetch(*self._asks_stand())
        known.version += bool(acts)
        if hash_there != known.hash or tuple(stand) != known.stand or not known.units:
            known.units.clear()
            known.version += 1
            known.forgotten += 1
            known.head, known.hash, known.stand = EventSeq(last), last_hash, (stand[0], stand[1])
            return
        if last == known.head:
            return
        since, known.head, known.hash = known.head, EventSeq(last), last_hash
        for start, items in self._decoded(fetch(*self._asks_since(since))).items():
            self._take_in(start, items)

    def _take_in(self, start: EventSeq, items: list[Item]) -> None:
        units = self._known.units
        place = bisect_left(units, start, key=_start)
        if place < len(units) and units[place].sequence == start:
            units[place] = unit_of([*units[place].items, *items])
        elif place > 0:
            units.insert(place, unit_of(items))
        # What belongs to a unit before the first one known is read with that unit when it is asked for.

    def _decoded(self, rows: Rows) -> dict[EventSeq, list[Item]]:
        """Items up to the known head by unit, in the log's order; what came in behind it is another step's."""
        head = self._known.head
        seen = [row for row in rows if row[_SEQUENCE] <= head]
        by_unit: dict[EventSeq, list[Item]] = {}
        for _, group in groupby(seen, key=lambda row: row[_SEQUENCE]):
            for start, item in _items_of(list(group)):
                by_unit.setdefault(start, []).append(item)
        return by_unit


_SEQUENCE = _ITEM_COLUMNS.index("sequence")


def _items_of(rows: list[tuple[Any, ...]]) -> list[tuple[EventSeq, Item]]:
    """Items of one event with the unit each belongs to; the event's body is decoded once."""
    kind, form, data, erased_at = rows[0][len(_ITEM_COLUMNS) :]
    decoded = None
    if erased_at is None:
        text = bytes(data).decode("utf-8", "surrogatepass")
        decoded = decode_event(EventType(kind), ContentFormat(form), text)
    records = [
        item_record(ItemRow.from_db(None, _ITEM_COLUMNS, row[: len(_ITEM_COLUMNS)])) for row in rows
    ]
    return [(record.unit, hydrate(record, decoded)) for record in records]
