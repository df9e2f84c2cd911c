"""Found tools among the definitions: a new epoch, counted as the cache break it is (design 7.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ctxengine.engine.errors import EngineError
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.plan.epochs import EpochReason
from ctxengine.engine.plan.plan import Plan
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import SessionRow
from ctxengine.service.rotate_epoch import turn_now
from ctxengine.service.rotation import rotation, same_request
from ctxengine.service.specs import Actor


def promote_found(
    *,
    actor: Actor,
    session: SessionRow,
    log: PostgresLog,
    plan: Plan,
    appended: Sequence[EventDraft],
) -> None:
    """Define what `find_tools` found in these events, where the policy asks for it; call it behind their append.

    Tools that do not fit stay listed and are called as before.
    """
    if plan.policy.promotion != "definitions":
        return
    found = {
        name
        for draft in appended
        if draft.type is EventType.TOOLS_FOUND
        for name in draft.payload["names"]
    }
    if not found:
        return
    wanted = same_request(plan)
    tools = [
        tool.model_copy(update={"deferred": False, "always_loaded": True})
        if tool.name in found
        else tool
        for tool in wanted.tools
    ]
    try:
        turned = rotation(
            session,
            plan,
            replace(wanted, tools=tools),
            (EpochReason.TOOL_PROMOTED,),
            note=f"{len(found)} found by the model",
        )
    except EngineError:
        return
    turn_now(
        actor=replace(actor, idempotency_key=""),
        session=session,
        log=log,
        turned=turned,
        expected=None,
    )
