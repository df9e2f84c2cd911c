"""Leases: the right to work on a job for some seconds. Every write of a job's outcome compares it (fencing).

All times are the database's, so that machines whose clocks differ agree on when a lease has run out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from django.db import models
from django.db.models import Case, F, Func, JSONField, Q, QuerySet, Value, When
from django.db.models.functions import Coalesce, Now

from ctxengine.ledger.models import Job, JobState
from ctxengine.service.clock import utc_now
from ctxengine.service.jobs.kinds import kind_of
from ctxengine.service.jobs.stops import LeaseLost

LOG_LINES = 200
"""How many of a job's newest log lines are kept."""
_LOG_LINE_CHARS = 300
_WORKER_LOST = "The worker was lost in the middle of its attempt; a new attempt begins."


@dataclass(frozen=True, slots=True)
class Lease:
    """One worker's hold on one attempt of one job."""

    tenant_id: UUID
    job_id: UUID
    worker: str
    """Name of the worker with a part of its own for this attempt."""
    attempt: int
    seconds: int

    def rows(self) -> QuerySet[Job]:
        """The job's row while this lease holds it, and no row afterwards."""
        return Job.objects.filter(
            tenant_id=self.tenant_id,
            id=self.job_id,
            state=JobState.RUNNING,
            worker=self.worker,
            attempts=self.attempt,
        )

    def write(self, **fields: Any) -> bool:
        """Write to the job's row if the lease still holds it; whether it does."""
        return bool(self.rows().update(**fields))

    def renew(self, **fields: Any) -> bool | None:
        """Write, and start the lease's seconds anew. Whether an end was asked for; None where the lease is lost."""
        if not self.write(lease_until=after(self.seconds), **fields):
            return None
        return self.rows().values_list("cancel_asked", flat=True).first()

    def concluded(self) -> bool:
        """Whether the job is done, and this attempt has written so."""
        rows = Job.objects.filter(tenant_id=self.tenant_id, id=self.job_id, state=JobState.DONE)
        return rows.filter(worker=self.worker, attempts=self.attempt).exists()

    def lock(self) -> None:
        """Inside a transaction: make sure that nobody takes the job over before it commits.

        Raises:
            LeaseLost: somebody has.
        """
        if self.rows().select_for_update().first() is None:
            raise LeaseLost


def due() -> Q:
    """Jobs that a worker may take now."""
    waiting = Q(state=JobState.QUEUED, not_before__lte=Now())
    return waiting | Q(state=JobState.RUNNING, lease_until__lt=Now())


def take_lease(*, tenant_id: UUID, job_id: UUID, worker: str) -> tuple[Job, Lease] | None:
    """Take a job that is due, comparing and setting in one statement; None where it is not due, or not there.

    Raises:
        UnknownKind: this version does not know its kind.
    """
    rows = Job.objects.filter(tenant_id=tenant_id, id=job_id)
    kind = rows.values_list("kind", flat=True).first()
    if kind is None:
        return None
    seconds = kind_of(kind).lease_s
    token = f"{worker}#{uuid4().hex[:8]}"
    taken = rows.filter(due(), cancel_asked=False, attempts__lt=F("max_attempts")).update(
        state=JobState.RUNNING,
        worker=token,
        attempts=F("attempts") + 1,
        lease_until=after(seconds),
        started_at=Coalesce(F("started_at"), Now()),
        log=Case(
            When(state=JobState.RUNNING, then=log_with([log_line(_WORKER_LOST)])), default=F("log")
        ),
    )
    if not taken:
        return None
    job = rows.filter(worker=token).first()
    if job is None:
        return None
    return job, Lease(tenant_id, job_id, token, job.attempts, seconds)


def after(seconds: float) -> models.expressions.Combinable:
    """A moment some seconds from now, by the database's clock."""
    return Now() + Value(timedelta(seconds=seconds), output_field=models.DurationField())


def log_line(text: str) -> dict[str, str]:
    """One line of a job's log: when, and what in a few words."""
    return {"at": utc_now().isoformat(timespec="milliseconds"), "text": text[:_LOG_LINE_CHARS]}


def log_with(lines: Sequence[dict[str, str]]) -> Func:
    """The log with more lines at its end, and without the oldest where there are too many."""
    return Func(
        F("log"),
        Value(list(lines), output_field=JSONField()),
        template=f"jsonb_path_query_array(%(expressions)s, '$[last - {LOG_LINES - 1} to last]')",
        arg_joiner=" || ",
        output_field=JSONField(),
    )
