"""`POST runs/{id}/tool-results`: append results with their trust (design 5, 7.15)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from ctxengine.engine.control.table import ControlTool
from ctxengine.engine.derive import Derivation
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.evidence.excerpt import WINDOWED_ENGINES
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.ports import OpenCall, SessionLog
from ctxengine.engine.trust.levels import Trust, may_claim
from ctxengine.engine.trust.model_view import model_view
from ctxengine.engine.working_state.outcomes import Outcome
from ctxengine.ledger.ahead import read_ahead
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import RunRow, SessionRow
from ctxengine.service.access import head_of_open, open_run_and_session
from ctxengine.service.child_run import child_answer
from ctxengine.service.clock import utc_now
from ctxengine.service.drafts import content_draft
from ctxengine.service.races import redo_once
from ctxengine.service.refusals import refusing
from ctxengine.service.specs import (
    Actor,
    Content,
    ResultsTaken,
    ServiceError,
    TakeToolResults,
    ToolResult,
)
from ctxengine.service.warm import asks_plan, plan_of_session
from ctxengine.service.wiring import counter_of, log_of
from ctxengine.service.working_state import StateWriter, asks_working_state, observed


def take_tool_results(*, actor: Actor, run_id: UUID, spec: TakeToolResults) -> ResultsTaken:
    """Append all results of one report, or none.

    Raises:
        ServiceError: `unknown_call` (422) for an id that waits for no result; `trust_above_ceiling` (422) when a result claims
            more than its pinned tool allows; `invalid_content` (422); `run_ended` (409).
    """
    run, session = open_run_and_session(actor, run_id)
    return redo_once(lambda: _take(actor, session, run, spec))


def _take(actor: Actor, session: SessionRow, run: RunRow, spec: TakeToolResults) -> ResultsTaken:
    log, now = log_of(session), utc_now()
    reads = [*log.asks_step(run.id), asks_plan(session)]
    if session.act_sequence:
        reads.append(asks_working_state(log))
    with refusing(), read_ahead(*reads):
        head = head_of_open(log, session, run)
        waiting = [call for call in log.open_calls() if call.run == str(run.id)]
        matched = match_calls(spec.results, waiting)
        plan = plan_of_session(session, log)
        derivation = Derivation(
            counter_of(session.provider, session.model),
            inline=plan.policy.inline,
            whole_lines=session.engine in WINDOWED_ENGINES,
        )
        names = {call: meant_by(log, plan, call) for _, call in matched}
        reported = [
            _reported(actor, run, plan, names[call], call, result) for result, call in matched
        ]
        drafts = [
            content_draft(
                log,
                type=EventType.TOOL_RESULT,
                format=told.content.format,
                raw=told.content.raw,
                trust=told.trust,
                sequence=EventSeq(head.sequence + 1 + place),
                derivation=derivation,
                run=str(run.id),
                source=told.source,
                payload=_payload(result),
                answers=call,
                is_error=told.is_error,
                owner=session.principal or told.owner,
            )
            for place, ((result, call), told) in enumerate(zip(matched, reported, strict=True))
        ]
        if head.act_sequence:
            drafts += _observed(log, session, run, matched, names, head.sequence + 1 + len(drafts))
        log.append(drafts, expected=head.sequence, at=now, key=actor.idempotency_key)
    answered = {call.wire_call_id for _, call in matched}
    left = [call.wire_call_id for call in waiting if call.wire_call_id not in answered]
    return ResultsTaken(next="tools" if left else "assemble", open_calls=left)


def _observed(
    log: PostgresLog,
    session: SessionRow,
    run: RunRow,
    matched: Sequence[tuple[ToolResult, OpenCall]],
    names: Mapping[OpenCall, str],
    sequence: int,
) -> list[EventDraft]:
    """What the runtime notes: tasks that named these calls, questions that were answered."""
    writer = StateWriter(log, session, str(run.id), any_act=True)
    outcomes = [
        Outcome(call.wire_call_id, names[call], failed=result.is_error) for result, call in matched
    ]
    return observed(writer, asked=(), outcomes=outcomes, sequence=sequence, any_act=True)


def match_calls(
    results: Sequence[ToolResult], waiting: Sequence[OpenCall]
) -> list[tuple[ToolResult, OpenCall]]:
    """Each result with the call it answers: by wire id, else by the provider's own id, oldest first.

    Raises:
        ServiceError: 422 `unknown_call`.
    """
    free = list(waiting)
    matched = []
    for result in results:
        named = model_view(result.call_id)
        call = next((c for c in free if c.wire_call_id == named), None) or next(
            (c for c in free if c.call_id == named), None
        )
        if call is None:
            known = ", ".join(c.wire_call_id for c in free) or "none"
            raise ServiceError(
                "unknown_call",
                422,
                f"No open call has the id {named!r}; open calls: {known}.",
                call_id=named,
            )
        free.remove(call)
        matched.append((result, call))
    return matched


def meant_by(log: SessionLog, plan: Plan, call: OpenCall) -> str:
    """The tool whose result a call waits for: behind `tool.call`, the deferred one."""
    name = plan.ledger_name(call.name)
    if name != ControlTool.TOOL_CALL:
        return name
    (response,) = log.events(after=EventSeq(call.sequence - 1), limit=1)
    meant: str = response.payload.get("unwrapped", {}).get(str(call.ordinal), name)
    return meant


class _Reported(NamedTuple):
    """A result as it will be kept."""

    content: Content
    trust: Trust
    source: str
    is_error: bool
    owner: str = ""
    """The principal whom a child run worked for."""


def _reported(
    actor: Actor, run: RunRow, plan: Plan, name: str, call: OpenCall, result: ToolResult
) -> _Reported:
    """What the runtime reports, or what a child run it names has answered."""
    if (result.content is None) == (result.child_run is None):
        raise ServiceError(
            "invalid_content",
            422,
            "A result has either content or a child run, not both, not neither.",
        )
    if result.child_run is not None:
        child = child_answer(actor, run, result.child_run)
        failed = child.failed or result.is_error
        return _Reported(Content(raw=child.text), child.trust, child.source, failed, child.owner)
    content = result.content or Content(raw="")
    return _Reported(content, _trust(plan, name, call, result), f"tool:{name}", result.is_error)


def _trust(plan: Plan, name: str, call: OpenCall, result: ToolResult) -> Trust:
    tool = plan.tool(name)
    ceiling = tool.result_trust if tool is not None else Trust.EXTERNAL_UNTRUSTED
    if result.trust is None:
        return Trust.EXTERNAL_UNTRUSTED
    if not may_claim(result.trust, ceiling):
        raise ServiceError(
            "trust_above_ceiling",
            422,
            f"The result of {call.wire_call_id} claims {result.trust.value}; its tool allows at most {ceiling.value}.",
            claimed=result.trust.value,
            ceiling=ceiling.value,
        )
    return result.trust


def _payload(result: ToolResult) -> dict[str, str]:
    payload: dict[str, str] = {}
    if result.retain:
        payload["retain"] = result.retain
    if result.operation_id:
        payload["operation_id"] = model_view(result.operation_id)
    return payload
