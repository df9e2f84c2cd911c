"""Jobs as REST shows them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from api.answers import to_json
from api.pagination import DEFAULT_LIMIT, Page
from api.problems import Problem
from ctxengine.ledger.models import Job
from ctxengine.ledger.queries.jobs import JobFilter, JobQuery, job_of, list_jobs
from ctxengine.ledger.queries.paging import Cursor
from ctxengine.service.jobs.context import ASKED_BY

_LINE = (
    "id",
    "kind",
    "queue",
    "state",
    "session_id",
    "subject",
    "cause",
    "attempts",
    "max_attempts",
    "cancel_asked",
    "phase",
    "percent",
    "not_before",
    "created_at",
    "started_at",
    "finished_at",
)


def job_line(job: Job) -> dict[str, Any]:
    """A job in a list."""
    facts = {name: getattr(job, name) for name in _LINE}
    return facts | {"error": job.error or None}


def job_facts(job: Job) -> dict[str, Any]:
    """One job with its arguments, result and log."""
    arguments = {name: value for name, value in job.arguments.items() if name != ASKED_BY}
    return job_line(job) | {
        "asked_by": str(job.arguments.get(ASKED_BY, "")),
        "arguments": arguments,
        "result": job.result,
        "log": job.log,
    }


def require_job(tenant_id: UUID, job_id: UUID) -> Job:
    """The job's row.

    Raises:
        Problem: `not_found`, for another tenant's jobs too.
    """
    job = job_of(tenant_id, job_id)
    if job is None:
        raise Problem("not_found", f"There is no job {job_id} for this key.")
    return job


def job_page(tenant_id: UUID, query: dict[str, Any]) -> Page:
    """One page of jobs. One query."""
    after = query.get("cursor")
    where = JobFilter(query.get("state", ""), query.get("kind", ""), query.get("session"))
    size = query.get("limit", DEFAULT_LIMIT)
    found = list_jobs(tenant_id, JobQuery(where, Cursor(*after) if after else None, size))
    last = found.rows[-1] if found.rows else None
    key = [last.created_at.isoformat(), str(last.id)] if last and found.after else None
    return Page([to_json(job_line(job)) for job in found.rows], key)
