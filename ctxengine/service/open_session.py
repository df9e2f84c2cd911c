"""`POST sessions`: resolve, build and pin a plan (design 5)."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from ctxengine.engine.canonical import canonical_bytes, sha256_hex
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.log.records import GENESIS_HASH
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.plan.planner import PlanRequest, resolve_plan
from ctxengine.engine.plan.skills import PinnedSkill
from ctxengine.engine.trust.levels import Trust
from ctxengine.engine.trust.model_view import model_view
from ctxengine.ledger.models import AgentVersion, SessionRow
from ctxengine.service.child_run import for_parent
from ctxengine.service.clock import utc_now
from ctxengine.service.crypto import encrypt, new_nonce_key
from ctxengine.service.edit_persona import newest_persona
from ctxengine.service.factor import factor_in_force
from ctxengine.service.learnt_window import assumed_window, known_facts
from ctxengine.service.measure_plan import ask_to_measure
from ctxengine.service.open_refusals import refusals_kept
from ctxengine.service.plans import candidates, plan_draft, plan_row, plan_view, policy_of
from ctxengine.service.refusals import refusing
from ctxengine.service.skills import offer
from ctxengine.service.snapshots import register_trace, trace_name
from ctxengine.service.specs import Actor, AgentRef, OpenSession, ServiceError, SessionOpened
from ctxengine.service.summaries.model_choice import check_summary_model
from ctxengine.service.wiring import counter_of, log_of, new_id, renderer_of

AVAILABLE_ENGINES = frozenset({"suffix", "working_set", "boundary"})

_PLAN_EVENT = EventSeq(2)
_FIRST_SKILL_EVENT = 3


def open_session(*, actor: Actor, spec: OpenSession) -> SessionOpened:
    """Open a session with its first epoch.

    Raises:
        ServiceError: `plan_overflow` (422) naming the class that does not fit; `required_tool_missing` (422); `agent_changed`
            (409) when this agent version is known with other instructions; `unknown_engine`, `unsupported_provider`,
            `invalid_schema`, `summary_model_not_allowed` (422).
    """
    if spec.engine not in AVAILABLE_ENGINES:
        raise ServiceError(
            "unknown_engine",
            422,
            f"The engine {spec.engine} is not available; choose {', '.join(AVAILABLE_ENGINES)}.",
        )
    if spec.policy is not None:
        check_summary_model(spec.policy.summary_model, spec.model.provider)
    spec = for_parent(actor, spec)
    now = utc_now()
    session_id, nonce_key = new_id(), new_nonce_key()
    kept = refusals_kept(
        actor=actor,
        engine=spec.engine,
        provider=spec.model.provider,
        model=spec.model.name,
        agent_name=spec.agent.name,
    )
    with kept, refusing():
        counter = counter_of(spec.model.provider, spec.model.name)
        skills = offer(
            spec.skills,
            counter=counter,
            nonce_key=nonce_key,
            first=_FIRST_SKILL_EVENT,
            principal=_principal(spec),
        )
        plan = _plan(actor, spec, session_id, nonce_key, skills.pinned)
    row = _row(actor, spec, plan, session_id, nonce_key, now)
    with transaction.atomic():
        pin_agent(actor, spec.agent, now)
        row.save(force_insert=True)
        drafts = [_opened(spec), plan_draft(plan, owner=row.principal), *skills.drafts]
        batch = log_of(row).append(drafts, expected=EventSeq(0), at=now, key=actor.idempotency_key)
        plan_row(
            plan,
            tenant_id=actor.tenant_id,
            session_id=session_id,
            sequence=_PLAN_EVENT,
            batch=batch,
            reasons=(),
            at=now,
        ).save(force_insert=True)
        register_trace(row, plan, at=now)
        ask_to_measure(
            actor=actor,
            session_id=session_id,
            epoch=plan.epoch,
            provider=plan.provider,
            cause="session opened",
        )
    return SessionOpened(session_id, plan_view(plan))


def _plan(
    actor: Actor,
    spec: OpenSession,
    session_id: UUID,
    nonce_key: bytes,
    skills: tuple[PinnedSkill, ...],
) -> Plan:
    provider, model = spec.model.provider, spec.model.name
    known = known_facts(actor.tenant_id, provider, model)
    window = spec.model.window or known.window
    persona, revision = _persona(actor, spec)
    return resolve_plan(
        PlanRequest(
            prefix_ttl="1h" if spec.occasion == "scheduled" else "5m",
            engine=spec.engine,
            provider=provider,
            model=model,
            window=window,
            max_output=spec.model.max_output or known.max_output,
            agent_name=model_view(spec.agent.name),
            agent_version=model_view(spec.agent.version),
            instructions=spec.agent.instructions,
            tools=candidates(spec.tools),
            persona=persona,
            persona_revision=revision,
            skills=skills,
            **snapshot_fields(spec, session_id),
            scopes=_scopes(spec),
            environment=_environment(spec.environment),
            policy=policy_of(spec.policy, engine=spec.engine),
            factor=factor_in_force(actor.tenant_id, provider, model) / 1_000_000,
            notes=assumed_window(spec.model.window, known, model),
        ),
        counter=counter_of(provider, model),
        renderer=renderer_of(provider),
        nonce_key=nonce_key,
    )


def _persona(actor: Actor, spec: OpenSession) -> tuple[tuple[str, ...], int | None]:
    """Entries given with the session, else the principal's document as it stands."""
    if spec.persona is not None or spec.principal is None:
        return spec.persona or (), None
    document = newest_persona(actor.tenant_id, model_view(spec.principal.id))
    return tuple(document.entries), document.revision


def snapshot_fields(spec: Any, session_id: UUID) -> dict[str, Any]:
    """A snapshot as the planner takes it, under the name of its trace."""
    snapshot = spec.snapshot
    if snapshot is None:
        return {}
    return {
        "snapshot": snapshot.items,
        "snapshot_trace": trace_name(session_id, snapshot.trace_id, bool(snapshot.items)),
        "snapshot_watermark": snapshot.watermark,
    }


def _principal(spec: OpenSession) -> str:
    return model_view(spec.principal.id) if spec.principal else ""


def _scopes(spec: OpenSession) -> tuple[str, ...] | None:
    if spec.principal is None or spec.principal.scopes is None:
        return None
    return tuple(model_view(scope) for scope in spec.principal.scopes)


def _environment(given: dict[str, str]) -> dict[str, str]:
    return {model_view(name): model_view(value) for name, value in given.items()}


def _row(
    actor: Actor, spec: OpenSession, plan: Plan, session_id: UUID, nonce_key: bytes, now: datetime
) -> SessionRow:
    scopes = _scopes(spec)
    return SessionRow(
        tenant_id=actor.tenant_id,
        id=session_id,
        title=model_view(spec.title or spec.agent.name),
        engine=spec.engine,
        provider=spec.model.provider,
        model=model_view(spec.model.name),
        agent_name=model_view(spec.agent.name),
        agent_version=model_view(spec.agent.version),
        principal=_principal(spec),
        occasion=spec.occasion,
        parent_run_id=spec.parent_run,
        nonce_key=encrypt(nonce_key),
        settings={
            "environment": _environment(spec.environment),
            "scopes": list(scopes or ()),
            "authority_stated": scopes is not None,
            "memory": spec.memory,
            "history_ttl": (spec.policy.history_ttl if spec.policy else None) or "5m",
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
            "principal": _principal(spec),
            "occasion": spec.occasion,
            "parent_run": str(spec.parent_run) if spec.parent_run else None,
        },
    )


def pin_agent(actor: Actor, agent: AgentRef, now: datetime) -> None:
    """(tenant, name, version) never changes.

    Raises:
        ServiceError: `agent_changed` (409) when this version is known with other instructions.
    """
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
