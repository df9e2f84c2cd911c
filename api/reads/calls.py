"""The calls of an answer, judged again from the ledger as they were when it arrived."""

from __future__ import annotations

from uuid import UUID

from api.reads.requests import plan_of_request
from ctxengine.engine.events import EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import ContentFormat, ItemKind
from ctxengine.engine.log.hydrate import decode_event
from ctxengine.ledger.models import Event, ItemRow
from ctxengine.service.access import run_of, session_of
from ctxengine.service.calls import judge_call
from ctxengine.service.specs import Actor, CallAction
from ctxengine.service.wiring import log_of


def newest_response(actor: Actor, run_id: UUID) -> int:
    """Sequence of the answer that was appended to a run last. Two queries."""
    run = run_of(actor, run_id)
    found = Event.objects.filter(
        tenant_id=actor.tenant_id,
        session_id=run.session_id,
        type=EventType.RESPONSE_COMPLETED,
        run_id=run.id,
    )
    return found.order_by("-sequence").values_list("sequence", flat=True)[0]


def calls_again(actor: Actor, run_id: str, sequence: int | None) -> list[CallAction]:
    """What was to be done with each call of the answer at that sequence; none where there is none.

    An answer that was erased has no calls to show any more.
    """
    if sequence is None:
        return []
    run = run_of(actor, UUID(run_id))
    session = session_of(actor, run.session_id)
    log = log_of(session)
    (event,) = log.events(after=EventSeq(sequence - 1), limit=1)
    body = log.body(event.body.id) if event.body is not None else None
    if body is None:
        return []
    plan = plan_of_request(session, event.payload.get("request"))
    wire_ids = _wire_ids(actor.tenant_id, session.id, sequence)
    actions = []
    for item in decode_event(event.type, ContentFormat(event.payload["format"]), body):
        if item.kind is not ItemKind.TOOL_CALL:
            continue
        name = plan.ledger_name(item.name or "")
        verdict = judge_call(plan, name, item.arguments or "")
        actions.append(
            CallAction(
                id=item.call_id or wire_ids.get(item.ordinal, ""),
                name=name,
                action="execute" if verdict.refusal is None else "refused",
                arguments_raw=verdict.arguments,
                result=verdict.refusal,
            )
        )
    return actions


def _wire_ids(tenant_id: UUID, session_id: UUID, sequence: int) -> dict[int, str]:
    rows = ItemRow.objects.filter(tenant_id=tenant_id, session_id=session_id, sequence=sequence)
    return dict(rows.values_list("ordinal", "wire_call_id"))
