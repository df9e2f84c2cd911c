"""`POST runs/{id}/responses`: what the model said, or how the provider refused (design 5)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from uuid import UUID

from django.db import transaction

from ctxengine.engine.content.decode import Stripped, strip_opaque
from ctxengine.engine.content.response import ResponseContent, from_response
from ctxengine.engine.events import RULE_OF_EVENT, EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.log.records import Head
from ctxengine.engine.wire.reasoning import handed_back
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import RequestRow, RunRow, SessionRow
from ctxengine.service.access import head_of_open, open_run_of, session_of
from ctxengine.service.bound_reasoning import counted
from ctxengine.service.boundary.inline import window_draft, without_windows
from ctxengine.service.cache_verdict import shortfall_draft
from ctxengine.service.checkpoints import keep_opaque
from ctxengine.service.clock import utc_now
from ctxengine.service.end_run import before_turn_closes, close_turn, finish_run
from ctxengine.service.legs.answered import answering_leg
from ctxengine.service.promote import promote_found
from ctxengine.service.races import redo_once
from ctxengine.service.refusals import refusing
from ctxengine.service.report_error import take_error
from ctxengine.service.response_events import Following, ResponseEvents
from ctxengine.service.specs import (
    Actor,
    CallAction,
    ResponseTaken,
    ServiceError,
    TakeResponse,
)
from ctxengine.service.telemetry import answered_span
from ctxengine.service.usage import Receipt, keep_receipt, receipt_of
from ctxengine.service.warm import plan_of_session
from ctxengine.service.wiring import counter_of, log_of

_UNFINISHED = frozenset({"pause_turn", "incomplete", "compaction"})


def take_response(*, actor: Actor, run_id: UUID, spec: TakeResponse) -> ResponseTaken:
    """Append a response and say what the runtime must do with each of its calls.

    Raises:
        ServiceError: `stale_request` (409) when the named request is no longer the run's latest or was answered already;
            `not_assembled` (409) when the run has no request yet; `calls_pending` (409);
            `invalid_content` (422); `run_ended` (409).
    """
    run = open_run_of(actor, run_id)
    session = session_of(actor, run.session_id)
    if (spec.response_raw is None) == (spec.error_status is None):
        raise ServiceError(
            "invalid_content",
            422,
            "Report either a response or an error, not both and not neither.",
        )
    if spec.error_status is not None:
        return take_error(
            actor=actor,
            session=session,
            run=run,
            current=lambda: current_request(run, spec.request_id),
            spec=spec,
        )
    return redo_once(lambda: _take(actor, session, run, spec))


def current_request(run: RunRow, named: UUID | None) -> RequestRow:
    """The request a response answers: the run's latest, which must not have been answered or superseded.

    Raises:
        ServiceError: 409 `stale_request`; 409 `not_assembled` where the run has no request yet.
    """
    latest = (
        RequestRow.objects.filter(tenant_id=run.tenant_id, run_id=run.id)
        .order_by("-number")
        .first()
    )
    if latest is None:
        if named is not None:
            raise ServiceError("stale_request", 409, f"Request {named} is not of this run.")
        raise ServiceError(
            "not_assembled",
            409,
            "This run has no request yet that could have been answered; assemble one first.",
        )
    if named is not None and named != latest.id:
        raise ServiceError(
            "stale_request",
            409,
            f"Request {named} was superseded by {latest.id}.",
            latest=str(latest.id),
        )
    if latest.status == "answered":
        raise ServiceError(
            "stale_request",
            409,
            f"Request {latest.id} was answered already; assemble the next one first.",
            latest=str(latest.id),
        )
    return latest


def _take(actor: Actor, session: SessionRow, run: RunRow, spec: TakeResponse) -> ResponseTaken:
    now, log = utc_now(), log_of(session)
    with refusing():
        head = head_of_open(log, session, run)
        request = current_request(run, spec.request_id)
        interrupted = _refuse_superseded(log, request, head)
        if any(call.run == str(run.id) for call in log.open_calls()):
            raise ServiceError(
                "calls_pending",
                409,
                "Calls of the response before are still open; report their results first.",
            )
        content = from_response(spec.response_raw or "")
        stripped = strip_opaque(content.format, content.body, role="assistant")
        stripped, windows = without_windows(
            session, content.format, stripped, interrupted=interrupted
        )
        leg = answering_leg(request, spec.leg)
        if leg is not None:
            stripped = replace(stripped, opaque=leg.thought(session, stripped.opaque))
        thought = bool(stripped.opaque)
        stripped = replace(stripped, opaque=tuple(filter(None, map(handed_back, stripped.opaque))))
        plan = plan_of_session(session, log)
        taken = ResponseEvents(
            actor,
            session,
            run,
            log,
            plan,
            content,
            stripped,
            EventSeq(head.sequence + 1),
            interrupted=interrupted,
        )
        drafts, calls = taken.drafts(request, spec)
        if windows:
            made = window_draft(session, run, log, windows, response=taken.sequence)
            drafts += [made] if made is not None else []
        # Input that came in meanwhile will stand before an answer that was thought without it.
        unbound = len(stripped.opaque) if interrupted and plan.fresh_rows == "appended" else 0
        drafts = counted(drafts, unbound)
        receipt = receipt_of(session, request, spec, content, reasoned=thought, at=now, leg=leg)
        short = shortfall_draft(request, receipt.verdict, str(run.id))
        drafts += [short] if short is not None else []
        concluded = taken.conclude(drafts, calls, _next(calls, content))
        following = concluded.next
        with transaction.atomic():
            if following == "finish":
                before_turn_closes(session)
            log.append(drafts, expected=head.sequence, at=now, key=actor.idempotency_key)
            if stripped.opaque and not unbound:
                keep_opaque(run, taken.sequence, stripped.opaque, at=now)
                _count_opaque(run, stripped, session)
            _answered(session, request, receipt, now)
            if following == "finish":
                run.refresh_from_db(fields=["state"])
                finish_run(run=run, log=log, outcome=concluded.outcome, at=now)
        if following != "finish":
            promote_found(actor=actor, session=session, log=log, plan=plan, appended=drafts)
        if following == "finish":
            close_turn(session, run, log, at=now)
    answered_span(request, taken.told(receipt), now)
    return ResponseTaken(
        next=following,
        calls=calls,
        nudge=concluded.nudge,
        statement=concluded.statement,
        quoted=list(concluded.quoted),
    )


def _refuse_superseded(log: PostgresLog, request: RequestRow, head: Head) -> bool:
    """Refuse an answer to a request that the log has left behind; user input alone does not supersede one.

    Returns:
        Whether input arrived while the model was answering: it is still unanswered then.
    """
    if request.content_sequence == head.content_sequence:
        return False
    since = log.events(after=EventSeq(request.content_sequence))
    content = {event.type for event in since if RULE_OF_EVENT[event.type].content}
    if content <= {EventType.INPUT_RECEIVED}:
        return True
    raise ServiceError(
        "stale_request",
        409,
        "Something was appended since this request was built; assemble again.",
        latest=str(request.id),
    )


def _count_opaque(run: RunRow, stripped: Stripped, session: SessionRow) -> None:
    """Reasoning that will be replayed inside the run costs tokens too; its size is kept, its text is not."""
    counter = counter_of(session.provider, session.model)
    # What a leg has thought goes to that leg alone.
    own = [block for block in stripped.opaque if not block.provider]
    tokens = sum(counter.text(block.raw) for block in own)
    run.settings["opaque_tokens"] = run.settings.get("opaque_tokens", 0) + tokens
    RunRow.objects.filter(tenant_id=run.tenant_id, id=run.id).update(settings=run.settings)


def _answered(session: SessionRow, request: RequestRow, receipt: Receipt, now: datetime) -> None:
    changes = keep_receipt(session, request, receipt)
    for name in ("provider", "model"):
        setattr(request, name, changes.get(name, getattr(request, name)))
    RequestRow.objects.filter(tenant_id=request.tenant_id, id=request.id).update(
        status="answered", answered_at=now, **changes
    )


def _next(calls: list[CallAction], content: ResponseContent) -> Following:
    if any(call.action == "execute" for call in calls):
        return "tools"
    if calls or content.stop_reason in _UNFINISHED:
        return "redo"
    return "finish"
