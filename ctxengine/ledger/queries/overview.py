"""The state of a tenant's fleet, from stored facts only."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Count, Q

from ctxengine.engine.events import EventType
from ctxengine.ledger.models import (
    Event,
    ImportRow,
    RequestRow,
    RunRow,
    SessionRow,
)
from ctxengine.ledger.queries.session import HELPED_NOTHING
from ctxengine.ledger.queries.sums import Bill, usage_sums


@dataclass(frozen=True, slots=True)
class Counts:
    """How much there is in the window."""

    sessions: int
    """Sessions with activity."""
    imported: int
    """Of these, sessions made from a transcript."""
    any_session: bool
    """Whether the tenant has any session at all, however old."""
    requests: int
    reconstructed: int
    """Of these, requests made from imported transcripts."""
    runs_open: int
    """Open now, whenever they began."""
    imports: int
    """Files imported."""


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


def counts(tenant_id: UUID, since: datetime) -> Counts:
    """How much there is. Five queries, each bound to the window or to what is open."""
    sessions = SessionRow.objects.filter(tenant_id=tenant_id, active_at__gte=since).aggregate(
        all=Count("id"), imported=Count("id", filter=~Q(import_format=""))
    )
    requests = RequestRow.objects.filter(tenant_id=tenant_id, created_at__gte=since).aggregate(
        all=Count("id"), reconstructed=Count("id", filter=Q(reconstructed=True))
    )
    return Counts(
        sessions=sessions["all"],
        imported=sessions["imported"],
        any_session=SessionRow.objects.filter(tenant_id=tenant_id).exists(),
        requests=requests["all"],
        reconstructed=requests["reconstructed"],
        runs_open=RunRow.objects.filter(tenant_id=tenant_id).exclude(state="ended").count(),
        imports=ImportRow.objects.filter(tenant_id=tenant_id, created_at__gte=since).count(),
    )


def fleet_bill(tenant_id: UUID, since: datetime) -> Bill:
    """Usage reported for our own requests in the window; imported usage is not ours. One query."""
    rows = RequestRow.objects.filter(
        tenant_id=tenant_id, created_at__gte=since, reconstructed=False
    )
    return usage_sums(rows)


def worst_sessions(tenant_id: UUID, since: datetime, *, limit: int = 8) -> tuple[WorstSession, ...]:
    """Sessions with trouble in the window, severe first, then by number of incidents. Two queries."""
    grouped = (
        Event.objects.filter(tenant_id=tenant_id, type__in=_COUNTED, recorded_at__gte=since)
        .exclude(HELPED_NOTHING)
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
    EventType.RESPONSE_FAILED: ("a provider call failed", "{} provider calls failed"),
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
