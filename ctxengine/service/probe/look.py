"""A look at what a provider says of a measured model: another behind the same name makes its profile stale (capacity spec 1).

It sends no prompt, so it costs nothing; it is still no part of a turn, and runs as a job.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction

from ctxengine.engine.capacity.profile import CapacityProfile, with_metadata
from ctxengine.ledger.models import Job
from ctxengine.providers.adapters.contract import ProviderError
from ctxengine.providers.adapters.registry import adapter_for
from ctxengine.service.clock import utc_now
from ctxengine.service.jobs.context import JobContext
from ctxengine.service.jobs.enqueue import enqueue
from ctxengine.service.probe.profiles import hold_profile, is_local, keep_profile, newest_row
from ctxengine.service.probe.run_probe import METADATA_TIMEOUT_S, described
from ctxengine.service.specs import Actor

KIND = "capacity.look"
CAUSE = "a turn has ended, and the provider was not asked about its model for a while"
EVERY_LOCAL = timedelta(minutes=15)
EVERY_HOSTED = timedelta(hours=6)
"""How long one look, whatever came of it, holds off the next of the same model."""


def look_when_idle(tenant_id: UUID, provider: str, model: str) -> Job | None:
    """Ask for a look at a model with a measured profile; None where one was asked for lately, or could tell nothing."""
    row = newest_row(tenant_id, provider, model)
    if row is None or not CapacityProfile.model_validate(row.profile).provenance.metadata_digest:
        return None
    every = EVERY_LOCAL if is_local(provider) else EVERY_HOSTED
    subject = f"{provider}/{model}"
    lately = Job.objects.filter(
        tenant_id=tenant_id, kind=KIND, subject=subject, created_at__gt=utc_now() - every
    )
    if lately.exists() or not _can_be_asked(provider):
        return None
    return enqueue(
        actor=Actor(tenant_id, "system"),
        kind=KIND,
        arguments={"provider": provider, "model": model},
        subject=subject,
        single_flight=f"look:{subject}"[:128],
        cause=CAUSE,
    )


def run(context: JobContext) -> dict[str, Any]:
    """Ask, and keep a revision where the answer is not the one that the profile was measured under.

    Raises:
        JobCancelled: somebody wanted its end.
        LeaseLost: another worker has the job.
        ProviderError: the provider did not answer.
    """
    provider, model = context.arguments["provider"], context.arguments["model"]
    listed = adapter_for(provider).models(timeout_s=METADATA_TIMEOUT_S)
    now = described(provider, model, listed)
    context.check()
    with transaction.atomic():
        hold_profile(context.job.tenant_id, provider, model)
        context.hold()
        row = newest_row(context.job.tenant_id, provider, model)
        changed = False
        if row is not None:
            known = CapacityProfile.model_validate(row.profile)
            seen = with_metadata(
                known,
                declared_window=now.declared_window,
                max_output=now.output_reserve,
                metadata_digest=now.provenance.metadata_digest,
                at=utc_now().isoformat(),
            )
            changed = seen != known
            if changed:
                keep_profile(tenant_id=context.job.tenant_id, profile=seen, job_id=context.job.id)
        result = {"listed": bool(now.provenance.metadata_digest), "changed": changed}
        context.conclude(result)
    return result


def _can_be_asked(provider: str) -> bool:
    try:
        adapter_for(provider)
    except ProviderError:
        return False
    return True
