"""`PATCH sessions/{id}`: another model, agent, persona, policy, snapshot or environment from the next run on (design 7.16)."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple
from uuid import UUID

from django.db import transaction

from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.items import ContentFormat
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.plan.planner import PlanRequest
from ctxengine.engine.trust.levels import Trust
from ctxengine.engine.trust.model_view import model_view
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import SessionRow
from ctxengine.service.access import plan_row_of, session_of, still_open_session
from ctxengine.service.audit import record_audit
from ctxengine.service.clock import utc_now
from ctxengine.service.learnt_window import assumed_window, known_facts
from ctxengine.service.open_session import pin_agent, snapshot_fields
from ctxengine.service.plan_specs import Configure, Configured
from ctxengine.service.plans import candidates, policy_of
from ctxengine.service.races import redo_once
from ctxengine.service.refusals import refusing
from ctxengine.service.rotation import same_request
from ctxengine.service.specs import Actor, ServiceError
from ctxengine.service.summaries.model_choice import check_summary_model
from ctxengine.service.wiring import log_of, plan_from, renderer_of


def configure_session(
    *,
    actor: Actor,
    session_id: UUID,
    spec: Configure,
    note: str = "",
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
) -> Configured:
    """Choose another configuration. Nothing is rebuilt before the next run starts; an open run keeps its plan.

    Args:
        actor: who acts.
        session_id: the session.
        spec: what is to apply.
        note: why, for the audit log.
        before: figures of ours as they were, for the audit log.
        after: the same figures as they will be.

    Raises:
        ServiceError: `session_ended` (409); `agent_changed` (409); `unsupported_provider`, `invalid_schema`, `duplicate_tool`,
            `unknown_class`, `summary_model_not_allowed` (422); `invalid_content` (422) when no field was given.
    """
    session = session_of(actor, session_id)
    fields = sorted(spec.model_dump(exclude_none=True))
    if not fields:
        raise ServiceError("invalid_content", 422, "Name at least one field to change.")
    told = _Told(note, before or {}, {**(after or {}), "fields": fields})
    return redo_once(lambda: _configure(actor, session, spec, told))


class _Told(NamedTuple):
    """What the audit log is told."""

    note: str
    before: dict[str, Any]
    after: dict[str, Any]


def _configure(actor: Actor, session: SessionRow, spec: Configure, told: _Told) -> Configured:
    fields: list[str] = told.after["fields"]
    log, now = log_of(session), utc_now()
    with refusing():
        head = log.head()
        still_open_session(session)
        _check(spec, session, log)
        draft = EventDraft(
            type=EventType.SESSION_CONFIGURED,
            trust=Trust.PLATFORM,
            payload={"format": ContentFormat.TEXT.value, "fields": fields},
            body=json.dumps(spec.model_dump(mode="json", exclude_none=True)),
            owner=session.principal,
        )
        with transaction.atomic():
            if spec.agent is not None:
                pin_agent(actor, spec.agent, now)
            batch = log.append([draft], expected=head.sequence, at=now, key=actor.idempotency_key)
            if spec.policy is not None and spec.policy.history_ttl is not None:
                _keep_life(session, spec.policy.history_ttl)
            record_audit(
                actor=actor,
                action="session.configured",
                target=str(session.id),
                reason=told.note,
                before=told.before,
                after=told.after,
            )
    return Configured(fields, batch.head.sequence)


def _keep_life(session: SessionRow, ttl: str) -> None:
    """Ask for another life of the history's cache entries from the next step on; call it under the session's lock."""
    session.refresh_from_db(fields=["settings"])
    session.settings["history_ttl"] = ttl
    session.save(update_fields=["settings"])


def _check(spec: Configure, session: SessionRow, log: PostgresLog) -> None:
    """Refuse now what the next run could not resolve."""
    if spec.model is not None:
        renderer_of(spec.model.provider)
    if spec.tools is not None:
        candidates(spec.tools)
    if spec.policy is not None:
        old = plan_from(log, plan_row_of(session))
        policy_of(spec.policy, engine=session.engine, before=old.policy)
        provider = spec.model.provider if spec.model else session.provider
        check_summary_model(spec.policy.summary_model, provider)


def wanted_changes(log: PostgresLog, session: SessionRow, old: Plan, *, since: int) -> PlanRequest:
    """The pinned plan's request with every change chosen after event `since`, the latest of each kind."""
    wanted = same_request(old)
    chosen = [e for e in log.every(EventType.SESSION_CONFIGURED) if e.sequence > since]
    for event in reversed(chosen):
        text = log.body(event.body.id) if event.body is not None else None
        if text is not None:
            wanted = _changed(wanted, Configure.model_validate(json.loads(text)), session, old)
    return wanted


def _changed(wanted: PlanRequest, spec: Configure, session: SessionRow, old: Plan) -> PlanRequest:
    for apply in _APPLY:
        wanted = apply(wanted, spec, session, old)
    return wanted


def _model(wanted: PlanRequest, spec: Configure, session: SessionRow, old: Plan) -> PlanRequest:
    if spec.model is None:
        return wanted
    known = known_facts(session.tenant_id, spec.model.provider, spec.model.name)
    return replace(
        wanted,
        provider=spec.model.provider,
        model=spec.model.name,
        window=spec.model.window or known.window,
        max_output=spec.model.max_output or known.max_output,
        notes=assumed_window(spec.model.window, known, spec.model.name),
    )


def _agent(wanted: PlanRequest, spec: Configure, session: SessionRow, old: Plan) -> PlanRequest:
    if spec.agent is not None:
        wanted = replace(
            wanted,
            agent_name=model_view(spec.agent.name),
            agent_version=model_view(spec.agent.version),
            instructions=spec.agent.instructions,
        )
    if spec.tools is None:
        return wanted
    gone = {tool.name for tool in old.tools if tool.removed}
    tools = [
        tool.model_copy(update={"removed": True}) if tool.name in gone else tool
        for tool in candidates(spec.tools)
    ]
    return replace(wanted, tools=tools)


def _texts(wanted: PlanRequest, spec: Configure, session: SessionRow, old: Plan) -> PlanRequest:
    if spec.persona is not None:
        wanted = replace(wanted, persona=spec.persona, persona_revision=None)
    return replace(wanted, **snapshot_fields(spec, session.id))


def _figures(wanted: PlanRequest, spec: Configure, session: SessionRow, old: Plan) -> PlanRequest:
    if spec.policy is not None and spec.policy.states_budget:
        policy = policy_of(spec.policy, engine=session.engine, before=old.policy)
        wanted = replace(wanted, policy=policy)
    if spec.environment is not None:
        bound = {model_view(name): model_view(value) for name, value in spec.environment.items()}
        wanted = replace(wanted, environment=bound)
    return wanted


_APPLY: tuple[Callable[[PlanRequest, Configure, SessionRow, Plan], PlanRequest], ...] = (
    _model,
    _agent,
    _texts,
    _figures,
)
