"""Upkeep: rows that have passed their keeping time go, a few at a time (design 5: idempotency rows, 24 hours)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models.functions import Now

from ctxengine.ledger.models import Idempotency, Job
from ctxengine.service.imports.staged import drop_forgotten
from ctxengine.service.jobs.context import JobContext
from ctxengine.service.jobs.enqueue import enqueue
from ctxengine.service.jobs.wait_for import FINAL
from ctxengine.service.specs import Actor

KEEP_ANSWERS = timedelta(hours=24)
"""How long a repeated write gets the same answer."""
KEEP_JOBS = timedelta(days=30)
"""How long an ended job stays to be looked at."""
_PORTION = 1000
_TENANTS = 50


def ask_for_upkeep() -> int:
    """Ask for one `upkeep.expire` for each tenant that has something to remove; gives how many. Forgotten uploads go now."""
    drop_forgotten()
    tenants = [*_old_answers().values_list("tenant_id", flat=True).distinct()[:_TENANTS]]
    tenants += _old_jobs().values_list("tenant_id", flat=True).distinct()[:_TENANTS]
    for tenant_id in sorted(set(tenants)):
        enqueue(
            actor=Actor(tenant_id, "system"),
            kind="upkeep.expire",
            arguments={},
            subject="answers to repeated writes, old jobs",
            single_flight="upkeep.expire",
            cause="keeping times have passed",
        )
    return len(set(tenants))


def run(context: JobContext) -> dict[str, Any]:
    """Remove a tenant's old rows, in portions, so that no lock is held for long."""
    tenant = context.job.tenant_id
    answers = jobs = 0
    while removed := _remove_answers(tenant):
        answers += removed
        context.progress("answers to repeated writes", 50)
        context.check()
    while removed := _remove_jobs(tenant):
        jobs += removed
        context.check()
    context.note(f"Removed {answers} answers and {jobs} jobs.")
    return {"answers": answers, "jobs": jobs}


def _old_answers() -> Any:
    return Idempotency.objects.filter(created_at__lt=Now() - KEEP_ANSWERS)


def _old_jobs() -> Any:
    return Job.objects.filter(state__in=FINAL, finished_at__lt=Now() - KEEP_JOBS)


def _remove_answers(tenant: UUID) -> int:
    keys = list(_old_answers().filter(tenant_id=tenant).values_list("key", flat=True)[:_PORTION])
    # Asked again, and not by key alone: a row may have begun anew since it was looked at.
    return int(_old_answers().filter(tenant_id=tenant, key__in=keys).delete()[0])


def _remove_jobs(tenant: UUID) -> int:
    ids = list(_old_jobs().filter(tenant_id=tenant).values_list("id", flat=True)[:_PORTION])
    return int(_old_jobs().filter(tenant_id=tenant, id__in=ids).delete()[0])
