"""The plan under which a transcript is replayed: its own where nothing about it is changed, else one resolved anew."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from ctxengine.engine.budget.classes import PREFIX_CLASSES
from ctxengine.engine.budget.policy import DEFAULT_POLICY, BudgetPolicy, ClassCap
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.plan.planner import PlanRequest, resolve_plan
from ctxengine.engine.trust.model_view import model_view
from ctxengine.service.plans import control_tools
from ctxengine.service.replay.models import LabModel
from ctxengine.service.replay.source import Source
from ctxengine.service.replay.wanted import ReplaySettings
from ctxengine.service.rotation import same_request
from ctxengine.service.wiring import counter_of, facts_about, renderer_of

_UNCAPPED = {name.value: ClassCap(tokens=None, items=None) for name in PREFIX_CLASSES}
LAB_POLICY = DEFAULT_POLICY.model_copy(
    update={"name": "lab", "caps": {**DEFAULT_POLICY.caps, **_UNCAPPED}}
)
"""For transcripts that were never planned here: their instructions and tools are as large as they are, and all else is as in a
live session."""


def as_it_was(
    source: Source, recorded: Plan | None, engine: str, model: LabModel, settings: ReplaySettings
) -> bool:
    """Whether a replay changes nothing about what was sent: then it takes the same bytes."""
    if recorded is None or settings.low_water is not None:
        return False
    if settings.budget not in (None, recorded.policy.policy_cap):
        return False
    same_model = (recorded.provider, recorded.model) == (model.provider, model.name)
    return same_model and recorded.engine == source.engine == engine


def lab_plan(
    source: Source, recorded: Plan | None, engine: str, model: LabModel, settings: ReplaySettings
) -> Plan:
    """The plan of one cell.

    Args:
        recorded: the live session's plan of that epoch; None for a foreign transcript.

    Raises:
        PlanOverflow: prefix and floors leave no room in this budget.
        RequiredToolMissing: a required tool cannot be defined.
        UnsupportedProvider: nothing renders for this provider.
    """
    if recorded is not None and as_it_was(source, recorded, engine, model, settings):
        return recorded
    allowed = window_of(recorded, model, settings)
    base = _foreign(source) if recorded is None else _of(recorded)
    wanted = replace(
        base,
        engine=engine,
        provider=model.provider,
        model=model.name,
        window=allowed.window,
        max_output=allowed.max_output,
        policy=_policy(
            base.policy if base.engine == engine else base.policy.for_engine(engine), settings
        ),
    )
    return resolve_plan(
        wanted,
        counter=counter_of(model.provider, model.name),
        renderer=renderer_of(model.provider),
        nonce_key=source.nonce_key,
    )


class Allowed(NamedTuple):
    """What a model takes and gives, in tokens."""

    window: int
    max_output: int


def window_of(recorded: Plan | None, model: LabModel, settings: ReplaySettings) -> Allowed:
    """The same for every engine and policy of a matrix: what a session states of its model, else what is known about a model.

    Args:
        recorded: the live session's plan; None for a foreign transcript, whose window reaches as far as the budget asked for.
    """
    if recorded is not None and (recorded.provider, recorded.model) == tuple(model):
        return Allowed(recorded.window, recorded.max_output)
    facts = facts_about(model.provider, model.name)
    window = facts.window if recorded is not None else max(facts.window, settings.budget or 0)
    return Allowed(window, facts.max_output)


def _of(recorded: Plan) -> PlanRequest:
    return replace(same_request(recorded), epoch=recorded.epoch)


def _foreign(source: Source) -> PlanRequest:
    own = list(source.tools)
    return PlanRequest(
        engine=source.engine,
        provider=source.provider,
        model=source.model,
        window=0,
        max_output=0,
        instructions=model_view(source.instructions),
        tools=[*own, *control_tools({tool.name for tool in own})],
        policy=LAB_POLICY,
    )


def _policy(policy: BudgetPolicy, settings: ReplaySettings) -> BudgetPolicy:
    changes: dict[str, object] = {}
    if settings.budget is not None:
        changes["policy_cap"] = settings.budget
    if settings.low_water is not None:
        changes["low_water"] = settings.low_water
    return policy.model_copy(update=changes)
