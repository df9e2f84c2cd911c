"""What has passed its keeping time, kind by kind: how much there is, and taking it away in portions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection
from django.db.models import Exists, Model, OuterRef, QuerySet
from django.db.models.functions import Now

from ctxengine.engine.events import EventType
from ctxengine.ledger.models import (
    AlertChange,
    Body,
    Job,
    OpenRefusal,
    PlanRow,
    ReplayCellRow,
    ReplayRow,
    RequestRow,
    RunRow,
    SearchEntry,
    SessionRow,
    SideCallRow,
)
from ctxengine.service.jobs.wait_for import FINAL
from ctxengine.service.session_erasure import Wanted, take_content
from ctxengine.service.specs import Actor, ServiceError

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


def _before(days: int) -> Any:
    return Now() - timedelta(days=days)


# --- content ---


def _idle_sessions(tenant_id: UUID, days: int) -> QuerySet[SessionRow]:
    """Idle sessions that hold content; a plan kept without what was erased of it is none."""
    kept = PlanRow.objects.filter(
        tenant_id=OuterRef("tenant_id"),
        session_id=OuterRef("session_id"),
        redacted_body_id=OuterRef("id"),
    )
    content = Body.objects.filter(
        ~Exists(kept),
        tenant_id=OuterRef("tenant_id"),
        session_id=OuterRef("id"),
        erased_at__isnull=True,
    )
    return SessionRow.objects.filter(
        Exists(content), tenant_id=tenant_id, active_at__lt=_before(days)
    )


def _remove_content(actor: Actor, days: int) -> Iterator[int]:
    idle = _idle_sessions(actor.tenant_id, days).order_by("active_at", "id")
    wanted = Wanted(None, EventType.CONTENT_EXPIRED, {"days": days})
    for session_id in list(idle.values_list("id", flat=True)):
        # Asked again: somebody may have come back to it since.
        if not _idle_sessions(actor.tenant_id, days).filter(id=session_id).exists():
            continue
        with suppress(_Busy):
            _take(actor, session_id, wanted)
            yield 1


class _Busy(Exception):
    """The session is written to, so that it is idle no longer."""


def _take(actor: Actor, session_id: UUID, wanted: Wanted) -> None:
    try:
        take_content(actor=actor, session_id=session_id, wanted=wanted)
    except ServiceError as error:
        if error.code != "stale_head":
            raise
        raise _Busy from error


# --- item lists of requests ---


def _whole_requests(tenant_id: UUID, days: int) -> QuerySet[RequestRow]:
    ended = RunRow.objects.filter(
        tenant_id=OuterRef("tenant_id"), id=OuterRef("run_id"), state="ended"
    )
    rows = RequestRow.objects.filter(
        Exists(ended), tenant_id=tenant_id, created_at__lt=_before(days)
    )
    return rows.exclude(manifest__has_key="expired_at")


def _thin_requests(actor: Actor, days: int) -> Iterator[int]:
    rows = _whole_requests(actor.tenant_id, days)
    while ids := list(rows.values_list("id", flat=True)[:_PORTION]):
        with connection.cursor() as cursor:
            cursor.execute(_THIN, [actor.tenant_id, ids])
        yield len(ids)


# --- rows that go as they are ---


def _old_search(tenant_id: UUID, days: int) -> QuerySet[SearchEntry]:
    return SearchEntry.objects.filter(tenant_id=tenant_id, at__lt=_before(days))


def _old_replays(tenant_id: UUID, days: int) -> QuerySet[ReplayRow]:
    running = Job.objects.filter(tenant_id=OuterRef("tenant_id"), id=OuterRef("job_id")).exclude(
        state__in=FINAL
    )
    rows = ReplayRow.objects.filter(tenant_id=tenant_id, created_at__lt=_before(days))
    return rows.filter(~Exists(running))


def _old_jobs(tenant_id: UUID, days: int) -> QuerySet[Job]:
    return Job.objects.filter(tenant_id=tenant_id, state__in=FINAL, finished_at__lt=_before(days))


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
        model._default_manager.filter(tenant_id=tenant_id, at__lt=_before(days)) for model in models
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
    "content": Old(lambda tenant, days: _idle_sessions(tenant, days).count(), _remove_content),
    "manifests": Old(lambda tenant, days: _whole_requests(tenant, days).count(), _thin_requests),
    "search": Old(lambda tenant, days: _old_search(tenant, days).count(), _remove_search),
    "replays": Old(lambda tenant, days: _old_replays(tenant, days).count(), _remove_replays),
    "jobs": Old(lambda tenant, days: _old_jobs(tenant, days).count(), _remove_jobs),
    "records": Old(
        lambda tenant, days: sum(rows.count() for rows in _record_rows(tenant, days)),
        _remove_records,
    ),
}  # fmt: skip
