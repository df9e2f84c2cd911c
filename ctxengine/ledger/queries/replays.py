"""Replays of the lab in lists, for the doors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from uuid import UUID

from django.db.models import Count, Q

from ctxengine.ledger.models import Job, ReplayCellRow, ReplayRow, SessionRow
from ctxengine.ledger.queries.paging import Cursor, Page

_LEAST_OF_ID = 4
"""Characters from which a word may be the beginning of an id."""


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


def sessions_found(tenant_id: UUID, text: str, *, limit: int = 8) -> list[SessionRow]:
    """Sessions with a request whose title, agent or id holds a text, those worked on last first. One query."""
    rows = SessionRow.objects.filter(tenant_id=tenant_id, requests__gt=0)
    for word in text.split():
        begins = {"id__startswith": word} if _is_start_of_id(word) else None
        named = Q(title__icontains=word) | Q(agent_name__icontains=word)
        rows = rows.filter(named | Q(**begins) if begins else named)
    return list(rows.order_by("-active_at", "-id")[:limit])


def models_of_sessions(tenant_id: UUID, *, looked_at: int = 200) -> list[str]:
    """Models of the newest sessions as PROVIDER/NAME, the most frequent first. One query."""
    rows = SessionRow.objects.filter(tenant_id=tenant_id).order_by("-active_at")[:looked_at]
    counted = Counter(
        f"{provider}/{model}" for provider, model in rows.values_list("provider", "model")
    )
    return [name for name, _ in counted.most_common()]


def _is_start_of_id(word: str) -> bool:
    return len(word) >= _LEAST_OF_ID and set(word.lower()) <= set("0123456789abcdef-")
