"""What makes a new run need another plan: one comparison, all reasons at once (design 7.16; spec, Prefix epochs)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from ctxengine.engine.plan.authority import newly_granted
from ctxengine.engine.plan.epochs import REASON_RULES, EpochReason
from ctxengine.engine.plan.hashes import neutral_sha256, recorded_order_sha256
from ctxengine.engine.plan.tool import PinnedTool

if TYPE_CHECKING:
    from ctxengine.engine.plan.plan import Plan
    from ctxengine.engine.plan.planner import PlanRequest

_DERIVED = frozenset({"wire_name", "group", "reason", "tokens", "place", "removed"})


class BuilderStanding(StrEnum):
    """How a plan of an older builder stands today."""

    CURRENT = "current"
    """The same bytes under the same hash: nothing to do."""
    RENAMED = "renamed"
    """The same bytes, under a hash that followed an unstable order."""
    CHANGED = "changed"
    """This builder renders other bytes."""


def reasons_for(
    old: Plan, wanted: PlanRequest, *, granted: Iterable[str] | None
) -> tuple[EpochReason, ...]:
    """Every reason why `wanted` is another plan than `old`, in the order of the table of reasons.

    Args:
        granted: scopes of the run that is about to start; None when nobody stated them.
    """
    found = {
        EpochReason.MODEL_CHANGED: (old.provider, old.model, old.window, old.max_output)
        != (wanted.provider, wanted.model, wanted.window, wanted.max_output),
        EpochReason.PERSONA_CHANGED: old.persona != wanted.persona,
        EpochReason.AGENT_CHANGED: (old.agent_name, old.agent_version, old.instructions)
        != (wanted.agent_name, wanted.agent_version, wanted.instructions)
        or _identities(old.tools) != _identities(wanted.tools),
        EpochReason.RUN_AUTHORITY_CHANGED: newly_granted(old.authority_scope_hashes, granted),
        EpochReason.ENVIRONMENT_CHANGED: old.environment != dict(wanted.environment),
        EpochReason.SNAPSHOT_MISSING: (old.snapshot_trace, old.snapshot)
        != (wanted.snapshot_trace, wanted.snapshot),
        EpochReason.POLICY_CHANGED: old.policy != wanted.policy,
    }
    return tuple(rule.reason for rule in REASON_RULES if found.get(rule.reason))


def builder_standing(old: Plan, again: Plan) -> BuilderStanding:
    """How `old`, made by an older builder, compares with `again`: the same request resolved by this one.

    A plan whose bytes are the same stays, whatever built it. Its hash may still have followed the order in which a process
    happened to hold its sets; such a plan is pinned once more as it is, under the hash that every process agrees on.
    """
    if old.wire_prefix_sha256 != again.wire_prefix_sha256:
        return BuilderStanding.CHANGED
    if old.prefix_sha256 == neutral_sha256(old):
        return BuilderStanding.CURRENT
    if old.prefix_sha256 == recorded_order_sha256(old):
        return BuilderStanding.RENAMED
    return BuilderStanding.CHANGED


def _identities(tools: Sequence[PinnedTool]) -> list[dict[str, Any]]:
    """What the configuration says of each tool; the platform's own are not its business."""
    return [
        tool.model_dump(mode="json", exclude=set(_DERIVED))
        for tool in sorted(tools, key=lambda tool: tool.name)
        if not tool.control
    ]
