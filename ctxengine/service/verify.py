"""Walking hash chains and holding derived rows against the events (design 4)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import NamedTuple
from uuid import UUID

from ctxengine.engine.event_types import ERASURES
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.log.chain import first_damage
from ctxengine.engine.log.records import EventRecord
from ctxengine.engine.plan.plan import plan_of
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import Body, PlanRow, SessionRow
from ctxengine.service.wiring import log_of

_WINDOW = 1000


class ChainReport(NamedTuple):
    """What one session's walk found."""

    session: UUID
    events: int
    bad_sequence: int | None
    problem: str | None


def verify_chains(*, session_id: UUID | None = None) -> Iterator[ChainReport]:
    """Verify every session's chain, or one; for the command line, across tenants."""
    rows = SessionRow.objects.order_by("tenant_id", "created_at", "id")
    if session_id is not None:
        rows = rows.filter(id=session_id)
    for row in rows.iterator(chunk_size=200):
        yield verify_session(row)


def verify_session(row: SessionRow) -> ChainReport:
    """Walk one chain, check that it ends where the session row says, and that every body is what was committed to."""
    log = log_of(row)
    counted = _Counted(log)
    damage = first_damage(counted, tenant=log.tenant, session=log.session)
    if damage is not None:
        return ChainReport(row.id, counted.seen, damage.sequence, damage.problem)
    if (counted.seen, counted.last_hash) != (row.last_sequence, row.last_hash):
        return ChainReport(
            row.id,
            counted.seen,
            counted.seen + 1,
            f"the chain ends at {counted.seen}, the session says {row.last_sequence}",
        )
    bad = _first_bad_body(row)
    if bad is not None:
        return ChainReport(row.id, counted.seen, bad, "its content is not what it committed to")
    bad = _first_bad_plan(row)
    if bad is not None:
        return ChainReport(
            row.id, counted.seen, bad, "the plan kept of it after an erasure is not what was kept"
        )
    return ChainReport(row.id, counted.seen, None, None)


class _Counted:
    """Reads a log in windows and remembers where it was."""

    def __init__(self, log: PostgresLog) -> None:
        self.log = log
        self.seen = 0
        self.last_hash = "0" * 64

    def __iter__(self) -> Iterator[EventRecord]:
        while True:
            window = self.log.events(after=EventSeq(self.seen), limit=_WINDOW)
            for event in window:
                self.seen, self.last_hash = event.sequence, event.hash
                yield event
            if len(window) < _WINDOW:
                return


def _first_bad_body(row: SessionRow) -> int | None:
    commitments = {
        event.body.id: (event.sequence, event.body)
        for event in _Counted(log_of(row))
        if event.body is not None
    }
    bodies = Body.objects.filter(tenant_id=row.tenant_id, session_id=row.id)
    found: list[int] = []
    present = set()
    for body in bodies.iterator(chunk_size=200):
        present.add(str(body.id))
        sequence, committed = commitments.get(str(body.id), (0, None))
        if committed is None or body.erased_at is not None:
            continue
        data = bytes(body.data)
        if (
            hashlib.sha256(bytes(body.salt) + data).hexdigest() != committed.sha256
            or len(data) != committed.length
        ):
            found.append(sequence)
    found += [sequence for name, (sequence, _) in commitments.items() if name not in present]
    return min(found) if found else None


def _first_bad_plan(row: SessionRow) -> int | None:
    """The first plan event whose text was erased and whose kept copy is gone or changed."""
    log = log_of(row)
    kept = {
        name: digest
        for erasure in ERASURES
        for event in log.every(erasure)
        for name, digest in event.payload.get("kept", {}).items()
    }
    plans = PlanRow.objects.filter(tenant_id=row.tenant_id, session_id=row.id)
    found = [
        plan.sequence
        for plan in plans.filter(redacted_body_id__isnull=False)
        if not _is_as_kept(plan, kept.get(str(plan.redacted_body_id)))
    ]
    return min(found, default=None)


def _is_as_kept(plan: PlanRow, committed: str | None) -> bool:
    """Held against the erasure's event; copies made before events named them, against the hash that the epoch recorded."""
    bodies = Body.objects.filter(tenant_id=plan.tenant_id, session_id=plan.session_id)
    body = bodies.filter(id__in=[plan.redacted_body_id]).first()
    if body is None or body.erased_at is not None:
        return False
    data = bytes(body.data)
    if committed is not None:
        return hashlib.sha256(data).hexdigest() == committed
    try:
        return plan_of(data.decode("utf-8", "surrogatepass")).prefix_sha256 == plan.prefix_sha256
    except ValueError:
        return False
