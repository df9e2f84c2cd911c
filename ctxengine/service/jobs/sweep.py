"""The sweeper: finds jobs whose message was lost or whose worker died, and sends again. One at a time, everywhere.

A broker may forget everything: what is to be done stands in the rows, and a lost message costs seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import NamedTuple
from uuid import UUID

from django.db import connection, transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from ctxengine.ledger.models import Job, JobState
from ctxengine.service.jobs.lease import log_line, log_with
from ctxengine.service.jobs.messages import deliver

SWEEP_LOCK = 0x63747801
"""First key of the advisory locks of this package; the second names which."""
_SWEEPING = 1
_MOST = 200
"""Messages of one round; the rest come in the next."""
_MISSED_AFTER_S = 3
"""A message this old whose job nobody took, while its queue is empty, has been lost."""
_WORKER_LOST = "The worker ended each time while it ran this job."

Waiting = Callable[[str], int | None]
"""How many messages wait in a queue; None where the broker does not say."""


class Swept(NamedTuple):
    """What one round did."""

    sent: int
    ended: int


class _Wanted(NamedTuple):
    tenant_id: UUID
    job_id: UUID
    queue: str


def sweep(*, waiting: Waiting) -> Swept:
    """One round over all tenants. Where another process is at it, nothing is done."""
    with transaction.atomic():
        if not _alone():
            return Swept(0, 0)
        ended = _end_hopeless()
        wanted = _wanted(waiting)
        for one in wanted:
            Job.objects.filter(tenant_id=one.tenant_id, id=one.job_id).update(sent_at=Now())
    sent = 0
    for one in wanted:
        if deliver(one.tenant_id, one.job_id, one.queue):
            sent += 1
        else:
            Job.objects.filter(tenant_id=one.tenant_id, id=one.job_id).update(sent_at=None)
    return Swept(sent, ended)


def _alone() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s, %s)", (SWEEP_LOCK, _SWEEPING))
        row = cursor.fetchone()
    return bool(row and row[0])


def _end_hopeless() -> int:
    """Jobs that no worker will take: unwanted ones, and those whose holder died in the last of their attempts."""
    unwanted = Job.objects.filter(state=JobState.QUEUED, cancel_asked=True).update(
        state=JobState.CANCELLED,
        finished_at=Now(),
        log=log_with([log_line("Cancelled while it waited.")]),
    )
    left = Job.objects.filter(state=JobState.RUNNING, lease_until__lt=Now())
    cancelled = left.filter(cancel_asked=True).update(
        state=JobState.CANCELLED,
        lease_until=None,
        finished_at=Now(),
        log=log_with([log_line("Cancelled; its worker had ended.")]),
    )
    failed = left.filter(attempts__gte=F("max_attempts")).update(
        state=JobState.FAILED,
        lease_until=None,
        finished_at=Now(),
        error={"code": "worker_lost", "detail": _WORKER_LOST},
        log=log_with([log_line(_WORKER_LOST)]),
    )
    return unwanted + cancelled + failed


def _wanted(waiting: Waiting) -> list[_Wanted]:
    long_ago = Now() - timedelta(seconds=_MISSED_AFTER_S)
    rows: QuerySet[Job] = Job.objects.filter(not_before__lte=Now()).order_by("not_before")
    dropped = rows.filter(state=JobState.RUNNING, lease_until__lt=Now())
    unsent = Q(state=JobState.QUEUED, sent_at__isnull=True)
    fresh = rows.filter(unsent)
    orphaned = dropped.filter(Q(sent_at__isnull=True) | Q(sent_at__lt=F("lease_until")))
    missed = rows.filter(state=JobState.QUEUED, sent_at__lt=long_ago)
    again = dropped.filter(sent_at__gte=F("lease_until"), sent_at__lt=long_ago)
    found = [*_keys(fresh), *_keys(orphaned)]
    perhaps_lost = [*_keys(missed), *_keys(again)]
    empty = {queue for queue in {one.queue for one in perhaps_lost} if not waiting(queue)}
    return (found + [one for one in perhaps_lost if one.queue in empty])[:_MOST]


def _keys(rows: QuerySet[Job]) -> list[_Wanted]:
    found = rows.values_list("tenant_id", "id", "queue")[:_MOST]
    return [_Wanted(*row) for row in found]
