"""Cancelling a job: at once where it waits, at its next look where it runs."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from ctxengine.ledger.models import Job, JobState
from ctxengine.service.access import not_found
from ctxengine.service.audit import record_audit
from ctxengine.service.clock import utc_now
from ctxengine.service.jobs.lease import log_line, log_with
from ctxengine.service.jobs.wait_for import FINAL
from ctxengine.service.specs import Actor, ServiceError


def cancel_job(*, actor: Actor, job_id: UUID, note: str = "") -> Job:
    """Ask for a job's end. Asking again for one that is to end already changes nothing.

    Raises:
        ServiceError: 404; 409 `job_ended` where it has ended.
    """
    with transaction.atomic():
        rows = Job.objects.filter(tenant_id=actor.tenant_id, id=job_id)
        job = rows.select_for_update().first()
        if job is None:
            raise not_found("job")
        if job.state in FINAL:
            raise ServiceError("job_ended", 409, f"The job has ended already ({job.state}).")
        if job.cancel_asked and job.state == JobState.RUNNING:
            return job
        line = log_with([log_line(f"{actor.label} asked for its end.")])
        if job.state == JobState.QUEUED:
            rows.update(
                state=JobState.CANCELLED, cancel_asked=True, finished_at=utc_now(), log=line
            )
        else:
            rows.update(cancel_asked=True, log=line)
        record_audit(
            actor=actor,
            action="job.cancelled",
            target=str(job_id),
            reason=note,
            before={"kind": job.kind, "state": job.state},
        )
        return rows.get()
