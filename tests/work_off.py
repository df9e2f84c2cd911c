"""Running jobs in the test's own process: what a worker would do, without a broker and without waiting."""

from __future__ import annotations

from uuid import UUID

from django.db.models import F
from django.db.models.functions import Now

from ctxengine.ledger.models import Job, JobState
from ctxengine.service.jobs.run import Ended, run_job


def work_off(tenant_id: UUID, *, kind: str = "", most: int = 50) -> list[tuple[str, Ended]]:
    """Run a tenant's waiting jobs, oldest first, until none is due; gives (kind, how the attempt ended) of each.

    A job that asks to be tried again later stays queued, as it would with a worker.
    """
    ended: list[tuple[str, Ended]] = []
    while len(ended) < most:
        due = Job.objects.filter(
            tenant_id=tenant_id,
            state=JobState.QUEUED,
            not_before__lte=Now(),
            attempts__lt=F("max_attempts"),
        )
        if kind:
            due = due.filter(kind=kind)
        job = due.order_by("created_at", "id").first()
        if job is None:
            break
        ended.append((job.kind, run_job(tenant_id, job.id, "test", beats=False)))
    return ended
