"""Asking for a job: the row first, in the caller's transaction; the message once that is committed."""

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import UUID, uuid4

from django.db import IntegrityError, transaction
from psycopg.errors import UniqueViolation

from ctxengine.ledger.models import Job, JobState
from ctxengine.service.clock import utc_now
from ctxengine.service.jobs.context import ASKED_BY
from ctxengine.service.jobs.kinds import kind_of
from ctxengine.service.jobs.lease import log_line
from ctxengine.service.jobs.messages import send_message
from ctxengine.service.specs import Actor

_FLIGHT_RULE = "job_single_flight"
"""The constraint that lets a key have one unfinished job."""
_UNFINISHED = (JobState.QUEUED, JobState.RUNNING)


def enqueue(
    *,
    actor: Actor,
    kind: str,
    arguments: dict[str, Any],
    session_id: UUID | None = None,
    subject: str = "",
    single_flight: str = "",
    cause: str = "",
) -> Job:
    """Write a job's row and wake a worker after the commit. A broker that is down does not fail the caller.

    Args:
        actor: who asks; the job acts for the same tenant and under the same name.
        kind: a name of the table of kinds.
        arguments: plain JSON with ids and figures; content belongs into bodies.
        session_id: the session it works on, where it is one.
        subject: what it works on, in a few words for people.
        single_flight: where an unfinished job of the tenant has this key, that one is returned and none is written.
        cause: what led to it, in a few words.

    Raises:
        UnknownKind: there is no such kind.
    """
    facts = kind_of(kind)
    now = utc_now()
    job = Job(
        tenant_id=actor.tenant_id,
        id=uuid4(),
        kind=kind,
        queue=facts.queue,
        session_id=session_id,
        subject=subject,
        single_flight=single_flight,
        arguments={**arguments, ASKED_BY: actor.label},
        cause=cause or actor.label,
        max_attempts=facts.max_attempts,
        not_before=now,
        created_at=now,
        log=[log_line(f"Asked for by {actor.label}.")],
    )
    written = _write(job)
    if written is job:
        transaction.on_commit(partial(send_message, job), robust=True)
    return written


def _write(job: Job) -> Job:
    """The row, or the unfinished one that is there already under its key."""
    while True:
        standing = unfinished(job.tenant_id, job.single_flight)
        if standing is not None:
            return standing
        try:
            with transaction.atomic():
                job.save(force_insert=True)
        except IntegrityError as error:
            if not _key_is_taken(error):
                raise
            # Somebody was faster. Should theirs have ended by now, ours is written in the next round.
        else:
            return job


def _key_is_taken(error: IntegrityError) -> bool:
    cause = error.__cause__
    return isinstance(cause, UniqueViolation) and cause.diag.constraint_name == _FLIGHT_RULE


def unfinished(tenant_id: UUID, single_flight: str) -> Job | None:
    """The unfinished job of a tenant under a single-flight key; None for the empty key."""
    if not single_flight:
        return None
    rows = Job.objects.filter(tenant_id=tenant_id, single_flight=single_flight)
    return rows.filter(state__in=_UNFINISHED).first()
