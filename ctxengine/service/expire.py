"""Upkeep: answers to repeated writes go after 24 hours, a few at a time (design 5). What has keeping times goes once a day."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models.functions import Now

from ctxengine.ledger.models import Idempotency
from ctxengine.service.imports.staged import drop_forgotten
from ctxengine.service.jobs.context import JobContext
from ctxengine.service.jobs.enqueue import enqueue
from ctxengine.service.retention.apply import ask_for_retention
from ctxengine.service.specs import Actor

KEEP_ANSWERS = timedelta(hours=24)
"""How long a repeated write gets the same answer."""
_PORTION = 1000
_TENANTS = 50


def ask_for_upkeep() -> int:
    """Ask for one `upkeep.expire` for each tenant that has something to remove; gives how many. Forgotten uploads go now."""
    drop_forgotten()
    ask_for_retention()
    tenants = set(_old_answers().values_list("tenant_id", flat=True).distinct()[:_TENANTS])
    for tenant_id in sorted(tenants):
        enqueue(
            actor=Actor(tenant_id, "system"),
            kind="upkeep.expire",
            arguments={},
            subject="answers to repeated writes",
            single_flight="upkeep.expire",
            cause="keeping times have passed",
        )
    return len(tenants)


def run(context: JobContext) -> dict[str, Any]:
    """Remove a tenant's old answers, in portions, so that no lock is held for long."""
    tenant = context.job.tenant_id
    answers = 0
    while removed := _remove_answers(tenant):
        answers += removed
        context.progress("answers to repeated writes", 50)
        context.check()
    context.note(f"Removed {answers} answers.")
    return {"answers": answers}


def _old_answers() -> Any:
    return Idempotency.objects.filter(created_at__lt=Now() - KEEP_ANSWERS)


def _remove_answers(tenant: UUID) -> int:
    keys = list(_old_answers().filter(tenant_id=tenant).values_list("key", flat=True)[:_PORTION])
    # Asked again, and not by key alone: a row may have begun anew since it was looked at.
    return int(_old_answers().filter(tenant_id=tenant, key__in=keys).delete()[0])
