"""Asking for a model's summary when a cut needs one: the job that makes it, or why none will (design 5 and 7.9)."""

from __future__ import annotations

from typing import Any, NamedTuple
from uuid import UUID

from ctxengine.engine.budget.yields import Floors
from ctxengine.engine.compaction.compactor import Wanted
from ctxengine.engine.compaction.soundness import Refusal
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.inputs import Prepared
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.ports import SessionLog
from ctxengine.ledger.models import Job, JobState
from ctxengine.providers.adapters.contract import ProviderError
from ctxengine.providers.adapters.registry import adapter_for
from ctxengine.service.jobs.enqueue import enqueue, unfinished
from ctxengine.service.specs import Actor, ServiceError
from ctxengine.service.summaries.install import refusal_of_job
from ctxengine.service.summaries.model_choice import may_write, writer_of
from ctxengine.service.summaries.wanted import (
    KIND,
    WantedSummary,
    flight_key,
    wanted_raises,
)

RETRY_AFTER_S = 1
"""Seconds after which asking again is worth it."""

_LATEST = 20


class AnswerLater(ServiceError):
    """The answer waits for a job; doors say 202 and name it. Nothing was refused, and nothing is remembered under a key."""

    def __init__(self, job: Job) -> None:
        super().__init__(
            "answer_later", 202, "A summary is made first; ask again when its job has ended."
        )
        self.job = job
        self.retry_after_s = RETRY_AFTER_S


class _Declined(NamedTuple):
    """Why no model will write a summary that a pass wants."""

    refusal: Refusal
    asked: dict[str, Any]


def wanted_by_pressure(
    prepared: Prepared, wanted: Wanted, floors: Floors, *, run: str
) -> WantedSummary:
    """The summary that a step's cut needs, under the floors before it."""
    return WantedSummary(
        cause="budget",
        first=wanted.range.first,
        below=wanted.range.below,
        tokens=wanted.range.tokens,
        body_tokens=wanted.body_tokens,
        cut=floors.cut,
        pointer=floors.pointer,
        epoch=prepared.inputs.epoch,
        factor_millionths=prepared.inputs.factor_millionths,
        raises=wanted_raises(prepared.allocation.raises),
        run=run,
        reason="budget",
    )


def ask_under_pressure(
    actor: Actor, log: SessionLog, plan: Plan, wanted: WantedSummary, *, content_head: int
) -> EventDraft | None:
    """Have the summary made first. Where no model will make it, the event that says so, for the cut that is made without.

    None where the job that failed has said so itself.

    Raises:
        AnswerLater: a job makes it, this one's or one that is at it already.
    """
    session_id = UUID(log.session)
    key = flight_key(session_id, wanted.first)
    standing = unfinished(actor.tenant_id, key)
    if standing is not None:
        raise AnswerLater(standing)
    declined = _failed_before(actor, key) or unreachable(plan, wanted.tokens)
    if declined is None:
        raise AnswerLater(enqueue_summary(actor, session_id, wanted))
    if _is_told(log, declined):
        return None
    return refusal_of_job(
        wanted,
        declined.refusal,
        declined.asked,
        forced_by="budget",
        content_head=content_head,
    )


def _is_told(log: SessionLog, declined: _Declined) -> bool:
    job = declined.asked["job"]
    told = log.latest({EventType.COMPACTION_REFUSED}, limit=_LATEST)
    return bool(job) and any((e.payload.get("asked") or {}).get("job") == job for e in told)


def ask_by_hand(actor: Actor, session_id: UUID, plan: Plan, wanted: WantedSummary) -> Job:
    """The job that makes a summary somebody asked for.

    Raises:
        ServiceError: 409 `no_summariser`, with the provider's code.
    """
    require_reachable(plan, wanted.tokens)
    return enqueue_summary(actor, session_id, wanted)


def require_reachable(plan: Plan, input_tokens: int) -> None:
    """Refuse where the model that would write a summary of so much cannot be called.

    Raises:
        ServiceError: 409 `no_summariser`, with the provider's code.
    """
    declined = unreachable(plan, input_tokens)
    if declined is not None:
        raise ServiceError(
            declined.refusal.value,
            409,
            f"No model can be called to write the summary: {declined.asked['model']} "
            f"({declined.asked['code']}). Set its key, or name another model.",
            model=declined.asked["model"],
            provider_code=declined.asked["code"],
        )


def enqueue_summary(actor: Actor, session_id: UUID, wanted: WantedSummary) -> Job:
    """The job that makes it; one that is at this range already is that job."""
    by_hand = wanted.cause == "hand"
    return enqueue(
        actor=actor,
        kind=KIND,
        arguments=wanted.as_arguments(),
        session_id=session_id,
        subject=f"events {wanted.first} to {wanted.below - 1}",
        single_flight=flight_key(session_id, wanted.first),
        cause=f"asked for by {actor.label}" if by_hand else "history no longer fits its budget",
    )


def unreachable(plan: Plan, input_tokens: int) -> _Declined | None:
    """Why the model that would write a summary of so much cannot be called; None where it can."""
    writer = writer_of(plan, input_tokens=input_tokens, output_tokens=plan.policy.summary_tokens)
    try:
        if not may_write(writer.provider, session_provider=plan.provider):
            raise ProviderError("not_allowed", "The operator does not list this provider.")
        adapter_for(writer.provider)
    except ProviderError as error:
        asked = {"job": "", "model": writer.label, "code": error.code}
        return _Declined(Refusal.NO_SUMMARISER, asked)
    return None


def _failed_before(actor: Actor, key: str) -> _Declined | None:
    """The job for this range that ended without a summary, unless what it read has changed since."""
    rows = Job.objects.filter(tenant_id=actor.tenant_id, kind=KIND, single_flight=key)
    last = rows.order_by("-created_at").first()
    if last is None or last.state not in {JobState.FAILED, JobState.CANCELLED}:
        return None
    if last.arguments.get("cause") != "budget":
        return None
    code = "cancelled" if last.state == JobState.CANCELLED else str(last.error.get("code", ""))
    if code == Refusal.SOURCE_CHANGED.value:
        return None
    known = {refusal.value for refusal in Refusal}
    refusal = Refusal(code) if code in known else Refusal.SUMMARISER_FAILED
    return _Declined(refusal, {"job": str(last.id), "model": "", "code": code})
