"""`POST sessions/{id}/epochs`: rebuild region A by hand, with a reason (frozen-prefix spec, Prefix epochs)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.db import transaction

from ctxengine.engine.ids import EventSeq
from ctxengine.engine.plan.epochs import EpochReason
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.plan.planner import PlanRequest
from ctxengine.engine.trust.model_view import model_view
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import SessionRow
from ctxengine.service.access import plan_row_of, session_of, still_open_session
from ctxengine.service.bound_reasoning import drop_reasoning, open_run
from ctxengine.service.clock import utc_now
from ctxengine.service.open_refusals import rotation_refusals_kept
from ctxengine.service.races import redo_once
from ctxengine.service.refusals import refusing
from ctxengine.service.rotation import Rotation, rotation, same_request, store_rotation
from ctxengine.service.snapshots import fence
from ctxengine.service.specs import Actor, PlanView, ServiceError
from ctxengine.service.wiring import log_of, plan_from

BY_HAND = frozenset({EpochReason.OPERATOR, EpochReason.TOOL_REMOVED_FOR_SECURITY})


def rotate_epoch(
    *,
    actor: Actor,
    session_id: UUID,
    reason: str,
    note: str,
    tools: Sequence[str] = (),
    expected_epoch: int | None = None,
) -> PlanView:
    """Start a new epoch now; the next step uses it.

    Args:
        tools: for `tool_removed_for_security`, the tools that leave the prompt.
        expected_epoch: the epoch that the caller has seen; without it the rotation follows whatever epoch stands now, and
            keeps what that one changed.

    Raises:
        ServiceError: 422 `unknown_reason` for a reason nobody gives by hand, `reason_required` without a note, `unknown_tool`,
            `plan_overflow`; 409 `session_ended`, `stale_epoch` naming the epoch that stands now.
    """
    known = {entry.value for entry in BY_HAND}
    if reason not in known:
        raise ServiceError(
            "unknown_reason",
            422,
            f"By hand an epoch rotates for: {', '.join(sorted(known))}. Other changes are made to the session and apply at the "
            "next run's start.",
        )
    if not note.strip():
        raise ServiceError("reason_required", 422, "Say in `note` why the prefix is re-cached.")
    if (EpochReason(reason) is EpochReason.TOOL_REMOVED_FOR_SECURITY) != bool(tools):
        raise ServiceError(
            "unknown_tool",
            422,
            "Name the tools to remove in `tools`, and only with the reason tool_removed_for_security.",
        )
    session = session_of(actor, session_id)
    named = tuple(sorted({model_view(name) for name in tools}))
    return redo_once(
        lambda: _rotate(actor, session, EpochReason(reason), note, named, expected_epoch)
    )


def _rotate(
    actor: Actor,
    session: SessionRow,
    reason: EpochReason,
    note: str,
    tools: tuple[str, ...],
    expected_epoch: int | None,
) -> PlanView:
    log = log_of(session)
    with rotation_refusals_kept(actor, session), refusing():
        head = log.head()
        still_open_session(session)
        if expected_epoch not in {None, session.epoch}:
            raise ServiceError(
                "stale_epoch",
                409,
                f"The session is at epoch {session.epoch}, not at {expected_epoch}; see what changed and rotate from there.",
                epoch=session.epoch,
            )
        old = plan_from(log, plan_row_of(session))
        wanted, facts = same_request(old), {}
        if tools:
            wanted, facts = _without(old, wanted, tools), {"removed_tool_names": list(tools)}
        turned = rotation(session, old, wanted, (reason,), note=note, **facts)
        turn_now(actor=actor, session=session, log=log, turned=turned, expected=head.sequence)
    return turned.view()


def _without(old: Plan, wanted: PlanRequest, names: tuple[str, ...]) -> PlanRequest:
    unknown = [name for name in names if (tool := old.tool(name)) is None or tool.control]
    if unknown:
        raise ServiceError(
            "unknown_tool", 422, f"The plan has no tool named {', '.join(unknown)} to remove."
        )
    tools = [
        tool.model_copy(update={"removed": True}) if tool.name in names else tool
        for tool in wanted.tools
    ]
    return replace(wanted, tools=tools)


def turn_now(
    *,
    actor: Actor,
    session: SessionRow,
    log: PostgresLog,
    turned: Rotation,
    expected: EventSeq | None,
) -> None:
    """Append and store a rotation that applies at the next step.

    Reasoning of an open run is bound to the bytes before it on some models. Where those bytes change it is dropped once, all of
    it, and the event says how much (design 7.12).
    """
    now = utc_now()
    run = open_run(session)
    with transaction.atomic():
        if turned.plan.snapshot:
            # Before the session's lock, as an erasure takes them.
            fence(session.tenant_id, session.principal)
        # The session's lock comes before the checkpoint's, as for every response that is taken.
        log.lock()
        dropped = drop_reasoning(run) if turned.recached_tokens else 0
        facts: dict[str, Any] = turned.facts | ({"opaque_dropped": dropped} if dropped else {})
        turned = replace(turned, facts=facts)
        batch = log.append(
            [turned.draft(session)], expected=expected, at=now, key=actor.idempotency_key
        )
        store_rotation(
            actor=actor,
            session=session,
            turned=turned,
            batch=batch,
            sequence=batch.head.sequence,
            at=now,
        )
