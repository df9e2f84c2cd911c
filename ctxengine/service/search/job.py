"""The job that keeps a tenant's search index up with its sessions, and who asks for it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import F, OuterRef, Q, QuerySet, Subquery

from ctxengine.ledger.models import SearchHead, SessionRow
from ctxengine.service.jobs.context import JobContext
from ctxengine.service.jobs.enqueue import enqueue
from ctxengine.service.search.index_session import index_session
from ctxengine.service.specs import Actor

KIND = "search.index"
_TENANTS = 50


def behind(tenant_id: UUID | None = None) -> QuerySet[SessionRow]:
    """Sessions with events that are not indexed yet."""
    heads = SearchHead.objects.filter(tenant_id=OuterRef("tenant_id"), session_id=OuterRef("id"))
    rows = SessionRow.objects.annotate(indexed=Subquery(heads.values("through")[:1])).filter(
        Q(indexed__isnull=True) | Q(indexed__lt=F("last_sequence"))
    )
    return rows.filter(tenant_id=tenant_id) if tenant_id else rows


def ask_for_index() -> int:
    """Ask for one job for each tenant whose index is behind; gives how many."""
    tenants = list(behind().order_by().values_list("tenant_id", flat=True).distinct()[:_TENANTS])
    for tenant_id in tenants:
        ask_for_index_of(tenant_id)
    return len(tenants)


def ask_for_index_of(tenant_id: UUID) -> None:
    """Ask for a tenant's job; one that waits or runs already is enough."""
    enqueue(
        actor=Actor(tenant_id, "system"),
        kind=KIND,
        arguments={},
        subject="the text of new items",
        single_flight=KIND,
        cause="sessions went on",
    )


def run(context: JobContext) -> dict[str, Any]:
    """Index every session of the tenant that went on, the most recent first."""
    tenant = context.job.tenant_id
    ids = list(behind(tenant).order_by("-active_at").values_list("id", flat=True))
    entries = 0
    for number, session_id in enumerate(ids):
        context.progress("indexing sessions", 100 * number // len(ids))
        entries += index_session(tenant_id=tenant, session_id=session_id, before_each=context.check)
    return {"sessions": len(ids), "entries": entries}
