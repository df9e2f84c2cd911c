"""Row 12 for one step: the state as its run sees it, within its limits, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence

from ctxengine.engine.budget.classes import BudgetClass
from ctxengine.engine.budget.policy import BudgetPolicy
from ctxengine.engine.errors import BudgetExceeded
from ctxengine.engine.items import Unit
from ctxengine.engine.ports import TokenCounter
from ctxengine.engine.working_state.carry import carried
from ctxengine.engine.working_state.limits import BLOCK_TOKENS, StateFull, settle
from ctxengine.engine.working_state.render import block_text
from ctxengine.engine.working_state.state import WorkingState


def cap_of(policy: BudgetPolicy) -> int:
    """Ceiling of the block under a policy (tokens)."""
    cap = policy.cap(BudgetClass.WORKING_STATE).tokens
    return BLOCK_TOKENS if cap is None else cap


def shown_state(
    state: WorkingState, active: Sequence[Unit], counter: TokenCounter, policy: BudgetPolicy
) -> WorkingState:
    """The state that a request of the open run shows.

    Another model may count more than the one the state was written under; then entries that may be evicted are left out of the
    block, and stay in the log.

    Raises:
        BudgetExceeded: constraints and what else may not be evicted are over the ceiling.
    """
    if state.is_empty:
        return state
    run = next((str(unit.items[0].run) for unit in active if unit.items[0].run), None)
    try:
        return settle(carried(state, run), counter, cap_of(policy)).state
    except StateFull as full:
        raise BudgetExceeded(
            BudgetClass.WORKING_STATE.value,
            int(str(full.numbers.get("needed", 0))),
            cap_of(policy),
            "Let the user lift a constraint, or raise the class in the session's policy.",
        ) from full


def state_tokens(state: WorkingState, nonce_key: bytes, step: str, counter: TokenCounter) -> int:
    """What the block costs."""
    return counter.text(block_text(state, nonce_key, step)) if not state.is_empty else 0
