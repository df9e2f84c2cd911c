"""Probes as jobs: one at a time for each model, shown rung by rung, stepping aside for a real turn (capacity spec 1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Case, F, Value, When
from django.db.models.functions import Now

from ctxengine.engine.capacity.ladder import Sample, rungs
from ctxengine.engine.capacity.profile import CapacityProfile, Observation
from ctxengine.ledger.models import Job, JobState
from ctxengine.service.access import session_of
from ctxengine.service.audit import record_audit
from ctxengine.service.jobs.context import JobContext
from ctxengine.service.jobs.enqueue import enqueue
from ctxengine.service.jobs.lease import log_line, log_with
from ctxengine.service.jobs.stops import JobCancelled
from ctxengine.service.probe.profiles import hold_profile, keep_profile, profile_of
from ctxengine.service.probe.run_probe import ProbeWanted, check_allowed, measure, with_ratio
from ctxengine.service.specs import Actor

KIND = "capacity.probe"
STEPPED_ASIDE = "A turn wants the model."
"""What the log of a probe says that ended for a real turn."""


def start_probe(*, actor: Actor, wanted: ProbeWanted, cause: str = "", note: str = "") -> Job:
    """Ask for a probe; the unfinished one of the same model where there is one.

    Args:
        cause: the door it came through, for the job.
        note: why somebody wants it, for the audit log; the cause where nobody said.

    Raises:
        ServiceError: 409 `probe_not_allowed`; 404 where the session to probe behind is not there.
    """
    check_allowed(wanted)
    if wanted.session_id is not None:
        session_of(actor, wanted.session_id)
    with transaction.atomic():
        record_audit(
            actor=actor,
            action="probe.started",
            target=f"{wanted.provider}/{wanted.model}",
            reason=note or cause,
            before=_known(profile_of(actor.tenant_id, wanted.provider, wanted.model)),
            after={"largest": wanted.largest, "hosted": wanted.hosted, "exact": wanted.exact},
        )
        return _enqueued(actor, wanted, cause)


def _known(profile: CapacityProfile) -> dict[str, Any]:
    """What an audit entry says of a profile."""
    return {
        "horizon": profile.horizon.tokens,
        "confidence": profile.horizon.confidence,
        "samples": len(profile.provenance.observations),
    }


def _enqueued(actor: Actor, wanted: ProbeWanted, cause: str) -> Job:
    return enqueue(
        actor=actor,
        kind=KIND,
        arguments=probe_arguments(wanted),
        session_id=wanted.session_id,
        subject=f"{wanted.provider}/{wanted.model}",
        single_flight=flight_of(wanted.provider, wanted.model),
        cause=cause,
    )


def probe_arguments(wanted: ProbeWanted) -> dict[str, Any]:
    """A probe as its job keeps it."""
    return {
        "provider": wanted.provider,
        "model": wanted.model,
        "session": str(wanted.session_id) if wanted.session_id else None,
        "largest": wanted.largest,
        "time_box_s": wanted.time_box_s,
        "hosted": wanted.hosted,
        "exact": wanted.exact,
    }


def step_aside(tenant_id: UUID, provider: str, model: str) -> None:
    """End a background probe of a model that a real turn is about to use: it would compete for the same machine.

    One that waits ends at once, one that runs at its next look.
    """
    waits = When(state=JobState.QUEUED, then=Now())
    Job.objects.filter(
        tenant_id=tenant_id,
        single_flight=flight_of(provider, model),
        state__in=(JobState.QUEUED, JobState.RUNNING),
        cancel_asked=False,
    ).update(
        cancel_asked=True,
        state=Case(When(state=JobState.QUEUED, then=Value(JobState.CANCELLED)), default=F("state")),
        finished_at=Case(waits, default=F("finished_at")),
        log=log_with([log_line(STEPPED_ASIDE)]),
    )


def run(context: JobContext) -> dict[str, Any]:
    """Climb, and keep the profile together with the job's outcome. What a provider's failure means is the job's to judge.

    Raises:
        JobCancelled: somebody wanted its end; no profile is kept.
        LeaseLost: another worker has the job; no profile is kept.
        ProviderError: a sample could not be sent.
    """
    arguments = context.arguments
    wanted = ProbeWanted(
        provider=arguments["provider"],
        model=arguments["model"],
        session_id=UUID(arguments["session"]) if arguments["session"] else None,
        largest=arguments["largest"],
        time_box_s=arguments["time_box_s"],
        hosted=arguments["hosted"],
        exact=arguments.get("exact", False),
    )
    window = profile_of(context.job.tenant_id, wanted.provider, wanted.model).declared_window
    steps = max(1, len(rungs(window, largest=wanted.largest)) * 4)

    def seen(observations: Sequence[Observation], following: Sample | None) -> None:
        newest = observations[-1] if observations else None
        if newest is not None:
            context.note(
                f"{newest.tokens:,} tokens, sample graded {newest.grade.value}, {newest.latency_ms:,} ms"
            )
        phase = f"rung of {following.tokens:,} tokens" if following else "cache"
        context.progress(phase, min(95, 100 * len(observations) // steps))

    profile = measure(
        actor=context.actor,
        wanted=wanted,
        job_id=context.job.id,
        cancelled=context.cancelled,
        seen=seen,
    )
    context.check()
    if profile.provenance.stopped == "cancelled":
        raise JobCancelled
    result = {
        "horizon": profile.horizon.tokens,
        "confidence": profile.horizon.confidence,
        "samples": len(profile.provenance.observations),
        "stopped": profile.provenance.stopped,
    }
    with transaction.atomic():
        hold_profile(context.job.tenant_id, wanted.provider, wanted.model)
        context.hold()
        profile = with_ratio(profile, context.job.tenant_id)
        record_audit(
            actor=context.actor,
            action="probe.finished",
            target=f"{wanted.provider}/{wanted.model}",
            reason=f"job {context.job.id}",
            before=_known(profile_of(context.job.tenant_id, wanted.provider, wanted.model)),
            after=_known(profile),
        )
        keep_profile(
            tenant_id=context.job.tenant_id,
            profile=profile,
            job_id=context.job.id,
            session_id=wanted.session_id,
        )
        context.conclude(result)
    return result


def flight_of(provider: str, model: str) -> str:
    """The key under which one probe of a model is under way at a time."""
    return f"probe:{provider}/{model}"[:128]
