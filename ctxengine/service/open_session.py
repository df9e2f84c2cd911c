"""`POST sessions`: resolve, build and pin a plan (design 5)."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.db import transaction

from ctxengine.engine.canonical import canonical_bytes, sha256_hex
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.log.records import GENESIS_HASH
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.plan.planner import PlanRequest, resolve_plan
from ctxengine.engine.trust.levels import Trust
from ctxengine.engine.trust.model_view import model_view
from ctxengine.ledger.models import AgentVersion, SessionRow
from ctxengine.service.clock import utc_now
from ctxengine.service.crypto import encrypt, new_nonce_key
from ctxengine.service.plans import (
    control_tools,
    pinned_tools,
    plan_draft,
    plan_row,
    plan_view,
    policy_of,
)
from ctxengine.service.refusals import refusing
from ctxengine.service.specs import Actor, AgentRef, OpenSession, ServiceError, SessionOpened
from ctxengine.service.wiring import counter_of, facts_about, log_of, new_id, renderer_of

AVAILABLE_ENGINES = frozenset({"suffix"})


def open_session(*, actor: Actor, spec: OpenSession) -> SessionOpened:
    """Open a session with its first epoch.

    Raises:
        ServiceError: `plan_overflow` (422) naming the class that does not fit; `agent_changed` (409) when this agent version
            is known with other instructions; `unknown_engine`, `unknown_provider`, `invalid_schema` (422).
    """
    if spec.engine not in AVAILABLE_ENGINES:
        raise ServiceError(
            "unknown_engine",
            422,
            f"The engine {spec.engine} is not available; choose {', '.join(AVAILABLE_ENGINES)}.",
        )
    now = utc_now()
    session_id, nonce_key = new_id(), new_nonce_key()
    with refusing():
        plan = _plan(spec, nonce_key)
    row = _row(actor, spec, plan, session_id, nonce_key, now)
    with transaction.atomic():
        _pin_agent(actor, spec.agent, now)
        row.save(force_insert=True)
        drafts = [_opened(spec), plan_draft(plan, owner=row.principal)]
        batch = log_of(row).append(drafts, expected=EventSeq(0), at=now, key=actor.idempotency_key)
        plan_row(
            plan,
            tenant_id=actor.tenant_id,
            session_id=session_id,
            sequence=EventSeq(2),
            batch=batch,
            reasons=(),
            at=now,
        ).save(force_insert=True)
    return SessionOpened(session_id, plan_view(plan))


def _plan(spec: OpenSession, nonce_key: bytes) -> Plan:
    provider, model = spec.model.provider, spec.model.name
    known = facts_about(provider, model)
    window = spec.model.window or known.window
    plan = resolve_plan(
        PlanRequest(
            engine=spec.engine,
            provider=provider,
            model=model,
            window=window,
            max_output=spec.model.max_output or known.max_output,
            instructions=spec.agent.instructions,
            tools=[*pinned_tools(spec.tools), *control_tools(spec.tools)],
            persona=spec.persona,
            snapshot=spec.snapshot.items if spec.snapshot else (),
            snapshot_trace=spec.snapshot.trace_id if spec.snapshot else "",
            snapshot_watermark=spec.snapshot.watermark if spec.snapshot else 0,
            scopes=spec.principal.scopes if spec.principal else (),
            policy=policy_of(spec.policy),
        ),
        counter=counter_of(provider, model),
        renderer=renderer_of(provider),
        nonce_key=nonce_key,
    )
    if spec.model.window is None and known.source == "assumed":
        warning = f"Nothing is known about {model_view(model)}; a window of {window:,} tokens is assumed. State model.window."
        plan = plan.model_copy(update={"warnings": (*plan.warnings, warning)})
    return plan


def _row(
    actor: Actor, spec: OpenSession, plan: Plan, session_id: UUID, nonce_key: bytes, now: datetime
) -> SessionRow:
    return SessionRow(
        tenant_id=actor.tenant_id,
        id=session_id,
        title=model_view(spec.title or spec.agent.name),
        engine=spec.engine,
        provider=spec.model.provider,
        model=model_view(spec.model.name),
        agent_name=model_view(spec.agent.name),
        agent_version=model_view(spec.agent.version),
        principal=model_view(spec.principal.id) if spec.principal else "",
        occasion=spec.occasion,
        parent_run_id=spec.parent_run,
        nonce_key=encrypt(nonce_key),
        settings={
            "environment": {model_view(k): model_view(v) for k, v in spec.environment.items()},
            "scopes": [model_view(s) for s in spec.principal.scopes] if spec.principal else [],
        },
        counter=plan.counter,
        last_hash=GENESIS_HASH,
        epoch=plan.epoch,
        created_at=now,
        active_at=now,
    )


def _opened(spec: OpenSession) -> EventDraft:
    return EventDraft(
        type=EventType.SESSION_OPENED,
        trust=Trust.PLATFORM,
        payload={
            "engine": spec.engine,
            "provider": spec.model.provider,
            "model": model_view(spec.model.name),
            "agent": model_view(spec.agent.name),
            "agent_version": model_view(spec.agent.version),
            "principal": model_view(spec.principal.id) if spec.principal else "",
            "occasion": spec.occasion,
            "parent_run": str(spec.parent_run) if spec.parent_run else None,
        },
    )


def _pin_agent(actor: Actor, agent: AgentRef, now: datetime) -> None:
    """(tenant, name, version) never changes: the same version with other instructions is refused."""
    body = canonical_bytes({"instructions": model_view(agent.instructions)})
    name, version = model_view(agent.name), model_view(agent.version)
    kept, made = AgentVersion.objects.get_or_create(
        tenant_id=actor.tenant_id,
        name=name,
        version=version,
        defaults={"spec": body, "digest": sha256_hex(body), "created_at": now},
    )
    if not made and kept.digest != sha256_hex(body):
        raise ServiceError(
            "agent_changed",
            409,
            f"Agent {name} version {version} is known with other instructions; give the change a new version.",
        )
