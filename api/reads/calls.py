"""The calls of an answer, made again from the ledger as they were when it arrived."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from api.reads.requests import plan_of_request
from ctxengine.engine.control.unwrap import unwrap
from ctxengine.engine.events import EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import ContentFormat, DecodedItem, ItemKind
from ctxengine.engine.log.hydrate import decode_event
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import Event, ItemRow, SessionRow
from ctxengine.service.access import run_of, session_of
from ctxengine.service.calls import told_id
from ctxengine.service.specs import Actor, CallAction
from ctxengine.service.wiring import log_of

Action = Literal["execute", "answered", "refused"]


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


def calls_again(
    actor: Actor, run_id: str, sequence: int, actions: list[Action]
) -> list[CallAction]:
    """What was to be done with each call of the answer at that sequence, in call order.

    Names and arguments are read from the answer, results that stood in for an execution from the
    ledger. An answer that was erased has no calls to show any more.
    """
    session = session_of(actor, run_of(actor, UUID(run_id)).session_id)
    log = log_of(session)
    (event,) = log.events(after=EventSeq(sequence - 1), limit=1)
    body = log.body(event.body.id) if event.body is not None else None
    if body is None:
        return []
    plan = plan_of_request(session, event.payload.get("request"))
    meant = event.payload.get("unwrapped", {})
    wire_ids = _wire_ids(session, sequence)
    items = decode_event(event.type, ContentFormat(event.payload["format"]), body)
    calls = [item for item in items if item.kind is ItemKind.TOOL_CALL]
    return [
        CallAction(
            id=told_id(call.call_id, wire_ids[call.ordinal]),
            name=meant.get(str(call.ordinal)) or plan.ledger_name(call.name or ""),
            action=action,
            arguments_raw=_arguments(call, wrapped=str(call.ordinal) in meant),
            result=None if action == "execute" else _result(session, log, wire_ids[call.ordinal]),
        )
        for call, action in zip(calls, actions, strict=True)
    ]


def _arguments(call: DecodedItem, *, wrapped: bool) -> str:
    written = call.arguments or ""
    if wrapped:
        return unwrap(written).arguments
    # A call without arguments is executed with none.
    return written if written.strip() else "{}"


def _wire_ids(session: SessionRow, sequence: int) -> dict[int, str]:
    rows = ItemRow.objects.filter(
        tenant_id=session.tenant_id, session_id=session.id, sequence=sequence
    )
    return dict(rows.values_list("ordinal", "wire_call_id"))


def _result(session: SessionRow, log: PostgresLog, wire_call_id: str) -> str:
    """The text that the platform put in the place of a call's result."""
    sequence = ItemRow.objects.values_list("sequence", flat=True).get(
        tenant_id=session.tenant_id,
        session_id=session.id,
        wire_call_id=wire_call_id,
        kind=ItemKind.TOOL_RESULT,
    )
    (event,) = log.events(after=EventSeq(sequence - 1), limit=1)
    return (log.body(event.body.id) if event.body is not None else None) or ""
