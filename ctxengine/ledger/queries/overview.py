"""The state of a tenant's fleet, from stored facts only."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Count, Exists, F, OuterRef, Q, Sum
from django.db.models.functions import Abs

from ctxengine.engine.events import EventType
from ctxengine.ledger.models import (
    Calibration,
    Event,
    ImportRow,
    PlanRow,
    RequestRow,
    RunRow,
    SessionRow,
    UnitRow,
)
from ctxengine.ledger.queries.sessions import session_titles
from ctxengine.ledger.queries.sums import Bill, usage_sums


@dataclass(frozen=True, slots=True)
class Counts:
    """How much there is."""

    sessions: int
    sessions_active: int
    """Sessions with activity in the window."""
    imported: int
    requests: int
    """Requests built in the window."""
    reconstructed: int
    """Of these, requests made from imported transcripts."""
    failed: int
    runs_open: int
    imports: int
    events: dict[str, int]
    """Events in the window by type: pressure, exceeded, rotations, yields, failures, refusals."""
    epochs: int
    """Sum of the epochs of the sessions active in the window."""


@dataclass(frozen=True, slots=True)
class EstimatorError:
    """The model whose latest estimate was furthest off."""

    model: str
    factor: float
    last_error: float
    """Signed, as a ratio; positive when the estimate was too low."""
    samples: int


@dataclass(frozen=True, slots=True)
class Breach:
    """One place where a promise does not hold."""

    session_id: UUID
    session_title: str
    detail: str
    request_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class Promise:
    """Something that must never happen, and where it did."""

    title: str
    checked: str
    """What was looked at."""
    breaches: tuple[Breach, ...]


@dataclass(frozen=True, slots=True)
class WorstSession:
    """A session that deserves a look, with the cause."""

    id: UUID
    title: str
    agent: str
    causes: tuple[str, ...]
    severe: bool
    epoch: int
    peak_tokens: int
    requests: int
    active_at: datetime


_COUNTED = (
    EventType.BUDGET_PRESSURE,
    EventType.BUDGET_EXCEEDED,
    EventType.EPOCH_ROTATED,
    EventType.YIELD_APPLIED,
    EventType.RESPONSE_FAILED,
    EventType.CALL_REFUSED,
)
_SHOWN = 10


def counts(tenant_id: UUID, since: datetime) -> Counts:
    """The figures of the tiles. Five queries."""
    sessions = SessionRow.objects.filter(tenant_id=tenant_id).aggregate(
        all=Count("id"),
        active=Count("id", filter=Q(active_at__gte=since)),
        imported=Count("id", filter=~Q(import_format="")),
        epochs=Sum("epoch", filter=Q(active_at__gte=since), default=0),
    )
    requests = RequestRow.objects.filter(tenant_id=tenant_id, created_at__gte=since).aggregate(
        all=Count("id"),
        reconstructed=Count("id", filter=Q(reconstructed=True)),
        failed=Count("id", filter=Q(status="failed")),
    )
    events = (
        Event.objects.filter(tenant_id=tenant_id, type__in=_COUNTED, recorded_at__gte=since)
        .order_by()
        .values("type")
        .annotate(number=Count("sequence"))
        .values_list("type", "number")
    )
    return Counts(
        sessions=sessions["all"],
        sessions_active=sessions["active"],
        imported=sessions["imported"],
        requests=requests["all"],
        reconstructed=requests["reconstructed"],
        failed=requests["failed"],
        runs_open=RunRow.objects.filter(tenant_id=tenant_id).exclude(state="ended").count(),
        imports=ImportRow.objects.filter(tenant_id=tenant_id).count(),
        events=dict(events),
        epochs=sessions["epochs"],
    )


def fleet_bill(tenant_id: UUID, since: datetime) -> Bill:
    """Usage reported for our own requests in the window; imported usage is not ours. One query."""
    rows = RequestRow.objects.filter(
        tenant_id=tenant_id, created_at__gte=since, reconstructed=False
    )
    return usage_sums(rows)


def worst_estimator(tenant_id: UUID) -> EstimatorError | None:
    """The model with the largest latest error, or None before any was measured. One query."""
    rows = Calibration.objects.filter(tenant_id=tenant_id, samples__gt=0)
    row = rows.annotate(off=Abs("last_error_millionths")).order_by("-off").first()
    if row is None:
        return None
    return EstimatorError(
        model=f"{row.provider}/{row.model}",
        factor=row.factor_millionths / 1_000_000,
        last_error=row.last_error_millionths / 1_000_000,
        samples=row.samples,
    )


def promises(tenant_id: UUID, since: datetime) -> tuple[Promise, ...]:
    """What must hold, checked on the sessions active in the window. At most five queries."""
    found = [
        (
            "Second prefix hash in an epoch",
            "every request of the window",
            _second_prefixes(tenant_id, since),
        ),
        (
            "Request whose prefix is not the pinned one",
            "every request of the window against its epoch's plan",
            _strange_prefixes(tenant_id, since),
        ),
        (
            "Call left without a result in a completed run",
            "every step of the sessions active in the window",
            _open_calls(tenant_id, since),
        ),
        (
            "Session head that is not its last event",
            "the hash chain's end of every session active in the window",
            _wrong_heads(tenant_id, since),
        ),
    ]
    ids = {session for _, _, places in found for session, _, _ in places}
    titles = session_titles(tenant_id, ids) if ids else {}
    return tuple(
        Promise(
            title,
            checked,
            tuple(
                Breach(session, titles.get(session, ""), detail, request)
                for session, detail, request in places
            ),
        )
        for title, checked, places in found
    )


def worst_sessions(tenant_id: UUID, since: datetime, *, limit: int = 8) -> tuple[WorstSession, ...]:
    """Sessions with trouble in the window, severe first, then by number of incidents. Two queries."""
    grouped = (
        Event.objects.filter(tenant_id=tenant_id, type__in=_COUNTED, recorded_at__gte=since)
        .order_by()
        .values("session_id", "type")
        .annotate(number=Count("sequence"))
    )
    incidents: dict[UUID, Counter[str]] = {}
    for row in grouped:
        incidents.setdefault(row["session_id"], Counter())[row["type"]] += row["number"]
    ranked = sorted(
        incidents, key=lambda one: (-_severity(incidents[one]), -incidents[one].total(), str(one))
    )[:limit]
    rows = {row.id: row for row in SessionRow.objects.filter(tenant_id=tenant_id, id__in=ranked)}
    return tuple(_worst(rows[one], incidents[one]) for one in ranked if one in rows)


Place = tuple[UUID, str, UUID | None]


def _second_prefixes(tenant_id: UUID, since: datetime) -> list[Place]:
    rows = (
        RequestRow.objects.filter(tenant_id=tenant_id, created_at__gte=since)
        .order_by()
        .values("session_id", "epoch")
        .annotate(
            hashes=Count("prefix_sha256", distinct=True),
            wire_hashes=Count("wire_prefix_sha256", distinct=True),
        )
        .filter(Q(hashes__gt=1) | Q(wire_hashes__gt=1))
    )
    return [
        (
            row["session_id"],
            f"epoch {row['epoch']}: {row['hashes']} neutral and {row['wire_hashes']} wire hashes",
            None,
        )
        for row in rows[:_SHOWN]
    ]


def _strange_prefixes(tenant_id: UUID, since: datetime) -> list[Place]:
    plan = PlanRow.objects.filter(
        tenant_id=OuterRef("tenant_id"),
        session_id=OuterRef("session_id"),
        epoch=OuterRef("epoch"),
    ).exclude(prefix_sha256=OuterRef("prefix_sha256"))
    rows = RequestRow.objects.filter(Exists(plan), tenant_id=tenant_id, created_at__gte=since)
    return [
        (row.session_id, f"request {row.run_number}.{row.step}", row.id)
        for row in rows.order_by("-created_at")[:_SHOWN]
    ]


def _open_calls(tenant_id: UUID, since: datetime) -> list[Place]:
    recent = SessionRow.objects.filter(tenant_id=tenant_id, active_at__gte=since).values("id")
    done = RunRow.objects.filter(
        tenant_id=OuterRef("tenant_id"), id=OuterRef("run_id"), outcome="completed"
    )
    rows = UnitRow.objects.filter(
        Exists(done), tenant_id=tenant_id, session_id__in=recent, open_calls__gt=0
    )
    return [
        (row.session_id, f"step at event {row.sequence}: {row.open_calls} open", None)
        for row in rows.order_by("session_id", "sequence")[:_SHOWN]
    ]


def _wrong_heads(tenant_id: UUID, since: datetime) -> list[Place]:
    last = Event.objects.filter(
        tenant_id=OuterRef("tenant_id"),
        session_id=OuterRef("id"),
        sequence=OuterRef("last_sequence"),
        hash=OuterRef("last_hash"),
    )
    rows = SessionRow.objects.filter(
        ~Exists(last), tenant_id=tenant_id, active_at__gte=since, last_sequence__gt=0
    ).annotate(head=F("last_sequence"))
    return [
        (row.id, f"head {row.last_sequence} names another hash", None)
        for row in rows.order_by("-active_at")[:_SHOWN]
    ]


_WEIGHTS = {
    EventType.BUDGET_EXCEEDED: 4,
    EventType.RESPONSE_FAILED: 4,
    EventType.BUDGET_PRESSURE: 2,
    EventType.YIELD_APPLIED: 2,
    EventType.EPOCH_ROTATED: 1,
    EventType.CALL_REFUSED: 1,
}
_WORDS = {
    EventType.BUDGET_EXCEEDED: ("budget exceeded", "budget exceeded {} times"),
    EventType.RESPONSE_FAILED: ("a request failed", "{} requests failed"),
    EventType.BUDGET_PRESSURE: ("pressure once", "pressure {} times"),
    EventType.YIELD_APPLIED: ("yielded once", "yielded {} times"),
    EventType.EPOCH_ROTATED: ("rotated once", "rotated {} times"),
    EventType.CALL_REFUSED: ("a call refused", "{} calls refused"),
}


def _severity(incidents: Counter[str]) -> int:
    return max((_WEIGHTS[EventType(name)] for name in incidents), default=0)


def _worst(row: SessionRow, incidents: Counter[str]) -> WorstSession:
    named = sorted(incidents, key=lambda name: -_WEIGHTS[EventType(name)])
    causes = []
    for name in named:
        once, often = _WORDS[EventType(name)]
        number = incidents[name]
        causes.append(once if number == 1 else often.format(f"{number:,}"))
    return WorstSession(
        id=row.id,
        title=row.title,
        agent=f"{row.agent_name}@{row.agent_version}",
        causes=tuple(causes),
        severe=_severity(incidents) >= _WEIGHTS[EventType.BUDGET_EXCEEDED],
        epoch=row.epoch,
        peak_tokens=row.peak_tokens,
        requests=row.requests,
        active_at=row.active_at,
    )
