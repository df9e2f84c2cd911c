"""What this process remembers of sessions that are being worked on; it can be lost at any moment (design 12).

Only `assemble` uses it. Rebuilding what was recorded reads the ledger alone.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from uuid import UUID

from ctxengine.engine.compaction.packet import CompactionResult
from ctxengine.engine.events import EventType
from ctxengine.engine.history.project import project
from ctxengine.engine.history.projection import Projection
from ctxengine.engine.history.working_set_told import ToldTurns, told_turns
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.inputs import SessionFacts, StepInputs
from ctxengine.engine.items import Unit
from ctxengine.engine.legs.leg import Leg
from ctxengine.engine.log.records import Batch
from ctxengine.engine.memo import BuildMemo
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.ports import TokenCounter
from ctxengine.engine.standing import Standing, standing_of
from ctxengine.ledger.ahead import Read
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import PlanRow, SessionRow
from ctxengine.ledger.rows import asks_row_by, row_by
from ctxengine.ledger.warm import KnownUnits, WarmLog
from ctxengine.service.access import plan_row_of
from ctxengine.service.delta import Taken
from ctxengine.service.legs.memory import LegMemory
from ctxengine.service.wiring import plan_from

SESSIONS_KEPT = 32
"""Sessions remembered by one process. Each holds about three times the bytes of its request."""

_PLANS_KEPT = 4


@dataclass(slots=True)
class Warmth:
    """What is remembered of one session."""

    memo: BuildMemo = field(default_factory=BuildMemo)
    units: KnownUnits = field(default_factory=KnownUnits)
    digests: set[tuple[str, int, str]] = field(default_factory=set)
    """(renderer and epoch, unit, form) of segment digests that are known to be stored."""
    taken: tuple[UUID, Taken | None] | None = None
    """The request of the newest answer that was a difference, taken apart."""
    _standing: tuple[int, int, Standing] | None = None
    _summaries: dict[str, CompactionResult] = field(default_factory=dict)
    """What the bodies of compaction events hold, by body id."""
    _summaries_at: int = -1
    """How often the session had been forgotten when they were read."""
    _pinned: tuple[int, int, Plan] | None = None
    _projection: tuple[tuple[object, ...], Projection | None] | None = None
    _told: tuple[tuple[int, int], ToldTurns] | None = None
    _closed: dict[EventSeq, tuple[Unit, Unit]] = field(default_factory=dict)
    """Units of the newest projection with their closed forms."""
    _plans: dict[UUID, Plan] = field(default_factory=dict)
    _legs: dict[tuple[str, str], LegMemory] = field(default_factory=dict)
    _in_use: Lock = field(default_factory=Lock)

    def legs(self, legs: Sequence[Leg]) -> Mapping[tuple[str, str], LegMemory]:
        """What is remembered of each of these legs, by provider and model; that of others is let go of."""
        names = [(leg.provider, leg.model) for leg in legs]
        self._legs = {name: self._legs.get(name) or LegMemory() for name in names}
        return self._legs

    def log(self, session: SessionRow) -> WarmLog:
        """The session's log with this memory."""
        return WarmLog(session.tenant_id, session.id, self.units)

    def plan(self, log: PostgresLog, row: PlanRow) -> Plan:
        """A pinned plan, read once.

        Raises:
            LookupError: its texts were erased.
        """
        body = row.redacted_body_id or row.body_id
        plan = self._plans.get(body)
        if plan is None:
            if len(self._plans) >= _PLANS_KEPT:
                self._plans.clear()
            plan = self._plans[body] = plan_from(log, row)
        return plan

    def pinned(self, log: WarmLog, session: SessionRow) -> Plan:
        """The plan of the session's epoch."""
        version = log.version()
        if self._pinned is None or self._pinned[:2] != (version, session.epoch):
            plan = self.plan(log, plan_row_of(session))
            self._pinned = (version, session.epoch, plan)
        return self._pinned[2]

    def standing(self, log: WarmLog, *, plan_total: int) -> Standing:
        """Working state, summaries and acts as they stand for a plan of that size."""
        version = log.version()
        if self._standing is None or self._standing[:2] != (version, plan_total):
            standing = standing_of(log, plan_total=plan_total, known=self._summaries_known())
            self._standing = (version, plan_total, standing)
        return self._standing[2]

    def installed(self, batch: Batch, made: Sequence[CompactionResult]) -> None:
        """Take in the summaries that a step has just written, so that the next one need not read them."""
        written = [event.body for event in batch.events if event.type is EventType.COMPACTED]
        if len(written) == len(made):
            pairs = zip(written, made, strict=True)
            self._summaries_known().update({body.id: one for body, one in pairs if body})

    def _summaries_known(self) -> dict[str, CompactionResult]:
        """Those that hold: none where a body was erased, or the log replaced, since they were read."""
        if self._summaries_at != self.units.forgotten:
            self._summaries, self._summaries_at = {}, self.units.forgotten
        return self._summaries

    def projection(
        self, log: WarmLog, facts: SessionFacts, inputs: StepInputs, counter: TokenCounter
    ) -> Projection | None:
        """What the session's engine shows of everything before the run; it stays as it is until something but talk comes in."""
        of = (log.version(), inputs.projection, inputs.boundary, inputs.epoch, inputs.marks)
        key = (*of, inputs.engine, counter.label)
        if self._projection is None or self._projection[0] != key:
            self._projection = (key, project(log, facts, inputs, counter, self._closed))
        return self._projection[1]

    def told(self, log: WarmLog, projection: int) -> ToldTurns:
        """The turns that a plan leaves to the thread; read once for as long as it is in force."""
        key = (log.version(), projection)
        if self._told is None or self._told[0] != key:
            self._told = (key, told_turns(log, projection))
        return self._told[1]

    def remember(self, digests: Iterable[tuple[str, int, str]]) -> None:
        """Take in the digests of the newest request, which are stored now."""
        self.digests = set(digests)

    def take(self) -> bool:
        """Claim it for one step; False when another thread works with it."""
        return self._in_use.acquire(blocking=False)

    def give_back(self) -> None:
        """End the claim."""
        self._in_use.release()


class _Sessions:
    """The sessions worked on last."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept: OrderedDict[tuple[UUID, UUID], Warmth] = OrderedDict()
        self._lock = Lock()

    def of(self, tenant: UUID, session: UUID) -> Warmth:
        """What is remembered of a session."""
        with self._lock:
            warmth = self._kept.setdefault((tenant, session), Warmth())
            self._kept.move_to_end((tenant, session))
            while len(self._kept) > self._limit:
                self._kept.popitem(last=False)
            return warmth


_SESSIONS = _Sessions(SESSIONS_KEPT)


def asks_plan(session: SessionRow) -> Read:
    """What `plan_of_session` asks, to be read ahead."""
    return asks_row_by(PlanRow, newest="epoch", tenant_id=session.tenant_id, session_id=session.id)


def plan_of_session(session: SessionRow, log: PostgresLog) -> Plan:
    """The plan of a session's newest epoch, whatever the row in hand says; read from its text once per process.

    Raises:
        LookupError: its texts were erased.
    """
    newest = row_by(PlanRow, newest="epoch", tenant_id=session.tenant_id, session_id=session.id)
    if newest is None:
        raise PlanRow.DoesNotExist(f"Session {session.id} has no plan.")
    return _SESSIONS.of(session.tenant_id, session.id).plan(log, newest)


@contextmanager
def warmth_of(session: SessionRow) -> Iterator[Warmth]:
    """What this process remembers of a session, for one step; nothing where another thread is at work on it."""
    warmth = _SESSIONS.of(session.tenant_id, session.id)
    if not warmth.take():
        yield Warmth()
        return
    try:
        yield warmth
    finally:
        warmth.give_back()
