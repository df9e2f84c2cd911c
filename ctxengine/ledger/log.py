"""The Postgres adapter of a session's log (design 4).

The session row is the lock. It is held only while one short transaction compares the head, writes and moves it on; counting,
building and rendering happen before. Sequences are gapless because they are handed out under that lock.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Collection, Mapping, Sequence
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
from ctxengine.ledger.inserts import Statement, insert, send
from ctxengine.ledger.models import Body, Event, ItemRow, SessionRow
from ctxengine.ledger.records import event_record, event_row, item_record, item_row, unit_row

SALT_BYTES = 16

_HEAD_COLUMNS = (
    "last_sequence",
    "last_hash",
    "content_sequence",
    "act_sequence",
    "items",
    "units",
    "turns",
    "tokens",
    "pointer_tokens",
    "result_tokens",
)

_SET_HEAD = ", ".join(f"{column} = %s" for column in _HEAD_COLUMNS)

_SUMS = "sequence, index, before_turns, before_tokens, before_pointer_tokens, before_result_tokens"


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
        return self._read_head("")

    def head_and_run(self, run: UUID | str) -> tuple[Head, RunStand]:
        """Where the log ends now, and how a run and its session stand at that moment.

        Raises:
            SessionRow.DoesNotExist: the session holds no such run.
        """
        with connection.cursor() as cursor:
            cursor.execute(
                f"SELECT {', '.join(f's.{column}' for column in _HEAD_COLUMNS)},"  # noqa: S608
                " r.state, r.outcome, r.settings, r.steps, s.epoch, s.requests FROM session s"
                " JOIN run r ON r.tenant_id = s.tenant_id AND r.session_id = s.id"
                " WHERE s.tenant_id = %s AND s.id = %s AND r.id = %s",
                (self.tenant, self.session, str(run)),
            )
            row = cursor.fetchone()
        if row is None:
            raise SessionRow.DoesNotExist(f"Session {self.session} has no run {run}.")
        state, outcome, settings, steps, epoch, requests = row[len(_HEAD_COLUMNS) :]
        stand = RunStand(state, outcome, json.loads(settings), steps, epoch, requests)
        return self._head_of(row[: len(_HEAD_COLUMNS)]), stand

    def lock(self) -> Head:
        """The same, with the session row locked until the transaction ends."""
        return self._read_head(" FOR UPDATE")

    def _read_head(self, locking: str) -> Head:
        with connection.cursor() as cursor:
            cursor.execute(
                f"SELECT {', '.join(_HEAD_COLUMNS)} FROM session WHERE tenant_id = %s AND id = %s{locking}",  # noqa: S608
                (self.tenant, self.session),
            )
            row = cursor.fetchone()
        if row is None:
            raise SessionRow.DoesNotExist(f"There is no session {self.session}.")
        return self._head_of(row)

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
    ) -> Batch:
        """Append all drafts or none; see `SessionLog.append`."""
        bodies = [self._body(draft) for draft in drafts]
        # A refusal leaves this block in the ordinary way, for nothing is written then: so a transaction around it goes on, and
        # no savepoint is paid for.
        planned: Batch | Exception
        with transaction.atomic(savepoint=False):
            head = self.lock()
            try:
                planned = self._planned(drafts, bodies, head, expected, at, key)
            except (StaleHead, EngineError) as error:
                planned = error
            else:
                self._write(planned, [row for _, row in bodies if row is not None], at)
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

    def _write(self, batch: Batch, bodies: Sequence[Body], at: datetime) -> None:
        """Everything in one round trip."""
        send(
            [
                insert(bodies),
                insert([event_row(self._key, event) for event in batch.events]),
                insert([item_row(self._key, item) for item in batch.items]),
                *(self._shifted(delta) for delta in batch.deltas.values()),
                insert([unit_row(self._key, unit) for unit in batch.units]),
                self._moved(batch.head, at),
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
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT c.unit_sequence FROM item c WHERE c.tenant_id = %s AND c.session_id = %s"
                " AND c.sequence = %s AND c.ordinal = %s AND c.kind = %s"
                " AND NOT EXISTS (SELECT 1 FROM item r WHERE r.tenant_id = c.tenant_id"
                " AND r.session_id = c.session_id AND r.unit_sequence = c.unit_sequence"
                " AND r.kind = %s AND r.wire_call_id = c.wire_call_id)",
                (
                    *(self.tenant, self.session, *call),
                    *(ItemKind.TOOL_CALL.value, ItemKind.TOOL_RESULT.value),
                ),
            )
            row = cursor.fetchone()
        return EventSeq(row[0]) if row is not None else None

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
        rows = Event.objects.filter(**self._key, type__in=[entry.value for entry in types])
        if after:
            rows = rows.filter(sequence__gt=after)
        end = None if limit is None else skip + limit
        return [event_record(row) for row in rows.order_by("-sequence")[skip:end]]

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
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT i.kind, i.sequence, i.ordinal, i.name, i.call_id, i.wire_call_id, i.run_id"
                " FROM unit u JOIN item i ON i.tenant_id = u.tenant_id AND i.session_id = u.session_id"
                " AND i.unit_sequence = u.sequence"
                " WHERE u.tenant_id = %s AND u.session_id = %s AND u.open_calls > 0"
                " ORDER BY i.sequence, i.ordinal",
                (self.tenant, self.session),
            )
            rows = cursor.fetchall()
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
        found = self._sums("sequence >= %s", (sequence,), "sequence")
        return self._placed(found, sequence)

    def first(self, column: SumColumn, at_least: int, below: EventSeq) -> UnitSums:
        """The first place whose sum reaches `at_least`; `below` when none before it does."""
        found = self._sums(f"{column.value} >= %s", (at_least,), f"{column.value}, sequence")
        if found is None or found.sequence >= below:
            return self.at(below)
        return found

    def _sums(self, condition: str, values: tuple[int, ...], order: str) -> UnitSums | None:
        with connection.cursor() as cursor:
            # Conditions come from the closed set of columns in SumColumn, never from input.
            cursor.execute(
                f"SELECT {_SUMS} FROM unit WHERE tenant_id = %s AND session_id = %s AND {condition}"  # noqa: S608
                f" ORDER BY {order} LIMIT 1",
                (self.tenant, self.session, *values),
            )
            row = cursor.fetchone()
        return None if row is None else UnitSums(EventSeq(row[0]), *row[1:])

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
