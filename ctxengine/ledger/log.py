"""The Postgres adapter of a session's log (design 4).

The session row is the lock. It is held only while one short transaction compares the head, writes and moves it on; counting,
building and rendering happen before. Sequences are gapless because they are handed out under that lock.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection, transaction

from ctxengine.engine.errors import EngineError
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
)
from ctxengine.engine.log.units import plan_batch
from ctxengine.engine.ports import OpenCall, StaleHead, SumColumn, UnitSums
from ctxengine.engine.trust.model_view import model_view
from ctxengine.ledger import log_reads
from ctxengine.ledger.ahead import Read, fetch, let_go, read_ahead
from ctxengine.ledger.inserts import Statement, insert, send
from ctxengine.ledger.log_reads import HEAD_COLUMNS
from ctxengine.ledger.models import Body, Event, ItemRow, SessionRow
from ctxengine.ledger.records import event_record, event_row, item_record, item_row, unit_row
from ctxengine.ledger.rows import instances

SALT_BYTES = 16

_SET_HEAD = ", ".join(f"{column} = %s" for column in HEAD_COLUMNS)


class RunStand(NamedTuple):
    """What a step asks of its run and session, as it was when the head was read."""

    state: str
    outcome: str
    settings: dict[str, Any]
    steps: int
    epoch: int
    """Of the session."""
    requests: int
    """Of the session."""


class PostgresLog:
    """One session's log in Postgres; passes the same contract suite as the in-memory one."""

    def __init__(self, tenant: UUID | str, session: UUID | str) -> None:
        """Name the session; nothing is read yet."""
        self.tenant = str(tenant)
        self.session = str(session)
        self._key = {"tenant_id": self.tenant, "session_id": self.session}

    def head(self) -> Head:
        """Where the log ends now."""
        return self._read_head(locked=False)

    def head_and_run(self, run: UUID | str) -> tuple[Head, RunStand]:
        """Where the log ends now, and how a run and its session stand at that moment.

        Raises:
            SessionRow.DoesNotExist: the session holds no such run.
        """
        rows = fetch(*log_reads.head_and_run(self.tenant, self.session, run))
        if not rows:
            raise SessionRow.DoesNotExist(f"Session {self.session} has no run {run}.")
        row = rows[0]
        state, outcome, settings, steps, epoch, requests = row[len(HEAD_COLUMNS) :]
        stand = RunStand(state, outcome, json.loads(settings), steps, epoch, requests)
        return self._head_of(row[: len(HEAD_COLUMNS)]), stand

    def asks_step(self, run: UUID | str) -> list[Read]:
        """What each step of a run asks first, the head before all: to be read ahead."""
        return [
            log_reads.head_and_run(self.tenant, self.session, run),
            log_reads.open_calls(self.tenant, self.session),
        ]

    def lock(self) -> Head:
        """The same, with the session row locked until the transaction ends."""
        return self._read_head(locked=True)

    def _read_head(self, *, locked: bool) -> Head:
        rows = fetch(*log_reads.head(self.tenant, self.session, locked=locked))
        if not rows:
            raise SessionRow.DoesNotExist(f"There is no session {self.session}.")
        return self._head_of(rows[0])

    @staticmethod
    def _head_of(row: tuple[Any, ...]) -> Head:
        return Head(EventSeq(row[0]), row[1], EventSeq(row[2]), EventSeq(row[3]), *row[4:])

    def append(
        self,
        drafts: Sequence[EventDraft],
        *,
        expected: EventSeq | None,
        at: datetime,
        key: str = "",
        also: Callable[[Batch], Iterable[Statement | None]] | None = None,
    ) -> Batch:
        """Append all drafts or none; see `SessionLog.append`.

        Args:
            also: what else is written in the same round trip, once it is known what is appended.
        """
        bodies = [self._body(draft) for draft in drafts]
        answered = [draft.answers for draft in drafts if draft.answers is not None]
        reads = [log_reads.head(self.tenant, self.session, locked=True)]
        reads += [log_reads.unit_of_call(self.tenant, self.session, call) for call in answered]
        # A refusal leaves this block in the ordinary way, for nothing is written then: so a transaction around it goes on, and
        # no savepoint is paid for.
        planned: Batch | Exception
        let_go()
        with transaction.atomic(savepoint=False), read_ahead(*reads):
            head = self.lock()
            try:
                planned = self._planned(drafts, bodies, head, expected, at, key)
            except (StaleHead, EngineError) as error:
                planned = error
            else:
                rows = [row for _, row in bodies if row is not None]
                self._write(planned, rows, at, also(planned) if also is not None else ())
        if isinstance(planned, Exception):
            raise planned
        return planned

    def _planned(
        self,
        drafts: Sequence[EventDraft],
        bodies: Sequence[tuple[BodyCommitment | None, Body | None]],
        head: Head,
        expected: EventSeq | None,
        at: datetime,
        key: str,
    ) -> Batch:
        if expected is not None and head.sequence != expected:
            raise StaleHead(f"The log is at {head.sequence}, not at {expected}.")
        return plan_batch(
            drafts,
            head=head,
            tenant=self.tenant,
            session=self.session,
            bodies=[commitment for commitment, _ in bodies],
            recorded_at=at,
            unit_of_call=self._unit_of_call,
            idempotency_key=key,
        )

    def _body(self, draft: EventDraft) -> tuple[BodyCommitment | None, Body | None]:
        if draft.body is None:
            return None, None
        salt, data = os.urandom(SALT_BYTES), draft.body.encode("utf-8", "surrogatepass")
        commitment = commit_body(str(uuid.uuid4()), salt, data)
        row = Body(
            **self._key,
            id=commitment.id,
            salt=salt,
            data=data,
            sha256=commitment.sha256,
            length=commitment.length,
            owner=draft.owner,
        )
        return commitment, row

    def _write(
        self,
        batch: Batch,
        bodies: Sequence[Body],
        at: datetime,
        more: Iterable[Statement | None],
    ) -> None:
        """Everything in one round trip."""
        send(
            [
                insert(bodies),
                insert([event_row(self._key, event) for event in batch.events]),
                insert([item_row(self._key, item) for item in batch.items]),
                *(self._shifted(delta) for delta in batch.deltas.values()),
                insert([unit_row(self._key, unit) for unit in batch.units]),
                self._moved(batch.head, at),
                *more,
            ]
        )

    def _moved(self, head: Head, at: datetime) -> Statement:
        return Statement(
            f"UPDATE session SET {_SET_HEAD}, active_at = %s WHERE tenant_id = %s AND id = %s",  # noqa: S608
            [
                head.sequence,
                head.hash,
                head.content_sequence,
                head.act_sequence,
                head.items,
                head.units,
                head.turns,
                head.tokens,
                head.pointer_tokens,
                head.result_tokens,
                at,
                self.tenant,
                self.session,
            ],
        )

    def _shifted(self, delta: UnitDelta) -> Statement:
        """Add late results to their unit and to the sums of the few units behind it."""
        here = (self.tenant, self.session, delta.sequence)
        added = (delta.tokens, delta.pointer_tokens, delta.result_tokens)
        return Statement(
            "UPDATE unit SET tokens = tokens + %s, pointer_tokens = pointer_tokens + %s,"
            " result_tokens = result_tokens + %s, open_calls = open_calls - %s, last_sequence = %s"
            " WHERE tenant_id = %s AND session_id = %s AND sequence = %s;"
            " UPDATE unit SET before_tokens = before_tokens + %s,"
            " before_pointer_tokens = before_pointer_tokens + %s,"
            " before_result_tokens = before_result_tokens + %s,"
            " before_saved_tokens = before_saved_tokens + %s"
            " WHERE tenant_id = %s AND session_id = %s AND sequence > %s",
            [
                *(*added, delta.closed_calls, delta.last_sequence, *here),
                *(*added, delta.tokens - delta.pointer_tokens, *here),
            ],
        )

    def _unit_of_call(self, call: tuple[int, int]) -> EventSeq | None:
        rows = fetch(*log_reads.unit_of_call(self.tenant, self.session, call))
        return EventSeq(rows[0][0]) if rows else None

    def events(
        self, *, after: EventSeq = EventSeq(0), limit: int | None = None
    ) -> Sequence[EventRecord]:
        """Events behind `after`, oldest first."""
        rows = Event.objects.filter(**self._key, sequence__gt=after).order_by("sequence")
        return [event_record(row) for row in (rows if limit is None else rows[:limit])]

    def newest(self, type: EventType) -> EventRecord | None:
        """The newest event of a type."""
        row = Event.objects.filter(**self._key, type=type.value).order_by("-sequence").first()
        return event_record(row) if row is not None else None

    def newest_yields(self) -> Sequence[EventRecord]:
        """All yields applied, newest first."""
        rows = Event.objects.filter(**self._key, type=EventType.YIELD_APPLIED.value)
        return [event_record(row) for row in rows.order_by("-sequence")]

    def every(self, type: EventType) -> Sequence[EventRecord]:
        """All events of a type, newest first."""
        rows = Event.objects.filter(**self._key, type=type.value)
        return [event_record(row) for row in rows.order_by("-sequence")]

    def latest(
        self,
        types: Collection[EventType],
        *,
        limit: int | None = None,
        skip: int = 0,
        after: EventSeq = EventSeq(0),
    ) -> Sequence[EventRecord]:
        """The newest events of these types, newest first."""
        rows = fetch(*self.asks_latest(types, limit=limit, skip=skip, after=after))
        return [event_record(row) for row in instances(Event, rows)]

    def asks_latest(
        self,
        types: Collection[EventType],
        *,
        limit: int | None = None,
        skip: int = 0,
        after: EventSeq = EventSeq(0),
    ) -> Read:
        """What `latest` asks, to be read ahead."""
        names = sorted(entry.value for entry in types)
        return log_reads.latest_events(
            self.tenant, self.session, names, limit=limit, skip=skip, after=after
        )

    def texts(self, body_ids: Collection[str]) -> Mapping[str, str | None]:
        """Raw texts of several bodies in one query; None for an erased one."""
        rows = Body.objects.filter(**self._key, id__in=list(body_ids))
        return {
            str(body_id): None
            if erased is not None
            else bytes(data).decode("utf-8", "surrogatepass")
            for body_id, data, erased in rows.values_list("id", "data", "erased_at")
        }

    def body(self, body_id: str) -> str | None:
        """Raw text of a body; None when it was erased."""
        data, erased = (
            Body.objects.filter(**self._key, id=body_id).values_list("data", "erased_at").get()
        )
        return None if erased is not None else bytes(data).decode("utf-8", "surrogatepass")

    def taken_call_ids(self, candidates: Collection[str]) -> set[str]:
        """Which of these wire call ids the session already uses."""
        # An id that no wire carries is never one of ours, and the column could not be asked for it.
        carried = [given for given in candidates if model_view(given) == given]
        if not carried:
            return set()
        rows = ItemRow.objects.filter(
            **self._key, kind=ItemKind.TOOL_CALL.value, wire_call_id__in=carried
        )
        return set(rows.values_list("wire_call_id", flat=True))

    def open_calls(self) -> Sequence[OpenCall]:
        """Calls nobody has answered yet, in call order."""
        rows = fetch(*log_reads.open_calls(self.tenant, self.session))
        answered = {row[5] for row in rows if row[0] == ItemKind.TOOL_RESULT.value}
        return [
            OpenCall(
                EventSeq(row[1]), row[2], row[3], row[4], row[5], str(row[6]) if row[6] else None
            )
            for row in rows
            if row[0] == ItemKind.TOOL_CALL.value and row[5] not in answered
        ]

    def at(self, sequence: EventSeq) -> UnitSums:
        """Sums over the units that start before `sequence`."""
        found = self._sums(log_reads.place(self.tenant, self.session, sequence))
        return self._placed(found, sequence)

    def first(self, column: SumColumn, at_least: int, below: EventSeq) -> UnitSums:
        """The first place whose sum reaches `at_least`; `below` when none before it does."""
        condition, order = f"{column.value} >= %s", f"{column.value}, sequence"
        found = self._sums(log_reads.sums(self.tenant, self.session, condition, at_least, order))
        if found is None or found.sequence >= below:
            return self.at(below)
        return found

    @staticmethod
    def _sums(read: Read) -> UnitSums | None:
        rows = fetch(*read)
        return UnitSums(EventSeq(rows[0][0]), *rows[0][1:]) if rows else None

    def _placed(self, found: UnitSums | None, sequence: EventSeq) -> UnitSums:
        if found is None:
            head = self.head()
            return UnitSums(
                sequence,
                head.units,
                head.turns,
                head.tokens,
                head.pointer_tokens,
                head.result_tokens,
            )
        return UnitSums(
            sequence,
            found.index,
            found.turns,
            found.tokens,
            found.pointer_tokens,
            found.result_tokens,
        )

    def units(self, first: EventSeq, below: EventSeq) -> Sequence[Unit]:
        """Units that start in [first, below), oldest first."""
        rows = ItemRow.objects.filter(
            **self._key, unit_sequence__gte=first, unit_sequence__lt=below
        ).order_by("unit_sequence", "sequence", "ordinal")
        records = [item_record(row) for row in rows]
        texts = self._texts({record.sequence for record in records})

        def decoded_of(record: ItemRecord) -> Sequence[DecodedItem] | None:
            type, format, text = texts[record.sequence]
            return None if text is None else decode_event(type, format, text)

        return hydrate_units(records, DecodeOnce(decoded_of))

    def unit_of_item(self, sequence: EventSeq) -> Unit | None:
        """The unit that the event at `sequence` belongs to; None for an event without items."""
        start = (
            ItemRow.objects.filter(**self._key, sequence=sequence)
            .values_list("unit_sequence", flat=True)
            .first()
        )
        if start is None:
            return None
        found = self.units(EventSeq(start), EventSeq(start + 1))
        return found[0] if found else None

    def _texts(
        self, sequences: Collection[EventSeq]
    ) -> dict[EventSeq, tuple[EventType, ContentFormat, str | None]]:
        if not sequences:
            return {}
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT e.sequence, e.type, e.payload->>'format', b.data, b.erased_at"
                " FROM event e JOIN body b ON b.tenant_id = e.tenant_id AND b.session_id = e.session_id"
                " AND b.id = e.body_id WHERE e.tenant_id = %s AND e.session_id = %s"
                " AND e.sequence = ANY(%s)",
                (self.tenant, self.session, list(sequences)),
            )
            return {
                EventSeq(row[0]): (
                    EventType(row[1]),
                    ContentFormat(row[2]),
                    None if row[4] is not None else bytes(row[3]).decode("utf-8", "surrogatepass"),
                )
                for row in cursor.fetchall()
            }
