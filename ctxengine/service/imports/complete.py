"""Rebuilding the requests that an import only outlined: on demand, a page's worth at a time, or all of them by a job.

A completed row is what the import would have written at once: nothing appended since is read, and what was erased since
stands in it by the digest it was recorded with, where there is one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from psycopg.types.json import Jsonb

from ctxengine.engine.budget.demand import Floors
from ctxengine.engine.build import BuildOptions, build
from ctxengine.engine.errors import LayoutBreach
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import Unit
from ctxengine.engine.memo import BuildMemo
from ctxengine.engine.plan.plan import BUILDER_VERSION, Plan
from ctxengine.engine.ports import UnitSums
from ctxengine.engine.request import CheckpointInput, ModelRequest, RecordedDigest
from ctxengine.engine.step import Memory, SessionFacts, StepInputs, inputs_of, prepare
from ctxengine.ledger.inserts import insert, send
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import Body, RequestRow, RunRow, SessionRow, UnitRow
from ctxengine.service.access import plan_row_of
from ctxengine.service.rebuild import erased_digests
from ctxengine.service.renderings import Key, digests_of, rendering_rows
from ctxengine.service.request_rows import request_row
from ctxengine.service.wiring import counter_of, plan_from, renderer_of, session_facts

_AT_ONCE = 100
"""Requests rebuilt and written together."""
_BUILD = BuildOptions(validate=False, with_body=False)
_start = attrgetter("sequence")
_WRITTEN = (
    "inputs",
    "manifest",
    "budget",
    "cache",
    "request_sha256",
    "prefix_sha256",
    "wire_prefix_sha256",
    "total_tokens",
    "body_bytes",
)
# Names are the literals above. Whoever is second changes nothing: what both write is the same.
_UPDATE = (
    f"UPDATE request SET {', '.join(f'{name} = %s' for name in _WRITTEN)}"  # noqa: S608
    " WHERE tenant_id = %s AND id = %s AND request_sha256 = ''"
)


def body_bytes(built: ModelRequest) -> int:
    """Bytes of what stands behind the prefix: an imported request was never a body of ours."""
    return sum(stretch.totals.bytes for stretch in built.stretches)


def is_outlined(row: RequestRow) -> bool:
    """Whether a request was not rebuilt yet."""
    return row.reconstructed and not row.request_sha256


def completed(row: RequestRow) -> RequestRow:
    """The row, rebuilt and written where that was not done yet.

    Raises:
        EngineError: the ledger does not give the request.
    """
    if not is_outlined(row):
        return row
    session = SessionRow.objects.get(tenant_id=row.tenant_id, id=row.session_id)
    _complete(session, [row])
    return row


def completed_with_the_next(row: RequestRow) -> RequestRow:
    """The same for one of many that are gone through in order: the next ones are rebuilt with it."""
    if not is_outlined(row):
        return row
    rows = RequestRow.objects.filter(tenant_id=row.tenant_id, id=row.id)
    found = rows.get()
    if is_outlined(found):
        complete_requests(
            tenant_id=row.tenant_id,
            session_id=row.session_id,
            first=row.number,
            last=row.number + _AT_ONCE - 1,
        )
        found = rows.get()
    return found


def complete_request(*, tenant_id: UUID, request_id: UUID) -> None:
    """Rebuild one request of a tenant where that was not done yet; an unknown one is left to whoever looks it up.

    Raises:
        EngineError: the ledger does not give the request.
    """
    row = RequestRow.objects.filter(
        tenant_id=tenant_id, id=request_id, reconstructed=True, request_sha256=""
    ).first()
    if row is not None:
        completed(row)


def complete_requests(
    *, tenant_id: UUID, session_id: UUID, first: int = 1, last: int | None = None
) -> int:
    """Rebuild those of a session's requests that are outlined; gives how many there were.

    Args:
        first: number of the first one looked at.
        last: number of the last one; None: all.

    Raises:
        EngineError: the ledger does not give a request.
    """
    return sum(
        complete_in_parts(tenant_id=tenant_id, session_id=session_id, first=first, last=last)
    )


def complete_in_parts(
    *, tenant_id: UUID, session_id: UUID, first: int = 1, last: int | None = None
) -> Iterator[int]:
    """The same, giving after each part how many it held; each part is a transaction of its own."""
    rows = RequestRow.objects.filter(
        tenant_id=tenant_id,
        session_id=session_id,
        reconstructed=True,
        request_sha256="",
        number__gte=first,
    ).order_by("number")
    if last is not None:
        rows = rows.filter(number__lte=last)
    session: SessionRow | None = None
    reached = 0
    while part := list(rows.filter(number__gt=reached)[:_AT_ONCE]):
        session = session or SessionRow.objects.get(tenant_id=tenant_id, id=session_id)
        _complete(session, part)
        reached = part[-1].number
        yield len(part)


def _complete(session: SessionRow, rows: Sequence[RequestRow]) -> None:
    """Rebuild outlined requests of one epoch of a session, given in their order, and write them."""
    inputs = [inputs_of(row.inputs) for row in rows]
    log = _StretchOfLog(
        session,
        EventSeq(max(1, min(wanted.cut for wanted in inputs))),
        EventSeq(inputs[-1].content_head + 1),
    )
    builder = _Builder(session, log, plan_from(log, plan_row_of(session, rows[0].epoch)))
    runs = {
        run.id: run
        for run in RunRow.objects.filter(
            tenant_id=session.tenant_id, id__in={row.run_id for row in rows}
        )
    }
    renderings: dict[Key, str] = {}
    for row, wanted in zip(rows, inputs, strict=True):
        renderings |= digests_of(builder.fill(row, runs[row.run_id], wanted), wanted.marks)
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.executemany(_UPDATE, [_values(row) for row in rows])
        send([insert(rendering_rows(session, renderings), unless_there=True)])


def _values(row: RequestRow) -> list[Any]:
    """What is written of a row, and its key."""
    found = [getattr(row, name) for name in _WRITTEN]
    shown = [Jsonb(value) if isinstance(value, dict) else value for value in found]
    return [*shown, row.tenant_id, row.id]


class _Builder:
    """Builds requests of one session one after the other; each pays for its new units only."""

    def __init__(self, session: SessionRow, log: PostgresLog, plan: Plan) -> None:
        self._session, self._log, self._plan = session, log, plan
        self._facts: SessionFacts = session_facts(session, plan)
        self._renderer = renderer_of(plan.provider)
        self._memo = BuildMemo()
        self._counter = self._memo.counter(counter_of(plan.provider, plan.model))
        self._erased = Body.objects.filter(
            tenant_id=session.tenant_id, session_id=session.id, erased_at__isnull=False
        ).exists()

    def fill(self, row: RequestRow, run: RunRow, wanted: StepInputs) -> ModelRequest:
        """Build a row's request and put what came of it into the row."""
        if wanted.builder != BUILDER_VERSION:
            # The builder that it was outlined for never built it.
            wanted = wanted.model_copy(update={"builder": BUILDER_VERSION})
        floors = Floors(EventSeq(wanted.cut), EventSeq(wanted.pointer))
        prepared = prepare(
            self._log, self._facts, wanted, memory=Memory(), floors=floors, counter=self._counter
        )
        if prepared.allocation.raises:
            raise LayoutBreach(
                f"Request {row.run_number}.{row.step} was outlined without a yield and now needs one; its session's counts "
                "are not those of its import."
            )
        gone = erased_digests(self._session, self._plan, wanted) if self._erased else {}
        digests = {unit: RecordedDigest(digest, "erased") for unit, digest in gone.items()}
        built = build(
            replace(prepared.run, digests=digests),
            CheckpointInput(),
            self._plan,
            renderer=self._renderer,
            memo=self._memo,
            options=_BUILD,
        )
        whole = request_row(
            session=self._session,
            run=run,
            request_id=row.id,
            step=row.step,
            inputs=prepared.inputs,
            prepared=prepared,
            built=built,
            at=row.created_at,
            build_ms=0,
        )
        whole.body_bytes = body_bytes(built)
        # What yielded before it was written with its outline: its floors are in force by now.
        if isinstance(row.manifest, dict) and row.manifest.get("yields"):
            whole.manifest["yields"] = row.manifest["yields"]
        for name in _WRITTEN:
            setattr(row, name, getattr(whole, name))
        return built


class _StretchOfLog(PostgresLog):
    """A session's log of which one stretch of units, with their sums, is read once."""

    def __init__(self, session: SessionRow, first: EventSeq, below: EventSeq) -> None:
        super().__init__(session.tenant_id, session.id)
        self._units = list(super().units(first, below))
        rows = UnitRow.objects.filter(
            tenant_id=session.tenant_id,
            session_id=session.id,
            sequence__gte=first,
            sequence__lte=below,
        )
        self._sums_of = [
            UnitSums(EventSeq(sequence), *sums)
            for sequence, *sums in rows.order_by("sequence").values_list(
                "sequence",
                "index",
                "before_turns",
                "before_tokens",
                "before_pointer_tokens",
                "before_result_tokens",
            )
        ]
        self._first, self._below = first, below
        self._others: dict[EventSeq, UnitSums] = {}

    def units(self, first: EventSeq, below: EventSeq) -> Sequence[Unit]:
        """Units that start in [first, below), oldest first."""
        if first < self._first or below > self._below:
            return super().units(first, below)
        low, high = (bisect_left(self._units, place, key=_start) for place in (first, below))
        return self._units[low:high]

    def at(self, sequence: EventSeq) -> UnitSums:
        """Sums over the units that start before `sequence`."""
        if sequence >= self._first:
            place = bisect_left(self._sums_of, sequence, key=_start)
            if place < len(self._sums_of):
                return self._placed(self._sums_of[place], sequence)
        if sequence not in self._others:
            self._others[sequence] = super().at(sequence)
        return self._others[sequence]
