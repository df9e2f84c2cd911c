"""A provider's refusal reported by the runtime: what to do next, and what it teaches (design 5, 7.10)."""

from __future__ import annotations

import math
from collections.abc import Callable

from django.db import transaction

from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.tokens.factors import CalibrationFactor
from ctxengine.engine.trust.levels import Trust
from ctxengine.ledger.models import RequestRow, RunRow, SessionRow
from ctxengine.providers.failures import Failure, read_failure, refuses_reasoning
from ctxengine.service.access import still_open
from ctxengine.service.bound_reasoning import drop_reasoning
from ctxengine.service.boundary.reported import as_boundary_says
from ctxengine.service.calibration import ModelKey, learn_refusal
from ctxengine.service.clock import utc_now
from ctxengine.service.factor import factor_in_force
from ctxengine.service.learnt_window import next_total
from ctxengine.service.legs.answered import Answering, answering_leg
from ctxengine.service.specs import Actor, ResponseTaken, TakeResponse
from ctxengine.service.telemetry import refused_span
from ctxengine.service.wiring import log_of

MOST_APART = 2
"""A refusal whose size and our count, factor applied, differ by more than this many times is believed for its run alone."""
_SLACK = 1.1
"""Our own count may be so many times too low."""
SMALLEST_WINDOW = 1_024
"""Tokens. No model takes less; a smaller stated maximum is no window."""


def take_error(
    *,
    actor: Actor,
    session: SessionRow,
    run: RunRow,
    current: Callable[[], RequestRow],
    spec: TakeResponse,
) -> ResponseTaken:
    """Record the failure and answer `reassemble` or `fail`.

    An over-length refusal raises the run's factor to what was learnt and allows one reassembly; the second one fails. A request
    that was refused for its reasoning goes out again without it.

    Args:
        current: gives the request that the error is about, or refuses. It is asked under the session's lock, since an answer
            that came in before the error stands.
    """
    failure = read_failure(spec.error_status or 0, spec.error_body_raw or "")
    with transaction.atomic():
        log_of(session).lock()
        still_open(run)
        request = current()
        taken = _take(actor, session, run, request, spec, failure)
    refused_span(request, failure.code, utc_now())
    return taken


def _take(
    actor: Actor,
    session: SessionRow,
    run: RunRow,
    request: RequestRow,
    spec: TakeResponse,
    failure: Failure,
) -> ResponseTaken:
    """Write it down; the session's lock is held, so that nothing the run is told meanwhile is lost."""
    now = utc_now()
    if session.engine == "boundary":
        failure = as_boundary_says(failure, spec.error_body_raw or "")
    leg = answering_leg(request, spec.leg)
    if leg is not None:
        return _leg_failed(actor, session, run, request, spec, failure, leg)
    repeated = failure.code == "over_length" and run.settings.get("over_length", 0) >= 1
    following = "fail" if repeated else failure.next
    dropped = 0
    if failure.code == "invalid_request" and refuses_reasoning(spec.error_body_raw or ""):
        # All of it and once (design 7.12): a second such refusal finds none to let go of.
        dropped = drop_reasoning(run)
        following = "reassemble" if dropped else following
    drafts = [
        EventDraft(
            type=EventType.RESPONSE_FAILED,
            trust=Trust.PLATFORM,
            run=str(run.id),
            payload={
                "request": str(request.id),
                "status": spec.error_status,
                "code": failure.code,
                "next": following,
                **({"reasoning_dropped": dropped} if dropped else {}),
            },
        )
    ]
    if failure.code == "over_length" and not repeated:
        drafts.append(_learnt(session, run, request, failure))
    log_of(session).append(drafts, expected=None, at=now, key=actor.idempotency_key)
    RequestRow.objects.filter(tenant_id=request.tenant_id, id=request.id).update(
        status="failed", error={"status": spec.error_status, "code": failure.code}
    )
    return ResponseTaken(next=following, code=failure.code)


def _leg_failed(
    actor: Actor,
    session: SessionRow,
    run: RunRow,
    request: RequestRow,
    spec: TakeResponse,
    failure: Failure,
    leg: Answering,
) -> ResponseTaken:
    """A leg's failure is its own: it teaches that leg's model alone, and the run goes on as it was."""
    told = {
        "request": str(request.id),
        "status": spec.error_status,
        "code": failure.code,
        "next": "fail",
        "leg": leg.place,
    }
    draft = EventDraft(
        type=EventType.RESPONSE_FAILED, trust=Trust.PLATFORM, run=str(run.id), payload=told
    )
    log_of(session).append([draft], expected=None, at=utc_now(), key=actor.idempotency_key)
    if failure.code == "over_length":
        factor = factor_in_force(session.tenant_id, leg.provider, leg.model)
        expected = math.ceil(leg.tokens * factor / 1_000_000)
        rejected = failure.actual or expected
        if _believable(failure, rejected, expected):
            learn_refusal(
                ModelKey(session.tenant_id, leg.provider, leg.model),
                rejected=rejected,
                maximum=failure.maximum,
                factor=factor,
            )
    RequestRow.objects.filter(tenant_id=request.tenant_id, id=request.id).update(
        status="failed", error={"status": spec.error_status, "code": failure.code}
    )
    return ResponseTaken(next="fail", code=failure.code)


def _learnt(session: SessionRow, run: RunRow, request: RequestRow, failure: Failure) -> EventDraft:
    """Keep what the refusal says and make the next build of this run smaller."""
    factor = run.settings.get("factor_millionths", 1_000_000)
    expected = math.ceil(request.total_tokens * factor / 1_000_000)
    rejected = failure.actual or expected
    accepted = failure.maximum or next_total(rejected)
    if accepted >= rejected:
        # The answer was counted in: what was refused is no size to try again.
        accepted = next_total(rejected)
    known = CalibrationFactor(model=session.model, millionths=factor)
    # What was sent as `expected` was too long: the same raw count must come out below what is accepted.
    actual = max(rejected, math.ceil(expected * rejected / max(1, accepted)))
    learnt = known.raised_to(request.total_tokens, actual)
    run.settings |= {
        "factor_millionths": learnt.millionths,
        "over_length": run.settings.get("over_length", 0) + 1,
    }
    RunRow.objects.filter(tenant_id=run.tenant_id, id=run.id).update(settings=run.settings)
    taught = _believable(failure, rejected, expected)
    if taught:
        learn_refusal(
            ModelKey(session.tenant_id, session.provider, session.model),
            rejected=rejected,
            maximum=failure.maximum,
            factor=learnt.millionths,
        )
    return EventDraft(
        type=EventType.WINDOW_LEARNED,
        trust=Trust.PLATFORM,
        run=str(run.id),
        payload={
            "request": str(request.id),
            "rejected": rejected,
            "maximum": failure.maximum,
            "factor_millionths": learnt.millionths,
            "taught": taught,
        },
    )


def _believable(failure: Failure, rejected: int, expected: int) -> bool:
    """Whether a refusal may teach other runs of the tenant: one odd report would make the model small for all of them."""
    maximum = failure.maximum
    if failure.actual is None:
        # Words alone may be about something else than the prompt, and our own count would then be what they teach. A maximum
        # alone may be the prompt's own words: what we sent must have been longer than it, and not by far.
        return maximum is not None and (
            SMALLEST_WINDOW <= maximum <= expected * _SLACK and expected <= maximum * MOST_APART
        )
    near = expected <= rejected * MOST_APART and rejected <= expected * MOST_APART
    return near and (maximum is None or maximum >= SMALLEST_WINDOW)
