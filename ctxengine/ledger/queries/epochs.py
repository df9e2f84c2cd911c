"""What made each epoch of a session, and what two of them pinned, ready to be compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from ctxengine.engine.events import EventType
from ctxengine.engine.plan.plan import Plan
from ctxengine.ledger.models import AuditEntry, Event, PlanRow
from ctxengine.ledger.queries.plans import (
    EpochLine,
    PlannedTool,
    PrefixText,
    planned_tools,
    prefix_texts,
    stored_plan,
)

_AUDIT_SLACK = timedelta(minutes=5)
"""An audit entry is written in the transaction of its act; the two clocks are read close together."""


@dataclass(frozen=True, slots=True)
class EpochAct:
    """The act that began an epoch."""

    note: str
    recached_tokens: int
    price_usd: str | None
    """Decimal text; None where no price is known."""
    price_source: str
    removed_tools: tuple[str, ...]
    opaque_dropped: int
    """Reasoning items of an open run that went with the old bytes."""
    actor: str
    """Who did it, as the audit log names them; empty where it does not say."""


@dataclass(frozen=True, slots=True)
class PlanParts:
    """A plan cut into what can be compared."""

    epoch: int
    prefix_tokens: int
    texts: tuple[PrefixText, ...]
    tools: tuple[PlannedTool, ...]
    facts: tuple[tuple[str, str], ...]
    """What else was pinned, in words."""
    policy: dict[str, Any]
    erased: bool = False


def epoch_acts(
    tenant_id: UUID, session_id: UUID, lines: Sequence[EpochLine]
) -> dict[int, EpochAct]:
    """The acts of those epochs that are rotations, by epoch. Two queries."""
    sequences = [line.sequence for line in lines]
    events = Event.objects.filter(
        tenant_id=tenant_id,
        session_id=session_id,
        sequence__in=sequences,
        type=EventType.EPOCH_ROTATED.value,
    ).order_by("sequence")
    actors = _actors(tenant_id, session_id, lines)
    return {
        event.payload["epoch"]: _act(event.payload, actors.get(event.payload["epoch"], ""))
        for event in events
    }


def plan_parts(tenant_id: UUID, session_id: UUID, epoch: int) -> PlanParts | None:
    """One epoch, or None when there is none. Two or three queries."""
    row = PlanRow.objects.filter(tenant_id=tenant_id, session_id=session_id, epoch=epoch).first()
    if row is None:
        return None
    plan, erased = stored_plan(row)
    if plan is None:
        return PlanParts(epoch, row.prefix_tokens, (), (), (), row.policy, erased=True)
    return parts_of(plan, erased=erased)


def parts_of(plan: Plan, *, erased: bool = False) -> PlanParts:
    """A plan that need not be stored yet."""
    return PlanParts(
        epoch=plan.epoch,
        prefix_tokens=plan.prefix_tokens,
        texts=prefix_texts(plan),
        tools=planned_tools(plan),
        facts=tuple(_facts(plan).items()),
        policy=plan.policy.as_json(),
        erased=erased,
    )


def _actors(tenant_id: UUID, session_id: UUID, lines: Sequence[EpochLine]) -> dict[int, str]:
    rotated = [line.created_at for line in lines if line.epoch > 1]
    if not rotated:
        return {}
    # The bounds keep this on the index by time, however much the tenant has done since.
    entries = AuditEntry.objects.filter(
        tenant_id=tenant_id,
        at__gte=min(rotated) - _AUDIT_SLACK,
        at__lte=max(rotated) + _AUDIT_SLACK,
        action="epoch.rotated",
        target=str(session_id),
    )
    return {
        after["epoch"]: actor
        for after, actor in entries.values_list("after", "actor")
        if "epoch" in after
    }


def _act(payload: dict[str, Any], actor: str) -> EpochAct:
    return EpochAct(
        note=payload.get("note", ""),
        recached_tokens=payload.get("recached_tokens", 0),
        price_usd=payload.get("price_usd"),
        price_source=payload.get("price_source", ""),
        removed_tools=tuple(payload.get("removed_tool_names", ())),
        opaque_dropped=payload.get("opaque_dropped", 0),
        actor=actor,
    )


def _facts(plan: Plan) -> dict[str, str]:
    scopes = plan.authority_scope_hashes
    bound = ", ".join(f"{name}={value}" for name, value in sorted(plan.environment.items()))
    revision = plan.persona_revision
    return {
        "model": f"{plan.provider}/{plan.model}",
        "window": f"{plan.window:,}",
        "largest output": f"{plan.max_output:,}",
        "agent": f"{plan.agent_name}@{plan.agent_version}",
        "persona": "given with the session" if revision is None else f"revision {revision}",
        "snapshot": f"{plan.snapshot_trace or 'unnamed'}, watermark {plan.snapshot_watermark:,}"
        if plan.snapshot
        else "none",
        "authority": "not stated"
        if scopes is None
        else ", ".join(digest[:8] for digest in scopes) or "no scope",
        "environment": bound or "none",
        "policy": plan.policy.label,
        "builder": plan.builder,
        "framing": plan.framing_version,
        "renderer": plan.renderer,
        "counter": plan.counter,
        "prefix hash": plan.prefix_sha256,
        "wire prefix hash": plan.wire_prefix_sha256,
    }
