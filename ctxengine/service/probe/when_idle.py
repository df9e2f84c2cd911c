"""A probe in the background, once a turn has ended and its model is idle (capacity spec 1, Bind-time read)."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db.models import Q

from ctxengine.engine.capacity.profile import CapacityProfile, why_stale
from ctxengine.ledger.models import Job, JobState, RunRow, SessionRow
from ctxengine.providers.adapters.registry import listed_address
from ctxengine.service.clock import utc_now
from ctxengine.service.jobs.enqueue import enqueue
from ctxengine.service.probe.feedback import ENGINES_WITH_PROFILES
from ctxengine.service.probe.job import KIND, STEPPED_ASIDE, flight_of, probe_arguments
from ctxengine.service.probe.look import look_when_idle
from ctxengine.service.probe.profiles import is_local, newest_row
from ctxengine.service.probe.run_probe import ProbeWanted
from ctxengine.service.specs import Actor

CAUSE = "a turn has ended, and the model's profile is missing or stale"
REST_AFTER_FAILURE = timedelta(hours=1)
"""So long a model is left alone after a probe of it failed or was called off by a person."""
BUSY_FOR = timedelta(minutes=2)
"""A session with an open run counts as using its model for so long after its newest event."""


def probe_when_idle(session: SessionRow) -> Job | None:
    """Ask for a probe of a session's model where one is due; None where it is not, or where none may be made.

    One at a time for each model; a real turn that wants the model ends it (`step_aside`). While the profile is fresh, the
    provider is asked now and then whether the model is still the same (`look`).
    """
    if session.engine not in ENGINES_WITH_PROFILES or session.import_sha256:
        return None
    tenant, provider, model = session.tenant_id, session.provider, session.model
    if not _due(tenant, provider, model):
        look_when_idle(tenant, provider, model)
        return None
    if not _eligible(provider) or _in_use(session):
        return None
    if _rests(tenant, provider, model):
        return None
    wanted = ProbeWanted(provider=provider, model=model)
    return enqueue(
        actor=Actor(tenant, "system"),
        kind=KIND,
        arguments=probe_arguments(wanted),
        subject=f"{provider}/{model}",
        single_flight=flight_of(provider, model),
        cause=CAUSE,
    )


def _eligible(provider: str) -> bool:
    """Whether a probe costs time alone, or the operator has agreed to what it costs; and whether it could be sent at all."""
    if settings.CTX_PROBE_HOSTED == "full":
        return True
    return listed_address(provider) is not None and is_local(provider)


def _due(tenant: UUID, provider: str, model: str) -> bool:
    row = newest_row(tenant, provider, model)
    if row is None:
        return True
    profile = CapacityProfile.model_validate(row.profile)
    return why_stale(profile, now=utc_now(), local=is_local(provider)) is not None


def _in_use(session: SessionRow) -> bool:
    """Whether another run is at work with the model."""
    same = SessionRow.objects.filter(
        tenant_id=session.tenant_id,
        provider=session.provider,
        model=session.model,
        active_at__gt=utc_now() - BUSY_FOR,
    )
    runs = RunRow.objects.filter(tenant_id=session.tenant_id, session_id__in=same.values("id"))
    return runs.filter(~Q(state="ended")).exists()


def _rests(tenant: UUID, provider: str, model: str) -> bool:
    job = (
        Job.objects.filter(tenant_id=tenant, kind=KIND, subject=f"{provider}/{model}")
        .order_by("-created_at")
        .first()
    )
    if job is None or job.finished_at is None:
        return False
    called_off = job.state == JobState.CANCELLED and not any(
        line["text"] == STEPPED_ASIDE for line in job.log
    )
    if job.state != JobState.FAILED and not called_off:
        return False
    return job.finished_at > utc_now() - REST_AFTER_FAILURE
