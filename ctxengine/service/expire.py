"""Upkeep: rows that have passed their keeping time go, a few at a time (design 5: idempotency rows, 24 hours)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import DurationField, ExpressionWrapper, F, OuterRef, Subquery, Value
from django.db.models.functions import Coalesce, Now

from ctxengine.ledger.models import Idempotency, Job, RetentionRule
from ctxengine.service.imports.staged import drop_forgotten
from ctxengine.service.jobs.context import JobContext
from ctxengine.service.jobs.enqueue import enqueue
from ctxengine.service.jobs.wait_for import FINAL
from ctxengine.service.retention.apply import ask_for_retention
from ctxengine.service.retention.kinds import BY_NAME, FOR_EVER
from ctxengine.service.specs import Actor

KEEP_ANSWERS = timedelta(hours=24)
"""How long a repeated write gets the same answer."""
_PORTION = 1000
_TENANTS = 50


def ask_for_upkeep() -> int:
    """Ask for one `upkeep.expire` for each tenant that has something to remove; gives how many. Forgotten uploads go now."""
    drop_forgotten()
    ask_for_retention()
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
    rule = RetentionRule.objects.filter(tenant_id=OuterRef("tenant_id"), kind="jobs")
    days = Coalesce(Subquery(rule.values("days")[:1]), BY_NAME["jobs"].default_days)
    kept = ExpressionWrapper(days * Value(timedelta(days=1)), output_field=DurationField())
    ended = Job.objects.filter(state__in=FINAL).annotate(days=days, kept=kept)
    return ended.exclude(days=FOR_EVER).filter(finished_at__lt=Now() - F("kept"))


def _remove_answers(tenant: UUID) -> int:
    keys = list(_old_answers().filter(tenant_id=tenant).values_list("key", flat=True)[:_PORTION])
    # Asked again, and not by key alone: a row may have begun anew since it was looked at.
    return int(_old_answers().filter(tenant_id=tenant, key__in=keys).delete()[0])


def _remove_jobs(tenant: UUID) -> int:
    ids = list(_old_jobs().filter(tenant_id=tenant).values_list("id", flat=True)[:_PORTION])
    return int(_old_jobs().filter(tenant_id=tenant, id__in=ids).delete()[0])
