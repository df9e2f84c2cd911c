"""Jobs in lists and counts, for the doors."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from django.db.models import Count, QuerySet
from django.db.models.functions import Now

from ctxengine.ledger.models import Job, JobState
from ctxengine.ledger.queries.paging import Cursor, Page


@dataclass(frozen=True, slots=True)
class JobFilter:
    """What a list of jobs is narrowed to; every field is optional."""

    state: str = ""
    """A state, or `unfinished` for those that wait or run."""
    kind: str = ""
    session_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class JobQuery:
    """A filter with a place in its list."""

    where: JobFilter = field(default_factory=JobFilter)
    after: Cursor | None = None
    size: int = 50


@dataclass(frozen=True, slots=True)
class JobCounts:
    """How many jobs of a tenant are in each state, and since when the oldest due one waits."""

    by_state: dict[str, int]
    oldest_due: datetime | None
    """When the job that has waited longest could have begun; None where none waits."""


def list_jobs(tenant_id: UUID, query: JobQuery) -> Page[Job]:
    """One page of jobs, the newest first. One query."""
    rows = _narrowed(tenant_id, query.where)
    if query.after:
        rows = rows.filter(query.after.older("created_at"))
    found = list(rows.order_by("-created_at", "-id")[: query.size + 1])
    shown = found[: query.size]
    more = len(found) > query.size
    after = Cursor(shown[-1].created_at, shown[-1].id).text() if more else ""
    return Page(tuple(shown), after)


def job_of(tenant_id: UUID, job_id: UUID) -> Job | None:
    """One job of the tenant; None where there is none."""
    return Job.objects.filter(tenant_id=tenant_id, id=job_id).first()


def job_counts(tenant_id: UUID) -> JobCounts:
    """Counts by state over all jobs of the tenant that are kept. Two queries."""
    rows = Job.objects.filter(tenant_id=tenant_id)
    grouped = rows.order_by().values_list("state").annotate(number=Count("id"))
    counts = Counter(dict(grouped))
    waiting = rows.filter(state=JobState.QUEUED, not_before__lte=Now()).order_by("not_before")
    oldest = waiting.values_list("not_before", flat=True).first()
    return JobCounts({state.value: counts[state.value] for state in JobState}, oldest)


def job_kinds(tenant_id: UUID) -> tuple[str, ...]:
    """The kinds that occur among a tenant's jobs."""
    rows = Job.objects.filter(tenant_id=tenant_id).order_by("kind")
    return tuple(rows.values_list("kind", flat=True).distinct())


def _narrowed(tenant_id: UUID, where: JobFilter) -> QuerySet[Job]:
    rows = Job.objects.filter(tenant_id=tenant_id)
    if where.state == "unfinished":
        rows = rows.filter(state__in=(JobState.QUEUED, JobState.RUNNING))
    elif where.state:
        rows = rows.filter(state=where.state)
    if where.kind:
        rows = rows.filter(kind=where.kind)
    if where.session_id:
        rows = rows.filter(session_id=where.session_id)
    return rows
