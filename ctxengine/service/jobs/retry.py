"""Trying a job again that failed or was cancelled."""

from __future__ import annotations

from functools import partial
from uuid import UUID

from django.db import IntegrityError, transaction

from ctxengine.ledger.models import Job, JobState
from ctxengine.service.access import not_found
from ctxengine.service.audit import record_audit
from ctxengine.service.clock import utc_now
from ctxengine.service.jobs.enqueue import unfinished
from ctxengine.service.jobs.kinds import UnknownKind, kind_of
from ctxengine.service.jobs.lease import log_line, log_with
from ctxengine.service.jobs.messages import send_message
from ctxengine.service.specs import Actor, ServiceError


def retry_job(*, actor: Actor, job_id: UUID, note: str = "") -> Job:
    """Queue an ended job again, with as many attempts as a new one has.

    Attempts are counted on, not from zero: a worker that once held the job never holds its number again.

    Raises:
        ServiceError: 404; 409 `job_not_ended` where it waits or runs, `job_done` where it has succeeded,
            `job_in_flight` where another job does the same by now, `job_kind_unknown` after an upgrade.
    """
    with transaction.atomic():
        rows = Job.objects.filter(tenant_id=actor.tenant_id, id=job_id)
        job = rows.select_for_update().first()
        if job is None:
            raise not_found("job")
        _require_retryable(job)
        _queue_again(actor, job)
        record_audit(
            actor=actor,
            action="job.retried",
            target=str(job_id),
            reason=note,
            before={"kind": job.kind, "state": job.state, "attempts": job.attempts},
        )
        again = rows.get()
        transaction.on_commit(partial(send_message, again), robust=True)
        return again


def _queue_again(actor: Actor, job: Job) -> None:
    rows = Job.objects.filter(tenant_id=job.tenant_id, id=job.id)
    try:
        with transaction.atomic():
            rows.update(
                state=JobState.QUEUED,
                cancel_asked=False,
                max_attempts=job.attempts + _attempts_of(job),
                not_before=utc_now(),
                sent_at=None,
                lease_until=None,
                finished_at=None,
                phase="",
                percent=0,
                error={},
                log=log_with([log_line(f"{actor.label} asked for another try.")]),
            )
    except IntegrityError as error:
        # Another job took the key between the look and the write.
        raise _in_flight() from error


def _in_flight(**extra: str) -> ServiceError:
    detail = "Another job does the same already; wait for its end."
    return ServiceError("job_in_flight", 409, detail, **extra)


def _require_retryable(job: Job) -> None:
    if job.state == JobState.DONE:
        raise ServiceError("job_done", 409, "The job has succeeded; there is nothing to try again.")
    if job.state not in {JobState.FAILED, JobState.CANCELLED}:
        raise ServiceError(
            "job_not_ended", 409, f"The job is {job.state}; cancel it first, or wait for its end."
        )
    other = unfinished(job.tenant_id, job.single_flight)
    if other is not None:
        raise _in_flight(job_id=str(other.id))


def _attempts_of(job: Job) -> int:
    try:
        return kind_of(job.kind).max_attempts
    except UnknownKind as error:
        raise ServiceError("job_kind_unknown", 409, str(error)) from error
