"""Applying a tenant's keeping times: by the daily job, by the command, or only counting what would go."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef
from django.db.models.functions import Now

from ctxengine.ledger.models import Job, RetentionRule
from ctxengine.service.audit import record_audit
from ctxengine.service.jobs.context import JobContext
from ctxengine.service.jobs.enqueue import enqueue
from ctxengine.service.jobs.stops import JobFailed
from ctxengine.service.jobs.wait_for import FINAL
from ctxengine.service.retention.content import LeftBehind
from ctxengine.service.retention.kinds import BY_NAME, FOR_EVER, KINDS
from ctxengine.service.retention.old import OLD
from ctxengine.service.retention.rules import keeping_times
from ctxengine.service.specs import Actor

KIND = "upkeep.retain"
_EVERY = timedelta(hours=24)
_TENANTS = 50

BeforeEach = Callable[[str], None]
"""Called with the kind before each portion; may break off by raising."""


def due(tenant_id: UUID) -> dict[str, int]:
    """How much of each kind has passed its keeping time; 0 of what is kept for ever."""
    return {
        name: OLD[name].due(tenant_id, days) if days != FOR_EVER else 0
        for name, days in keeping_times(tenant_id).items()
    }


def apply_retention(*, actor: Actor, before_each: BeforeEach | None = None) -> dict[str, int]:
    """Take away what has passed its keeping time; gives how much by kind, and writes one audit line where anything went.

    Each portion stands for itself: what broke off goes on the next time with what is left.

    Raises:
        LeftBehind: at the end, where some sessions could not be taken from.
    """
    times = keeping_times(actor.tenant_id)
    left: LeftBehind | None = None
    gone = dict.fromkeys(times, 0)
    try:
        for name, days in times.items():
            if days == FOR_EVER:
                continue
            if before_each is not None:
                before_each(name)
            try:
                for portion in OLD[name].remove(actor, days):
                    gone[name] += portion
                    if before_each is not None:
                        before_each(name)
            except LeftBehind as error:
                left = error
    finally:
        # What has gone is gone, whether or not the rest came to its turn.
        if any(gone.values()):
            told = {name: count for name, count in gone.items() if count}
            record_audit(
                actor=actor,
                action="retention.applied",
                reason="keeping times have passed",
                before={name: times[name] for name in told},
                after=told,
            )
    if left is not None:
        raise left
    return gone


def ask_for_retention() -> int:
    """Ask for one job a day for each tenant with a rule, or with something that goes without one; gives how many."""
    recent = Job.objects.filter(
        tenant_id=OuterRef("tenant_id"), kind=KIND, created_at__gt=Now() - _EVERY
    )
    rules = RetentionRule.objects.filter(~Exists(recent)).exclude(days=FOR_EVER)
    own = RetentionRule.objects.filter(tenant_id=OuterRef("tenant_id"), kind="jobs")
    limit = Now() - timedelta(days=BY_NAME["jobs"].default_days)
    ended = Job.objects.filter(
        ~Exists(recent), ~Exists(own), state__in=FINAL, finished_at__lt=limit
    )
    tenants: set[UUID] = set()
    for rows in (rules, ended):
        tenants.update(rows.values_list("tenant_id", flat=True).distinct()[:_TENANTS])
    for tenant_id in sorted(tenants):
        ask_for_retention_of(Actor(tenant_id, "system"))
    return len(tenants)


def ask_for_retention_of(actor: Actor) -> Job:
    """Ask for a tenant's job now; one that waits or runs already is enough."""
    return enqueue(
        actor=actor,
        kind=KIND,
        arguments={},
        subject="keeping times",
        single_flight=KIND,
        cause="keeping times have passed",
    )


def run(context: JobContext) -> dict[str, Any]:
    """The job's work."""
    places = {kind.name: number for number, kind in enumerate(KINDS)}

    def before_each(name: str) -> None:
        context.progress(name, 100 * places[name] // len(places))
        context.check()

    try:
        return dict(apply_retention(actor=context.actor, before_each=before_each))
    except LeftBehind as error:
        context.note(str(error))
        raise JobFailed("retention_incomplete", str(error)) from error
