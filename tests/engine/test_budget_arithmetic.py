"""The budget's arithmetic, figure by figure (design 6)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.budget.arithmetic import frame
from ctxengine.engine.budget.classes import (
    CLASS_RULES,
    PREFIX_CEILING_TOKENS,
    YIELD_ORDER,
    BudgetClass,
)
from ctxengine.engine.budget.policy import DEFAULT_POLICY, IMPORTED_POLICY, BudgetPolicy
from ctxengine.engine.layout import ROWS


def test_the_worked_example_comes_out_to_the_token() -> None:
    fixed = frame(
        window=40_960, max_output=8_192, prefix_tokens=20_000, policy=DEFAULT_POLICY, factor=1.0
    )
    assert (fixed.total, fixed.reserve, fixed.usable) == (40_960, 8_192, 31_129)
    assert fixed.body == 11_129
    assert fixed.tool_results_cap == 2_782
    assert fixed.margin == 40_960 - 8_192 - 31_129


@pytest.mark.parametrize(
    ("policy", "max_output", "total", "reserve"),
    [
        (DEFAULT_POLICY, 64_000, 200_000, 8_192),
        (DEFAULT_POLICY, 4_096, 200_000, 4_096),
        (BudgetPolicy(reserve=1_000), 64_000, 200_000, 1_000),
        (BudgetPolicy(policy_cap=90_000), 64_000, 90_000, 8_192),
        (BudgetPolicy(policy_cap=900_000), 64_000, 200_000, 8_192),
    ],
)
def test_caps_and_reserves_come_off_the_top(
    policy: BudgetPolicy, max_output: int, total: int, reserve: int
) -> None:
    fixed = frame(window=200_000, max_output=max_output, prefix_tokens=0, policy=policy, factor=1.0)
    assert (fixed.total, fixed.reserve) == (total, reserve)


@given(
    st.integers(1_024, 2_000_000),
    st.integers(1, 200_000),
    st.integers(0, 100_000),
    st.floats(1.0, 4.0),
)
def test_the_parts_of_a_budget_add_up_and_a_factor_only_shrinks_it(
    window: int, max_output: int, prefix: int, factor: float
) -> None:
    plain, dear = (
        frame(
            window=window,
            max_output=max_output,
            prefix_tokens=prefix,
            policy=DEFAULT_POLICY,
            factor=by,
        )
        for by in (1.0, factor)
    )
    assert plain.reserve + plain.margin + plain.usable == plain.total
    assert plain.usable == plain.prefix + plain.body
    if plain.usable >= 0:
        assert dear.usable <= plain.usable
    assert plain.tool_results_cap >= 0


def test_the_class_table_matches_the_rows_and_the_ceiling() -> None:
    assert PREFIX_CEILING_TOKENS == 22_000
    assert {row.budget_class for row in ROWS} <= {rule.budget_class for rule in CLASS_RULES}
    regions = {rule.budget_class: rule.region for rule in CLASS_RULES}
    assert all(regions[row.budget_class] == row.region for row in ROWS)
    assert [row.number for row in ROWS] == list(range(1, 16))
    assert YIELD_ORDER == (
        BudgetClass.KNOWLEDGE,
        BudgetClass.RECALL,
        BudgetClass.TOOL_RESULTS,
        BudgetClass.HISTORY,
    )


@pytest.mark.parametrize("policy", [DEFAULT_POLICY, IMPORTED_POLICY, BudgetPolicy(reserve=7)])
def test_a_policy_reads_back_equal(policy: BudgetPolicy) -> None:
    assert BudgetPolicy.model_validate(policy.as_json()) == policy
