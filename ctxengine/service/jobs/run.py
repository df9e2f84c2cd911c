"""Running one attempt of one job: take the lease, work, write the outcome once."""

from __future__ import annotations

import logging
import time
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal
from uuid import UUID

from django.db import InterfaceError, OperationalError, connection
from django.db.models.functions import Now

from ctxengine.ledger.models import Job, JobState
from ctxengine.service.jobs.context import JobContext
from ctxengine.service.jobs.heartbeat import Heartbeat
from ctxengine.service.jobs.kinds import UnknownKind, kind_of
from ctxengine.service.jobs.lease import after, log_line, log_with, take_lease
from ctxengine.service.jobs.stops import JobCancelled, LeaseLost
from ctxengine.service.jobs.verdict import Verdict, verdict_on, wait_before

_log = logging.getLogger(__name__)
_DATABASE_REST_S = 0.3

Ended = Literal["not_due", "done", "again", "failed", "cancelled", "lost"]


def run_job(tenant_id: UUID, job_id: UUID, worker: str, *, beats: bool = True) -> Ended:
    """Run a job if it is due, and say how the attempt ended. A message that comes twice does nothing the second time.

    Args:
        tenant_id: whose job it is.
        job_id: which one.
        worker: name of the process that runs it, for people.
        beats: False where nobody else could take the job over, such as in a test's own process.
    """
    try:
        taken = take_lease(tenant_id=tenant_id, job_id=job_id, worker=worker)
    except UnknownKind as error:
        _fail_unknown(tenant_id, job_id, verdict_on(error))
        return "failed"
    if taken is None:
        return "not_due"
    job, lease = taken
    context = JobContext(job, lease, beats=beats)
    beating: AbstractContextManager[object] = Heartbeat(context) if beats else nullcontext()
    with beating:
        ended = _attempt(context)
    _log.info("job %s (%s), attempt %d: %s", job.id, job.kind, lease.attempt, ended)
    return ended


def _attempt(context: JobContext) -> Ended:
    try:
        result = kind_of(context.job.kind).load()(context)
    except LeaseLost:
        return "lost"
    except JobCancelled:
        return _cancelled(context)
    except Exception as error:
        if context.cancelled_by_somebody():
            return _cancelled(context)
        verdict = verdict_on(error)
        if verdict.code == "cancelled":
            # A call was broken off because the lease seemed lost; if it is not, the work is still wanted.
            verdict = verdict._replace(again=True)
        if verdict.code == "internal_error":
            _log.exception("job %s (%s) met a defect", context.job.id, context.job.kind)
        return _ended_badly(context, verdict)
    return _end(context, "done", "Done.", state=JobState.DONE, percent=100, result=result, error={})


def _cancelled(context: JobContext) -> Ended:
    return _end(context, "cancelled", "Cancelled.", state=JobState.CANCELLED)


def _ended_badly(context: JobContext, verdict: Verdict) -> Ended:
    error = {"code": verdict.code, "detail": verdict.detail}
    attempt = context.lease.attempt
    if not verdict.again or attempt >= context.job.max_attempts:
        said = f"Attempt {attempt} failed ({verdict.code}): {verdict.detail}"
        return _end(context, "failed", said, state=JobState.FAILED, error=error)
    wait = wait_before(attempt, verdict.retry_after_s, context.job.id)
    said = (
        f"Attempt {attempt} failed ({verdict.code}); the next one in {wait:.0f} s. {verdict.detail}"
    )
    return _end(
        context, "again", said,
        state=JobState.QUEUED, error=error, not_before=after(wait), sent_at=None,
    )  # fmt: skip


def _end(context: JobContext, ended: Ended, said: str, **fields: Any) -> Ended:
    """Write how the attempt ended, together with what was reported last; `lost` where it is not ours to say."""
    reported = context.take_reported()
    reported.lines.append(log_line(said))
    if ended != "again":
        fields["finished_at"] = Now()
    fields = reported.as_update() | fields | {"lease_until": None}
    patience = time.monotonic() + context.lease.seconds
    while True:
        try:
            return _written(context, ended, fields)
        except (OperationalError, InterfaceError):
            if connection.in_atomic_block or time.monotonic() > patience:
                raise
            connection.close()
            time.sleep(_DATABASE_REST_S)


def _written(context: JobContext, ended: Ended, fields: dict[str, Any]) -> Ended:
    lease = context.lease
    if ended == "again":
        # The heartbeat may not have read yet that an end is asked for; a waiting job with that wish would never be taken.
        if lease.rows().filter(cancel_asked=False).update(**fields):
            return ended
        ended = "cancelled"
        fields = fields | {"state": JobState.CANCELLED, "finished_at": Now()}
    if lease.write(**fields):
        return ended
    return "done" if lease.concluded() else "lost"


def _fail_unknown(tenant_id: UUID, job_id: UUID, verdict: Verdict) -> None:
    Job.objects.filter(tenant_id=tenant_id, id=job_id, state=JobState.QUEUED).update(
        state=JobState.FAILED,
        error={"code": verdict.code, "detail": verdict.detail},
        finished_at=Now(),
        log=log_with([log_line(verdict.detail)]),
    )
