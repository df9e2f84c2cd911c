"""Replays of the lab in lists, for the doors."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from django.db.models import Count

from ctxengine.ledger.models import Job, ReplayCellRow, ReplayRow
from ctxengine.ledger.queries.paging import Cursor, Page


def list_replays(
    tenant_id: UUID, *, after: Cursor | None = None, size: int = 50, session_id: UUID | None = None
) -> Page[ReplayRow]:
    """One page of a tenant's replays, the newest first. One query."""
    rows = ReplayRow.objects.filter(tenant_id=tenant_id)
    if session_id is not None:
        rows = rows.filter(session_id=session_id)
    if after:
        rows = rows.filter(after.older("created_at"))
    found = list(rows.order_by("-created_at", "-id")[: size + 1])
    shown = found[:size]
    more = len(found) > size
    last = Cursor(shown[-1].created_at, shown[-1].id).text() if more else ""
    return Page(tuple(shown), last)


def cells_done(tenant_id: UUID, replays: Iterable[UUID]) -> dict[UUID, int]:
    """How many cells of each replay are there. One query."""
    rows = ReplayCellRow.objects.filter(tenant_id=tenant_id, replay_id__in=list(replays))
    return dict(rows.order_by().values_list("replay_id").annotate(Count("number")))


def jobs_of(tenant_id: UUID, jobs: Iterable[UUID | None]) -> dict[UUID, Job]:
    """The jobs of these ids that are still kept. One query."""
    wanted = [job for job in jobs if job is not None]
    return {job.id: job for job in Job.objects.filter(tenant_id=tenant_id, id__in=wanted)}
