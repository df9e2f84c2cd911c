"""Changing single figures of a session's policy: what it states already stays stated."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from pydantic import ValidationError

from ctxengine.engine.budget.policy import DEFAULT_POLICY, BudgetPolicy, default_policy
from ctxengine.engine.evidence.inline import InlineUnit
from ctxengine.service.access import plan_row_of, session_of
from ctxengine.service.configure_session import configure_session
from ctxengine.service.plan_specs import Configure, Configured
from ctxengine.service.specs import Actor, PolicySpec, ServiceError
from ctxengine.service.wiring import log_of, plan_from

_TTLS = ("", "5m", "1h")
_EDITABLE = ("default", "session")
"""Policies whose every figure a session's open could state; an import's caps are those of its file."""


def edit_policy(
    *,
    actor: Actor,
    session_id: UUID,
    history_ttl: str,
    compaction: str,
    summary_model: str,
    note: str,
) -> Configured:
    """Change the life of history's cache entries (at once, no rotation) and who writes summaries (from the next run).

    Raises:
        ServiceError: 409 `session_ended`; 422 for a value that is none of the known, a model that may not write summaries, or
            where nothing would change.
    """
    session = session_of(actor, session_id)
    policy = plan_from(log_of(session), plan_row_of(session)).policy
    old_ttl = str(session.settings.get("history_ttl", ""))
    if history_ttl not in _TTLS:
        raise ServiceError("invalid_field", 422, "The life is 5m or 1h.")
    if not history_ttl and old_ttl:
        raise ServiceError(
            "invalid_field", 422, "A life that was chosen can be changed, not unset."
        )
    wanted = {"compaction": compaction, "summary_model": summary_model}
    before = {name: getattr(policy, name) for name in wanted}
    changed = {name: value for name, value in wanted.items() if value != before[name]}
    if history_ttl == old_ttl and not changed:
        raise ServiceError("invalid_field", 422, "Nothing would change.")
    if changed and policy.name not in _EDITABLE:
        raise ServiceError(
            "invalid_field",
            422,
            f"The policy {policy.name} cannot be stated anew; only the life of cache entries can be changed here.",
        )
    fields: dict[str, Any] = stated(policy) | changed if changed else {}
    if history_ttl and history_ttl != old_ttl:
        fields["history_ttl"] = history_ttl
    try:
        spec = Configure(policy=PolicySpec(**fields))
    except ValidationError as error:
        raise ServiceError("invalid_field", 422, _words(error)) from error
    told = {"history_ttl": old_ttl, **before}
    return configure_session(
        actor=actor,
        session_id=session_id,
        spec=spec,
        note=note,
        before=told,
        after={"history_ttl": history_ttl, **wanted},
    )


def stated(policy: BudgetPolicy) -> dict[str, Any]:
    """What a policy states beyond the default, as a session's open would say it."""
    in_chars = policy.inline.unit is InlineUnit.CHARACTERS
    usual = default_policy("working_set") if in_chars else DEFAULT_POLICY
    names = set(PolicySpec.model_fields) & set(BudgetPolicy.model_fields) - {"caps"}
    found = {
        name: getattr(policy, name)
        for name in sorted(names)
        if getattr(policy, name) != getattr(usual, name)
    }
    caps = {
        name: cap.tokens
        for name, cap in policy.caps.items()
        if cap.tokens is not None and cap.tokens != usual.caps[name].tokens
    }
    return found | ({"caps": caps} if caps else {})


def _words(error: ValidationError) -> str:
    first = error.errors()[0]
    return f"{first['loc'][-1]}: {first['msg']}."
