"""`POST sessions/{id}/epochs`: rebuild region A, with a reason (frozen-prefix spec, Prefix epochs)."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from django.db import transaction

from ctxengine.engine.budget.policy import DEFAULT_POLICY
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.plan.epochs import RULE_OF_REASON, EpochReason
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.plan.planner import PlanRequest, resolve_plan
from ctxengine.engine.trust.model_view import model_view
from ctxengine.ledger.models import SessionRow
from ctxengine.service.access import plan_row_of, session_of
from ctxengine.service.audit import record_audit
from ctxengine.service.clock import utc_now
from ctxengine.service.plans import plan_draft, plan_row, plan_view
from ctxengine.service.refusals import refusing
from ctxengine.service.specs import Actor, PlanView, ServiceError
from ctxengine.service.wiring import counter_of, log_of, plan_from, renderer_of, session_facts

BY_HAND = frozenset({EpochReason.OPERATOR})


def rotate_epoch(*, actor: Actor, session_id: UUID, reason: str, note: str) -> PlanView:
    """Start a new epoch now; the next step uses it.

    Raises:
        ServiceError: 422 `unknown_reason` for a reason nobody gives by hand, `reason_required` without a note, `plan_overflow`;
            409 `session_ended`.
    """
    known = {entry.value for entry in BY_HAND}
    if reason not in known:
        raise ServiceError(
            "unknown_reason", 422, f"By hand an epoch rotates for: {', '.join(sorted(known))}."
        )
    if not note.strip():
        raise ServiceError("reason_required", 422, "Say in `note` why the prefix is re-cached.")
    session = session_of(actor, session_id)
    if session.state != "open":
        raise ServiceError("session_ended", 409, "The session has ended.")
    with refusing(), transaction.atomic():
        log = log_of(session)
        log.lock()
        session.refresh_from_db(fields=["epoch"])
        old = plan_from(log, plan_row_of(session))
        plan = _pin(actor, session, old, next_request(old), EpochReason(reason), note)
    return plan_view(plan, (reason,))


def continue_import(*, actor: Actor, session: SessionRow) -> None:
    """Give an imported session a normal epoch under the default policy before it goes on live (design 7.17).

    Raises:
        ServiceError: 422 `plan_overflow` when the file's prefix does not fit the default caps.
    """
    if not session.import_sha256:
        return
    with refusing(), transaction.atomic():
        log = log_of(session)
        log.lock()
        session.refresh_from_db(fields=["epoch"])
        old = plan_from(log, plan_row_of(session))
        if old.policy.enforce_caps:
            return
        wanted = replace(next_request(old), policy=DEFAULT_POLICY)
        _pin(actor, session, old, wanted, EpochReason.IMPORT_CONTINUED, "continued live")


def _pin(
    actor: Actor,
    session: SessionRow,
    old: Plan,
    wanted: PlanRequest,
    reason: EpochReason,
    note: str,
) -> Plan:
    """Resolve, append, store and audit one rotation; the caller holds the session's lock."""
    now, log = utc_now(), log_of(session)
    plan = resolve_plan(
        wanted,
        counter=counter_of(wanted.provider, wanted.model),
        renderer=renderer_of(wanted.provider),
        nonce_key=session_facts(session, old).nonce_key,
    )
    draft = plan_draft(
        plan, reasons=(reason.value,), note=model_view(note), owner=session.principal
    )
    head = log.head()
    batch = log.append([draft], expected=head.sequence, at=now, key=actor.idempotency_key)
    plan_row(
        plan,
        tenant_id=actor.tenant_id,
        session_id=session.id,
        sequence=EventSeq(head.sequence + 1),
        batch=batch,
        reasons=(reason.value,),
        at=now,
    ).save(force_insert=True)
    SessionRow.objects.filter(tenant_id=session.tenant_id, id=session.id).update(epoch=plan.epoch)
    session.epoch = plan.epoch
    record_audit(
        actor=actor,
        action="epoch.rotated",
        target=str(session.id),
        reason=note,
        before={"epoch": old.epoch, "prefix": old.prefix_sha256},
        after={
            "epoch": plan.epoch,
            "prefix": plan.prefix_sha256,
            "recached_tokens": plan.prefix_tokens if RULE_OF_REASON[reason].recaches else 0,
        },
    )
    return plan


def next_request(old: Plan) -> PlanRequest:
    """What the next epoch is resolved from when only the epoch changes."""
    return PlanRequest(
        engine=old.engine,
        provider=old.provider,
        model=old.model,
        window=old.window,
        max_output=old.max_output,
        instructions=old.instructions,
        tools=[
            tool.model_copy(update={"group": "defined"}) if tool.group == "skipped" else tool
            for tool in old.tools
        ],
        persona=old.persona,
        snapshot=old.snapshot,
        snapshot_trace=old.snapshot_trace,
        snapshot_watermark=old.snapshot_watermark,
        policy=old.policy,
        epoch=old.epoch + 1,
    )
