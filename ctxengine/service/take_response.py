"""`POST runs/{id}/responses`: what the model said, or how the provider refused (design 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, cast
from uuid import UUID

from django.db import transaction

from ctxengine.engine.content.decode import Stripped, strip_opaque
from ctxengine.engine.content.response import ResponseContent, from_response
from ctxengine.engine.derive import Derivation
from ctxengine.engine.events import RULE_OF_EVENT, EventDraft, EventType, ItemFacts
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import DecodedItem, ForeignPart, ItemKind
from ctxengine.engine.log.hydrate import decode_event
from ctxengine.engine.log.records import Head
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.ports import OpenCall
from ctxengine.engine.trust.levels import Trust
from ctxengine.engine.trust.model_view import model_view
from ctxengine.engine.wire.tool_search import found_names
from ctxengine.engine.working_state.outcomes import ASK_TOOL, Asked, Outcome
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import RequestRow, RunRow, SessionRow
from ctxengine.service.access import open_run_of, session_of, still_open
from ctxengine.service.bound_reasoning import counted
from ctxengine.service.cache_verdict import shortfall_draft
from ctxengine.service.calls import Authority, Verdict, authority_of, judge_call
from ctxengine.service.checkpoints import keep_opaque
from ctxengine.service.clock import utc_now
from ctxengine.service.control.answers import ControlAnswer, ControlCall
from ctxengine.service.control.registry import answer_control
from ctxengine.service.drafts import content_draft, platform_result
from ctxengine.service.end_run import before_turn_closes, close_turn, finish_run
from ctxengine.service.races import redo_once
from ctxengine.service.refusals import refusing
from ctxengine.service.report_error import take_error
from ctxengine.service.specs import (
    Actor,
    CallAction,
    ResponseTaken,
    ServiceError,
    TakeResponse,
)
from ctxengine.service.telemetry import Answered, answered_span
from ctxengine.service.usage import Receipt, keep_receipt, receipt_of
from ctxengine.service.warm import plan_of_session
from ctxengine.service.wiring import counter_of, log_of
from ctxengine.service.working_state import StateWriter, desk_of, observed

_UNFINISHED = frozenset({"pause_turn", "incomplete"})


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
        head = log.head()
        still_open(run)
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
        plan = plan_of_session(session, log)
        taken = _Taken(
            actor, session, run, log, plan, content, stripped, EventSeq(head.sequence + 1)
        )
        drafts, calls = taken.drafts(request, spec)
        # Input that came in meanwhile will stand before an answer that was thought without it.
        unbound = len(stripped.opaque) if interrupted and plan.fresh_rows == "appended" else 0
        drafts = counted(drafts, unbound)
        receipt = receipt_of(
            session, request, spec, content, reasoned=bool(stripped.opaque), at=now
        )
        short = shortfall_draft(request, receipt.verdict, str(run.id))
        drafts += [short] if short is not None else []
        following = _next(calls, content)
        if interrupted and following == "finish":
            following = "redo"
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
                finish_run(run=run, log=log, outcome="completed", at=now)
        if following == "finish":
            close_turn(session, run, log, at=now)
    answered_span(request, taken.told(receipt), now)
    return ResponseTaken(next=following, calls=calls)


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


class _Taken:
    """One response on its way into the log."""

    def __init__(
        self,
        actor: Actor,
        session: SessionRow,
        run: RunRow,
        log: PostgresLog,
        plan: Plan,
        content: ResponseContent,
        stripped: Stripped,
        sequence: EventSeq,
    ) -> None:
        self.actor = actor
        self.session = session
        self.run = run
        self.log = log
        self.plan = plan
        self.content = content
        self.stripped = stripped
        self.sequence = sequence
        self.derivation = Derivation(
            counter_of(session.provider, session.model),
            kept_aside=plan.aside_tokens,
        )
        self.items: tuple[DecodedItem, ...] = ()

    def drafts(
        self, request: RequestRow, spec: TakeResponse
    ) -> tuple[list[EventDraft], list[CallAction]]:
        """The response's event, then a platform result for each call that the runtime is not to execute."""
        body = decode_event(EventType.RESPONSE_COMPLETED, self.content.format, self.stripped.body)
        self.items = tuple(body)
        decoded = {item.ordinal: item for item in body if item.kind is ItemKind.TOOL_CALL}
        authority = authority_of(self.log, self.run) if decoded else Authority()
        verdicts = {
            ordinal: judge_call(
                self.plan, self.plan.ledger_name(item.name or ""), item.arguments or "", authority
            )
            for ordinal, item in decoded.items()
        }
        response = content_draft(
            self.log,
            type=EventType.RESPONSE_COMPLETED,
            format=self.content.format,
            raw=self.stripped.body,
            trust=Trust.MODEL,
            sequence=self.sequence,
            derivation=self.derivation,
            run=str(self.run.id),
            source="model",
            payload=self._payload(request, spec)
            | self._unwrapped(decoded, verdicts)
            | self._found(body),
            owner=self.session.principal,
            ledger_name=self.plan.ledger_name,
        )
        drafts = [response]
        calls = [
            self._act(facts, decoded[facts.ordinal], verdicts[facts.ordinal], drafts)
            for facts in response.items
            if facts.kind is ItemKind.TOOL_CALL
        ]
        drafts += self._observed(response.items, verdicts, calls, drafts)
        return drafts, calls

    def _observed(
        self,
        items: Sequence[ItemFacts],
        verdicts: Mapping[int, Verdict],
        calls: Sequence[CallAction],
        drafts: Sequence[EventDraft],
    ) -> list[EventDraft]:
        """What the runtime notes of these calls: what the user is asked, and tasks whose call was refused."""
        made = [facts for facts in items if facts.kind is ItemKind.TOOL_CALL]
        asked, refused = [], []
        for facts, call in zip(made, calls, strict=True):
            verdict = verdicts[facts.ordinal]
            if call.action == "execute" and verdict.name == ASK_TOOL:
                asked.append(Asked(facts.wire_call_id, verdict.arguments))
            elif call.action == "refused":
                refused.append(Outcome(facts.wire_call_id, verdict.name, failed=True))
        if not asked and not refused:
            return []
        any_act = self.log.head().act_sequence > 0
        writer = StateWriter(
            self.log,
            self.session,
            str(self.run.id),
            any_act=any_act,
            pending=drafts,
            first=self.sequence,
        )
        return observed(
            writer,
            asked=asked,
            outcomes=refused,
            sequence=self.sequence + len(drafts),
            any_act=any_act,
            repeated=desk_of(
                self.session,
                self.log,
                self.plan,
                run=str(self.run.id),
                below=self.sequence,
                now=utc_now(),
            ).repeated,
        )

    def _unwrapped(
        self, decoded: Mapping[int, DecodedItem], verdicts: Mapping[int, Verdict]
    ) -> dict[str, Any]:
        """The tools meant by calls of `tool.call`, by ordinal: their results are theirs."""
        meant = {
            str(ordinal): model_view(verdict.name)
            for ordinal, verdict in verdicts.items()
            if verdict.name != self.plan.ledger_name(decoded[ordinal].name or "")
        }
        return {"unwrapped": meant} if meant else {}

    def _found(self, body: Sequence[DecodedItem]) -> dict[str, Any]:
        """Deferred tools that the provider's own search found, by ledger name; what else it names counts for nothing."""
        named = {
            name
            for item in body
            for part in item.parts
            if isinstance(part, ForeignPart)
            for name in found_names(part.kind, part.raw)
        }
        found = sorted(tool.name for tool in self.plan.kept_aside if tool.wire_name in named)
        return {"found_tools": [model_view(name) for name in found]} if found else {}

    def _act(
        self, facts: ItemFacts, item: DecodedItem, verdict: Verdict, drafts: list[EventDraft]
    ) -> CallAction:
        """What becomes of one call; a refused or answered one adds its result to `drafts`."""
        tool = self.plan.tool(verdict.name)
        answer, action = None, "execute"
        if verdict.refused is not None:
            refused = verdict.refused
            answer = ControlAnswer(
                refused.text,
                trust=refused.trust,
                source=refused.source,
                is_error=True,
                drafts=[self._refusal(facts, refused.code)],
            )
            action = "refused"
        elif tool is not None and tool.control:
            answer, action = self._answer(verdict, drafts), "answered"
        if answer is not None:
            drafts.append(self._result(facts, answer, EventSeq(self.sequence + len(drafts))))
            drafts.extend(answer.drafts)
        return CallAction(
            id=item.call_id or facts.wire_call_id,
            name=verdict.name,
            action=cast(Literal["execute", "answered", "refused"], action),
            arguments_raw=verdict.arguments,
            result=answer.text if answer is not None else None,
        )

    def _refusal(self, facts: ItemFacts, code: str) -> EventDraft:
        return EventDraft(
            type=EventType.CALL_REFUSED,
            trust=Trust.PLATFORM,
            run=str(self.run.id),
            payload={"answers": f"{self.sequence}.{facts.ordinal}", "code": code},
        )

    def _answer(self, verdict: Verdict, drafts: Sequence[EventDraft]) -> ControlAnswer:
        call = ControlCall(
            session=self.session,
            run=self.run,
            log=self.log,
            plan=self.plan,
            arguments=verdict.arguments,
            response_sequence=self.sequence,
            now=utc_now(),
            pending=tuple(drafts),
        )
        return answer_control(verdict.name, call)

    def _result(self, facts: ItemFacts, answer: ControlAnswer, sequence: EventSeq) -> EventDraft:
        call = OpenCall(
            self.sequence,
            facts.ordinal,
            facts.name,
            facts.call_id,
            facts.wire_call_id,
            str(self.run.id),
        )
        return platform_result(
            self.log,
            call=call,
            text=answer.text,
            sequence=sequence,
            derivation=self.derivation,
            run=str(self.run.id),
            is_error=answer.is_error,
            trust=answer.trust,
            source=answer.source,
            owner=self.session.principal,
        )

    def told(self, receipt: Receipt) -> Answered:
        """What a span may tell of this response."""
        return Answered(
            response_id=model_view(self.content.response_id or ""),
            model=model_view(self.content.model or ""),
            stop_reason=self.content.stop_reason or "",
            usage=receipt.usage,
            items=self.items,
        )

    def _payload(self, request: RequestRow, spec: TakeResponse) -> dict[str, Any]:
        return {
            "request": str(request.id),
            "stop_reason": model_view(self.content.stop_reason or ""),
            "response_model": model_view(self.content.model or ""),
            "latency_ms": spec.latency_ms,
            "opaque": [
                {
                    "before": block.before,
                    "kind": block.kind,
                    "bytes": len(block.raw.encode("utf-8", "surrogatepass")),
                }
                for block in self.stripped.opaque
            ],
        }


def _count_opaque(run: RunRow, stripped: Stripped, session: SessionRow) -> None:
    """Reasoning that will be replayed inside the run costs tokens too; its size is kept, its text is not."""
    counter = counter_of(session.provider, session.model)
    tokens = sum(counter.text(block.raw) for block in stripped.opaque)
    run.settings["opaque_tokens"] = run.settings.get("opaque_tokens", 0) + tokens
    RunRow.objects.filter(tenant_id=run.tenant_id, id=run.id).update(settings=run.settings)


def _answered(session: SessionRow, request: RequestRow, receipt: Receipt, now: datetime) -> None:
    changes = keep_receipt(session, request, receipt)
    RequestRow.objects.filter(tenant_id=request.tenant_id, id=request.id).update(
        status="answered", answered_at=now, **changes
    )


def _next(calls: list[CallAction], content: ResponseContent) -> Any:
    if any(call.action == "execute" for call in calls):
        return "tools"
    if calls or content.stop_reason in _UNFINISHED:
        return "redo"
    return "finish"
