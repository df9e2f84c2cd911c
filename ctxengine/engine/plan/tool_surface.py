"""Which tools are defined in the prompt, which are not, and why (spec, The budget allocator; ADR figures there).

Explicitly declared tools come first in first-occurrence order when they compete for slots; the chosen set is then sorted by
name, so that the order in which servers connect never reaches the bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

from ctxengine.engine.budget.classes import BudgetClass
from ctxengine.engine.budget.policy import BudgetPolicy
from ctxengine.engine.plan.plan import PinnedTool


def select_tools(candidates: Sequence[PinnedTool], policy: BudgetPolicy) -> tuple[PinnedTool, ...]:
    """Assign each candidate to a group, with the reason, in stable order.

    Tools hidden from the model are kept in the plan and out of the prompt. Beyond the item cap a tool is skipped by name;
    the token cap is checked by the planner, which refuses the plan rather than dropping a declared tool in silence.
    """
    cap = policy.cap(BudgetClass.TOOLS).items
    limit = cap if cap is not None and policy.enforce_caps else len(candidates)
    chosen: list[PinnedTool] = []
    free = limit
    ranked = sorted(enumerate(candidates), key=lambda entry: (not _claims_slot(entry[1]), entry[0]))
    for _, tool in ranked:
        if not tool.required and tool.group == "hidden":
            chosen.append(tool.model_copy(update={"reason": "not model-visible"}))
        elif free > 0:
            free -= 1
            chosen.append(tool.model_copy(update={"group": "defined", "reason": "declared"}))
        else:
            chosen.append(
                tool.model_copy(
                    update={"group": "skipped", "reason": f"over the cap of {limit} definitions"}
                )
            )
    return tuple(sorted(chosen, key=lambda tool: tool.name))


def _claims_slot(tool: PinnedTool) -> bool:
    return tool.required or tool.always_loaded
