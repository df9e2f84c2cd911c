"""The arithmetic of a request's budget: one function, one table (design 6)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ctxengine.engine.budget.policy import BudgetPolicy

DEFAULT_RESERVE_TOKENS = 8_192


@dataclass(frozen=True, slots=True)
class Frame:
    """What is fixed before anything of the body is looked at; all in tokens of raw counts."""

    window: int
    policy_cap: int | None
    factor: float
    total: int
    reserve: int
    margin: int
    usable: int
    prefix: int
    body: int
    tool_results_cap: int


def reserve_of(policy: BudgetPolicy, max_output: int) -> int:
    """Tokens that are set aside for the answer.

    Args:
        max_output: the most tokens the model can answer with.
    """
    return policy.reserve if policy.reserve is not None else min(DEFAULT_RESERVE_TOKENS, max_output)


def frame(
    *, window: int, max_output: int, prefix_tokens: int, policy: BudgetPolicy, factor: float
) -> Frame:
    """Compute the fixed part of a budget.

    The calibration factor divides the budget and never touches stored counts (design 4): with a factor of 1.25, one raw
    token is expected to be billed as 1.25.

    Args:
        window: the model's context window (tokens).
        max_output: the most tokens the model can answer with.
        prefix_tokens: measured size of region A (raw tokens).
        policy: the plan's budget policy.
        factor: calibration factor, above 0.
    """
    limit = window if policy.policy_cap is None else min(window, policy.policy_cap)
    reserve = reserve_of(policy, max_output)
    admitted = (limit - reserve) * (1 - policy.margin)
    # The tolerance keeps 0.95 * 32768 from losing a token to binary rounding.
    usable = math.floor(admitted / factor + 1e-9)
    body = usable - prefix_tokens
    return Frame(
        window=window,
        policy_cap=policy.policy_cap,
        factor=factor,
        total=limit,
        reserve=reserve,
        margin=limit - reserve - math.floor(admitted + 1e-9),
        usable=usable,
        prefix=prefix_tokens,
        body=body,
        tool_results_cap=max(0, math.floor(body * policy.tool_results_share)),
    )
