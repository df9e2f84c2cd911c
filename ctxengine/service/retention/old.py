"""What has passed its keeping time, kind by kind: how much there is, and taking it away in portions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection
from django.db.models import Exists, Model, OuterRef, Q, QuerySet

from ctxengine.ledger.models import (
    AlertChange,
    Job,
    OpenRefusal,
    ReplayCellRow,
    ReplayRow,
    RequestRow,
    RunRow,
    SearchEntry,
    SideCallRow,
)
from ctxengine.service.jobs.wait_for import FINAL
from ctxengine.service.retention.content import (
    before,
    idle_sessions,
    lately_imported,
    remove_content,
)
from ctxengine.service.specs import Actor

_PORTION = 500
_THIN = """
UPDATE request SET manifest = manifest || jsonb_build_object('spans', '[]'::jsonb, 'expired_at', now())
WHERE tenant_id = %s AND id = ANY(%s)
"""


class Old(NamedTuple):
    """How one kind is counted and removed. Days are never 0 here."""

    due: Callable[[UUID, int], int]
    remove: Callable[[Actor, int], Iterator[int]]
    """Yields how many went, portion by portion; between two of them its user may break off."""


# --- item lists of requests ---


def _whole(tenant_id: UUID, days: int) -> QuerySet[RequestRow]:
    """Old ones that still have their list, thinned ones aside (index `request_whole`)."""
    rows = RequestRow.objects.filter(tenant_id=tenant_id, created_at__lt=before(days))
    return rows.exclude(manifest__has_key="expired_at")


def _may_be_thinned(rows: QuerySet[RequestRow], tenant_id: UUID, days: int) -> QuerySet[RequestRow]:
    """Those of runs that have ended. An imported one is as old as its import."""
    ended = RunRow.objects.filter(
        tenant_id=OuterRef("tenant_id"), id=OuterRef("run_id"), state="ended"
    )
    imported = lately_imported(tenant_id, days).filter(id=OuterRef("session_id"))
    return rows.filter(~Exists(imported.filter(tenant_id=OuterRef("tenant_id"))), Exists(ended))


def _count_whole(tenant_id: UUID, days: int) -> int:
    return _may_be_thinned(_whole(tenant_id, days), tenant_id, days).count()


def _thin_requests(actor: Actor, days: int) -> Iterator[int]:
    whole = _whole(actor.tenant_id, days).order_by("created_at", "id")
    behind = Q()
    # Each is looked at once, also where it may not be thinned yet.
    while seen := list(whole.filter(behind).values_list("created_at", "id")[:_PORTION]):
        at, last = seen[-1]
        behind = Q(created_at__gte=at) & (Q(created_at__gt=at) | Q(id__gt=last))
        looked_at = _whole(actor.tenant_id, days).filter(id__in=[request for _, request in seen])
        ids = list(_may_be_thinned(looked_at, actor.tenant_id, days).values_list("id", flat=True))
        if ids:
            with connection.cursor() as cursor:
                cursor.execute(_THIN, [actor.tenant_id, ids])
        yield len(ids)


# --- rows that go as they are ---


def _old_search(tenant_id: UUID, days: int) -> QuerySet[SearchEntry]:
    return SearchEntry.objects.filter(tenant_id=tenant_id, at__lt=before(days))


def _old_replays(tenant_id: UUID, days: int) -> QuerySet[ReplayRow]:
    running = Job.objects.filter(tenant_id=OuterRef("tenant_id"), id=OuterRef("job_id")).exclude(
        state__in=FINAL
    )
    rows = ReplayRow.objects.filter(tenant_id=tenant_id, created_at__lt=before(days))
    return rows.filter(~Exists(running))


def _old_jobs(tenant_id: UUID, days: int) -> QuerySet[Job]:
    return Job.objects.filter(tenant_id=tenant_id, state__in=FINAL, finished_at__lt=before(days))


def _remove_replays(actor: Actor, days: int) -> Iterator[int]:
    rows = _old_replays(actor.tenant_id, days)
    while ids := list(rows.values_list("id", flat=True)[:_PORTION]):
        # Cells first: what breaks off in between is a replay that is still listed, and goes the next time.
        ReplayCellRow.objects.filter(tenant_id=actor.tenant_id, replay_id__in=ids).delete()
        ReplayRow.objects.filter(tenant_id=actor.tenant_id, id__in=ids).delete()
        yield len(ids)


def _record_rows(tenant_id: UUID, days: int) -> tuple[QuerySet[Any], ...]:
    models: tuple[type[Model], ...] = (SideCallRow, OpenRefusal, AlertChange)
    return tuple(
        model._default_manager.filter(tenant_id=tenant_id, at__lt=before(days)) for model in models
    )


def _in_portions(rows: QuerySet[Any]) -> Iterator[int]:
    # The condition is asked again with the keys: a row may have begun anew since it was looked at.
    while keys := list(rows.values_list("pk", flat=True)[:_PORTION]):
        gone, _ = rows.filter(pk__in=keys).delete()
        if not gone:
            return
        yield gone


def _remove_search(actor: Actor, days: int) -> Iterator[int]:
    yield from _in_portions(_old_search(actor.tenant_id, days))


def _remove_jobs(actor: Actor, days: int) -> Iterator[int]:
    yield from _in_portions(_old_jobs(actor.tenant_id, days))


def _remove_records(actor: Actor, days: int) -> Iterator[int]:
    for rows in _record_rows(actor.tenant_id, days):
        yield from _in_portions(rows)


OLD: dict[str, Old] = {
    "content": Old(lambda tenant, days: idle_sessions(tenant, days).count(), remove_content),
    "manifests": Old(_count_whole, _thin_requests),
    "search": Old(lambda tenant, days: _old_search(tenant, days).count(), _remove_search),
    "replays": Old(lambda tenant, days: _old_replays(tenant, days).count(), _remove_replays),
    "jobs": Old(lambda tenant, days: _old_jobs(tenant, days).count(), _remove_jobs),
    "records": Old(
        lambda tenant, days: sum(rows.count() for rows in _record_rows(tenant, days)),
        _remove_records,
    ),
}  # fmt: skip
