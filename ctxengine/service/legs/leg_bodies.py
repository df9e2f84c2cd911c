"""The bodies of a step's legs: built beside the session's own request, and built again from what was recorded (design 4, 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from ctxengine.engine.build import BuildOptions
from ctxengine.engine.derive import Derivation
from ctxengine.engine.evidence.excerpt import WINDOWED_ENGINES
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.inputs import Prepared, StepInputs, inputs_of
from ctxengine.engine.items import Opaque
from ctxengine.engine.legs.build_leg import (
    as_leg_recorded,
    body_tokens,
    build_leg,
    leg_body,
    leg_plan,
    leg_reasoning,
    prefix_tokens,
)
from ctxengine.engine.legs.leg import Leg, LegBody
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.recorded_step import recorded_run
from ctxengine.engine.request import ModelRequest
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import RequestRow, RunRow, SessionRow
from ctxengine.service.access import plan_row_of, request_of, session_of
from ctxengine.service.checkpoints import opaque_of
from ctxengine.service.fresh_blocks import blocks_of
from ctxengine.service.leg_specs import AssembledLeg
from ctxengine.service.legs.memory import LegMemory
from ctxengine.service.memory_lines import memory_is_gone, memory_of
from ctxengine.service.rebuild import erased_digests, opaque_until
from ctxengine.service.refusals import refusing
from ctxengine.service.skills import skills_at
from ctxengine.service.specs import Actor
from ctxengine.service.wiring import counter_of, log_of, plan_from, renderer_of, session_facts


class BuiltLeg(NamedTuple):
    """One leg's request, with what is to be recorded of it."""

    leg: Leg
    request: ModelRequest
    body: LegBody


def build_legs(
    session: SessionRow,
    run: RunRow,
    plan: Plan,
    prepared: Prepared,
    built: ModelRequest,
    memory: Mapping[tuple[str, str], LegMemory],
) -> tuple[BuiltLeg, ...]:
    """The request of each leg, from the same units at the same forms as the session's own.

    Args:
        built: the session's own request.
        memory: of each leg, by provider and model.

    Raises:
        EngineError: as `build_leg` does.
    """
    opaque = opaque_of(run)
    key = session_facts(session, plan).nonce_key
    made = []
    for leg in prepared.inputs.legs:
        renderer = renderer_of(leg.provider)
        kept = memory[leg.provider, leg.model]
        request = build_leg(prepared.run, plan, leg, opaque, renderer=renderer, memo=kept.memo)
        tokens = _tokens(session, plan, leg, request, built, prepared, kept, key)
        tokens += _reasoning_tokens(leg, leg_reasoning(opaque, plan, leg))
        shown = leg_plan(plan, leg, renderer)
        made.append(
            BuiltLeg(
                leg,
                request,
                leg_body(
                    request,
                    prepared.run,
                    prepared.inputs.marks,
                    renderer,
                    tokens=tokens,
                    prefix_sha256=kept.memo.region(shown, key, renderer).sha256,
                ),
            )
        )
    return tuple(made)


def _tokens(
    session: SessionRow,
    plan: Plan,
    leg: Leg,
    request: ModelRequest,
    built: ModelRequest,
    prepared: Prepared,
    kept: LegMemory,
    key: bytes,
) -> int:
    """The leg's request by its own counter, reasoning left out (tokens)."""
    counter = counter_of(leg.provider, leg.model)
    if counter.label == plan.counter:
        return built.budget.request - prepared.inputs.opaque_tokens
    if kept.prefix is None or kept.prefix[0] != plan:
        kept.prefix = (plan, prefix_tokens(plan, leg, counter, key))
    derivation = Derivation(
        counter,
        foreign_as_pointer=bool(session.import_sha256),
        inline=plan.policy.inline,
        whole_lines=session.engine in WINDOWED_ENGINES,
    )
    return kept.prefix[1] + body_tokens(request, derivation, kept.counted)


def _reasoning_tokens(leg: Leg, opaque: Mapping[EventSeq, Sequence[Opaque]]) -> int:
    counter = counter_of(leg.provider, leg.model)
    return sum(counter.text(block.raw) for blocks in opaque.values() for block in blocks)


def rebuild_legs(
    session: SessionRow,
    row: RequestRow,
    *,
    options: BuildOptions = BuildOptions(validate=False),
    without_lost_reasoning: bool = False,
    log: PostgresLog | None = None,
) -> tuple[BuiltLeg, ...]:
    """Build a recorded request's legs again from its inputs and the ledger; empty where it has none.

    Args:
        without_lost_reasoning: see `rebuild_request`.

    Raises:
        EngineError: the ledger no longer gives a leg's request at all.
    """
    if not row.inputs.get("leg_bodies"):
        return ()
    inputs = inputs_of(row.inputs)
    log = log or log_of(session)
    plan = plan_from(log, plan_row_of(session, row.epoch))
    run = RunRow.objects.get(tenant_id=row.tenant_id, id=row.run_id)
    opaque = opaque_until(run, inputs.content_head)
    return tuple(
        BuiltLeg(
            leg,
            _again(
                session,
                log,
                plan,
                inputs,
                leg,
                body.model_copy(update={"opaque": {}}) if without_lost_reasoning else body,
                opaque,
                options,
            ),
            body,
        )
        for leg, body in zip(inputs.legs, inputs.leg_bodies, strict=True)
    )


def _again(
    session: SessionRow,
    log: PostgresLog,
    plan: Plan,
    inputs: StepInputs,
    leg: Leg,
    body: LegBody,
    opaque: Mapping[EventSeq, Sequence[Opaque]],
    options: BuildOptions,
) -> ModelRequest:
    renderer = renderer_of(leg.provider)
    shown = leg_plan(plan, leg, renderer, wire_prefix_sha256=body.wire_prefix_sha256)
    under = as_leg_recorded(inputs, body)
    own = () if inputs.fresh_event is None else (inputs.fresh_event,)
    run = recorded_run(
        log,
        session_facts(session, plan),
        under,
        memory=memory_of(log, inputs.memory_event),
        counter=counter_of(plan.provider, plan.model),
        erased=erased_digests(session, shown, under),
        skills=skills_at(log, inputs.skills),
        fresh_erased=memory_is_gone(log, inputs.memory_event),
        sent=blocks_of(log, inputs.sent, excluded=inputs.excluded),
        added=next(iter(blocks_of(log, own)), None),
    )
    return build_leg(
        run,
        plan,
        leg,
        opaque,
        renderer=renderer,
        options=options,
        wire_prefix_sha256=body.wire_prefix_sha256,
    )


def assembled_legs(legs: Sequence[BuiltLeg]) -> tuple[AssembledLeg, ...]:
    """As the answer of assemble gives them."""
    return tuple(
        AssembledLeg(
            provider=made.leg.provider,
            model=made.leg.model,
            body=made.request.body,
            wire_prefix_sha256=made.body.wire_prefix_sha256,
            request_sha256=made.body.request_sha256,
            tokens=made.body.tokens,
        )
        for made in legs
    )


def leg_requests(*, actor: Actor, request_id: UUID) -> tuple[AssembledLeg, ...]:
    """The legs of a recorded request as they were handed out; an empty body where some of its content is gone.

    Raises:
        ServiceError: 404.
    """
    row = request_of(actor, request_id)
    with refusing():
        return assembled_legs(rebuild_legs(session_of(actor, row.session_id), row))
