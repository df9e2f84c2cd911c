"""Revoking a tool: it stays advertised, and its calls are refused where they are made (spec, Authorization changes)."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from ctxengine.engine.control.unwrap import ledger_name
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.trust.levels import Trust
from ctxengine.engine.trust.model_view import model_view
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import SessionRow
from ctxengine.service.access import plan_row_of, session_of, still_open_session
from ctxengine.service.audit import record_audit
from ctxengine.service.calls import revoked_tools
from ctxengine.service.clock import utc_now
from ctxengine.service.plan_specs import ToolAct
from ctxengine.service.races import redo_once
from ctxengine.service.refusals import refusing
from ctxengine.service.specs import Actor, ServiceError
from ctxengine.service.wiring import log_of, plan_from


def revoke_tool(*, actor: Actor, session_id: UUID, name: str, note: str) -> ToolAct:
    """Refuse the tool's calls from now on. The prefix keeps its bytes.

    Raises:
        ServiceError: `session_ended` (409); `unknown_tool` (422) for a tool that the plan does not hold; `reason_required`
        (422).
    """
    return _act(actor, session_id, name, note, revoked=True)


def restore_tool(*, actor: Actor, session_id: UUID, name: str, note: str) -> ToolAct:
    """Allow the tool's calls again; raises as `revoke_tool` does."""
    return _act(actor, session_id, name, note, revoked=False)


def _act(actor: Actor, session_id: UUID, name: str, note: str, *, revoked: bool) -> ToolAct:
    if not note.strip():
        raise ServiceError("reason_required", 422, "Say in `note` why.")
    session = session_of(actor, session_id)
    return redo_once(lambda: _change(actor, session, name, model_view(note), revoked=revoked))


def _change(actor: Actor, session: SessionRow, name: str, note: str, *, revoked: bool) -> ToolAct:
    type = EventType.TOOL_REVOKED if revoked else EventType.TOOL_RESTORED
    log = log_of(session)
    with refusing():
        head = log.head()
        still_open_session(session)
        meant = _meant(session, log, name)
        if (meant in revoked_tools(log)) is revoked:
            known = log.newest(type)
            return ToolAct(meant, revoked, known.sequence if known else 0)
        draft = EventDraft(type=type, trust=Trust.PLATFORM, payload={"name": meant, "note": note})
        with transaction.atomic():
            batch = log.append(
                [draft], expected=head.sequence, at=utc_now(), key=actor.idempotency_key
            )
            record_audit(
                actor=actor,
                action="tool.revoked" if revoked else "tool.restored",
                target=f"{session.id}/{meant}",
                reason=note,
                before={"revoked": not revoked},
                after={"revoked": revoked},
            )
    return ToolAct(meant, revoked, batch.head.sequence)


def _meant(session: SessionRow, log: PostgresLog, name: str) -> str:
    plan = plan_from(log, plan_row_of(session))
    meant = ledger_name(plan, name)
    tool = plan.tool(meant)
    if tool is None or tool.control:
        raise ServiceError(
            "unknown_tool", 422, f"The plan has no tool named {model_view(name)!r} to revoke."
        )
    return meant
