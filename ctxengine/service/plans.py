"""Resolving, storing and showing plans: shared by opening a session and rotating its epoch."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any
from uuid import UUID

from ctxengine.engine.budget.policy import DEFAULT_POLICY, BudgetPolicy, ClassCap, default_policy
from ctxengine.engine.canonical import digest_of
from ctxengine.engine.control.table import CONTROL_RULES
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.evidence.excerpt import WINDOWED_ENGINES
from ctxengine.engine.evidence.inline import InlineUnit
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.log.records import Batch
from ctxengine.engine.plan.plan import PinnedTool, Plan, plan_text
from ctxengine.engine.plan.schema import provider_schema
from ctxengine.engine.presentations.schemas import CardSchema
from ctxengine.engine.trust.levels import Trust
from ctxengine.engine.trust.model_view import model_view
from ctxengine.ledger.models import PlanRow
from ctxengine.service.cost_model import pinned_prices
from ctxengine.service.prices import Price
from ctxengine.service.specs import PlanView, PolicySpec, ServiceError, ToolSpec


def policy_of(
    spec: PolicySpec | None, *, engine: str, before: BudgetPolicy | None = None
) -> BudgetPolicy:
    """The engine's default policy with a session's own figures, under a version made from them.

    Args:
        before: the policy that the session has had so far; None where it opens.

    Raises:
        ServiceError: 422 for a cap of a class that does not exist or cannot be capped, for a limit of one result in a unit that
            the engine does not show, in two, or in another than the session has counted in so far.
    """
    usual = default_policy(engine)
    if before is not None and before.inline.unit is not usual.inline.unit:
        # What is counted in one unit stays so for the session's life.
        usual = DEFAULT_POLICY
    if spec is None:
        return usual
    given = spec.model_dump(
        exclude_none=True, exclude={"caps", "history_ttl", "durable_checkpoints"}
    )
    given |= _inline(spec, engine, before)
    caps = dict(usual.caps)
    for name, tokens in spec.caps.items():
        if name not in caps or caps[name].tokens is None:
            known = ", ".join(key for key, cap in caps.items() if cap.tokens is not None)
            raise ServiceError(
                "unknown_class", 422, f"{name!r} is no capped budget class; known: {known}."
            )
        caps[name] = ClassCap(tokens=tokens, items=caps[name].items)
    if not given and caps == usual.caps:
        return usual
    policy = usual.model_copy(update={**given, "caps": caps, "name": "session"})
    version = digest_of(policy.model_copy(update={"version": ""}).as_json())[:12]
    return policy.model_copy(update={"version": version})


def _inline(spec: PolicySpec, engine: str, before: BudgetPolicy | None) -> dict[str, int | None]:
    """The limit of one result that a policy states, the one in the other unit set aside; empty where it states none."""
    in_bytes, in_chars = spec.inline_maximum_bytes, spec.inline_maximum_chars
    if in_bytes is None and in_chars is None:
        return {}
    unit = InlineUnit.BYTES if in_chars is None else InlineUnit.CHARACTERS
    fault = ""
    if in_bytes is not None and in_chars is not None:
        fault = "Give one of inline_maximum_bytes and inline_maximum_chars."
    elif unit is InlineUnit.CHARACTERS and engine not in WINDOWED_ENGINES:
        fault = f"The {engine} engine limits a result by its bytes: give inline_maximum_bytes."
    elif before is not None and before.inline.most and before.inline.unit is not unit:
        kept = before.inline.unit
        fault = f"This session's results are counted in {kept}, for its whole life: give its limit in {kept}."
    if fault:
        raise ServiceError("invalid_field", 422, fault)
    return {"inline_maximum_bytes": in_bytes, "inline_maximum_chars": in_chars}


def pinned_tools(specs: tuple[ToolSpec, ...]) -> list[PinnedTool]:
    """Tools as the planner takes them.

    Raises:
        ServiceError: 422 when two tools share a name.
        SchemaError: a schema is not a JSON object.
    """
    seen: set[str] = set()
    tools = []
    for place, spec in enumerate(specs):
        if spec.name in seen:
            raise ServiceError("duplicate_tool", 422, f"Two tools are named {spec.name!r}.")
        seen.add(spec.name)
        tools.append(
            PinnedTool(
                name=spec.name,
                wire_name="",
                description=model_view(spec.description),
                input_schema=provider_schema(spec.input_schema_raw),
                output_schema=provider_schema(spec.output_schema_raw, of_input=False)
                if spec.output_schema_raw
                else None,
                required_scopes=tuple(sorted(set(spec.required_scopes))),
                side_effect=spec.side_effect,
                result_trust=spec.result_trust,
                server=spec.server,
                serves=tuple(sorted(set(spec.serves))),
                observes=tuple(sorted(set(spec.observes))),
                required=spec.required,
                always_loaded=spec.always_loaded,
                presentation=spec.presentation,
                card=card_schema(spec),
                synthesised=spec.synthesised,
                deferred=spec.deferred,
                model_visible=spec.model_visible,
                place=place,
            )
        )
    return tools


def card_schema(spec: ToolSpec) -> CardSchema | None:
    """What a card tool registers of its type; None for one that goes by the known schema.

    Raises:
        ServiceError: 422 `invalid_card` for fields that name nothing, or a card of no type.
    """
    if spec.card is None:
        return None
    if spec.presentation is None:
        raise ServiceError(
            "invalid_card", 422, f"{spec.name!r} describes a card but names no `presentation` type."
        )
    given = spec.card.model_dump(exclude_unset=True)
    try:
        return CardSchema(type=spec.presentation, **given)
    except ValueError as error:
        detail = "; ".join(fault["msg"] for fault in getattr(error, "errors", list)())
        raise ServiceError("invalid_card", 422, f"{spec.name!r}: {detail}") from error


def control_tools(taken: Collection[str]) -> list[PinnedTool]:
    """The control tools of a live session; a runtime's own tool of the same name takes the name.

    Which of them are advertised is the planner's business: some have nothing to name in most sessions.
    """
    return [
        PinnedTool(
            name=rule.name.value,
            wire_name="",
            description=rule.description,
            input_schema=provider_schema(rule.schema),
            side_effect="none",
            always_loaded=True,
            control=True,
        )
        for rule in CONTROL_RULES
        if rule.name.value not in taken
    ]


def candidates(specs: tuple[ToolSpec, ...]) -> list[PinnedTool]:
    """A live session's candidates: the runtime's tools and the platform's own."""
    return [*pinned_tools(specs), *control_tools({spec.name for spec in specs})]


def candidates_again(plan: Plan) -> list[PinnedTool]:
    """What a plan was chosen from, so that a later epoch can choose anew.

    Plans of earlier builders told hidden tools by their group alone.
    """
    own = [
        tool.model_copy(update={"model_visible": False})
        if tool.group == "hidden" and tool.reason == "not model-visible"
        else tool
        for tool in plan.tools
        if not tool.control
    ]
    return [*own, *control_tools({tool.name for tool in own})]


def plan_draft(
    plan: Plan,
    *,
    reasons: tuple[str, ...] = (),
    note: str = "",
    owner: str = "",
    recached_tokens: int = 0,
    price: Price | None = None,
    **facts: Any,
) -> EventDraft:
    """The event that pins a plan: created for the first epoch, rotated for every later one.

    Args:
        recached_tokens: what the provider has to cache anew; 0 when the bytes stay.
        price: what that costs, where it is known.
        facts: further payload fields of a rotation.
    """
    common: dict[str, Any] = {
        "epoch": plan.epoch,
        "prefix_sha256": plan.prefix_sha256,
        "wire_prefix_sha256": plan.wire_prefix_sha256,
        "prefix_tokens": plan.prefix_tokens,
        "builder": plan.builder,
        "policy": plan.policy.label,
        "skipped_tool_names": [model_view(name) for name in plan.skipped_names],
        "warnings": list(plan.warnings),
    }
    type = EventType.PLAN_CREATED
    if plan.epoch > 1:
        type = EventType.EPOCH_ROTATED
        common |= {"reasons": list(reasons), "note": note, "recached_tokens": recached_tokens}
        common |= {"price_usd": price.usd, "price_source": price.source} if price else {}
        common |= facts
    return EventDraft(
        type=type, trust=Trust.PLATFORM, payload=common, body=plan_text(plan), owner=owner
    )


def plan_row(
    plan: Plan,
    *,
    tenant_id: UUID,
    session_id: UUID,
    sequence: EventSeq,
    batch: Batch,
    reasons: tuple[str, ...],
    at: datetime,
) -> PlanRow:
    """The row of a plan whose event stands at `sequence` of `batch`."""
    body = next(event.body for event in batch.events if event.sequence == sequence)
    if body is None:
        msg = f"Event {sequence} pins a plan but has no body."
        raise LookupError(msg)
    return PlanRow(
        tenant_id=tenant_id,
        session_id=session_id,
        epoch=plan.epoch,
        sequence=sequence,
        reasons=list(reasons),
        provider=plan.provider,
        model=plan.model,
        body_id=body.id,
        prefix_sha256=plan.prefix_sha256,
        wire_prefix_sha256=plan.wire_prefix_sha256,
        prefix_tokens=plan.prefix_tokens,
        tokens_by_class={name: entry.model_dump() for name, entry in plan.by_class.items()},
        policy=plan.policy.as_json(),
        builder_version=plan.builder,
        framing_version=plan.framing_version,
        renderer=plan.renderer,
        counter=plan.counter,
        warnings=list(plan.warnings),
        cost_model=pinned_prices(plan.provider, plan.model, at=at),
        created_at=at,
    )


def plan_view(
    plan: Plan,
    reasons: tuple[str, ...] = (),
    *,
    recached_tokens: int = 0,
    price: Price | None = None,
) -> PlanView:
    """A plan as REST shows it."""
    return PlanView(
        epoch=plan.epoch,
        prefix_sha256=plan.prefix_sha256,
        wire_prefix_sha256=plan.wire_prefix_sha256,
        prefix_tokens=plan.prefix_tokens,
        tokens_by_class={name: entry.model_dump() for name, entry in plan.by_class.items()},
        tool_names=[tool.name for tool in plan.defined],
        skipped_tool_names=plan.skipped_names,
        warnings=list(plan.warnings),
        reasons=list(reasons),
        policy=plan.policy.as_json(),
        builder_version=plan.builder,
        deferred_tool_names=[tool.name for tool in plan.deferred],
        skill_names=[skill.name for skill in plan.skills],
        persona_revision=plan.persona_revision,
        recached_tokens=recached_tokens,
        price_usd=price.usd if price else None,
    )


__all__ = [
    "candidates",
    "candidates_again",
    "control_tools",
    "pinned_tools",
    "plan_draft",
    "plan_row",
    "plan_view",
    "policy_of",
]
