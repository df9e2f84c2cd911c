"""Resolving plans: what does not fit is refused by name, what is pinned reads back, what has no order has none."""

from __future__ import annotations

import itertools

import pytest

from ctxengine.engine.budget.policy import IMPORTED_POLICY, BudgetPolicy, ClassCap
from ctxengine.engine.errors import PlanOverflow, PrefixDrift
from ctxengine.engine.plan.plan import PinnedTool, plan_of, plan_text
from tests.lab import READ, Lab, a_plan


def named(name: str, description: str = "Does it.") -> PinnedTool:
    return PinnedTool(
        name=name, wire_name="", description=description, input_schema='{"type":"object"}'
    )


def capped(name: str, tokens: int) -> BudgetPolicy:
    policy = BudgetPolicy(reserve=500, history_floor=300, recall_floor=50)
    caps = policy.caps | {name: ClassCap(tokens=tokens, items=policy.caps[name].items)}
    return policy.model_copy(update={"caps": caps})


@pytest.mark.parametrize(
    ("budget_class", "fields"),
    [
        ("agent", {}),
        ("tools", {"tools": [named("read", "very long " * 60)]}),
        ("platform", {}),
    ],
)
def test_a_prefix_class_over_its_cap_is_refused_by_name(
    budget_class: str, fields: dict[str, object]
) -> None:
    with pytest.raises(PlanOverflow) as overflow:
        a_plan(policy=capped(budget_class, 1), **fields)  # type: ignore[arg-type]
    assert overflow.value.numbers["budget_class"] == budget_class
    assert overflow.value.numbers["available"] == 1
    assert budget_class in overflow.value.message


def test_a_prefix_that_leaves_no_room_for_history_is_refused_at_once() -> None:
    policy = BudgetPolicy(reserve=500, history_floor=300, recall_floor=50)
    prefix = a_plan(policy=policy).prefix_tokens
    with pytest.raises(PlanOverflow) as overflow:
        a_plan(policy=policy, window=1_024 + prefix // 2)
    assert overflow.value.numbers["budget_class"] == "history"
    assert "history_floor" in overflow.value.message


def test_an_imported_plan_lists_its_excess_and_opens() -> None:
    plan = a_plan(
        policy=IMPORTED_POLICY, window=200_000, tools=[named("read", "very long " * 6_000)]
    )
    assert len(plan.defined) == 1
    assert any("over the default cap" in warning for warning in plan.warnings)


def test_the_order_of_tools_and_scopes_reaches_no_hash() -> None:
    tools = [named("b"), named("a"), READ, named("a.b"), named("a_b")]
    plans = [
        a_plan(tools=order, scopes=scopes, window=20_000)
        for order, scopes in zip(
            itertools.islice(itertools.permutations(tools), 0, 120, 13),
            itertools.cycle([("x", "y"), ("y", "x", "x")]),
            strict=False,
        )
    ]
    assert len({plan.prefix_sha256 for plan in plans}) == 1
    assert len({plan.wire_prefix_sha256 for plan in plans}) == 1
    assert len({plan.authority_scope_hashes for plan in plans}) == 1
    assert len({tool.wire_name for tool in plans[0].tools}) == len(tools)


def test_a_stored_plan_reads_back_equal_and_renders_to_its_hash() -> None:
    plan = a_plan(persona=("Calm. \u2028",), snapshot=("Likes </untrusted> tea.",))
    again = plan_of(plan_text(plan))
    assert again.wire_prefix_sha256 == plan.wire_prefix_sha256
    lab = Lab(again)
    lab.ask(5)
    assert lab.build().built.plan.prefix_sha256 == plan.prefix_sha256


def test_a_plan_that_renders_to_other_bytes_fails_loudly() -> None:
    plan = a_plan().model_copy(update={"instructions": "Something else entirely."})
    lab = Lab(plan)
    lab.ask(5)
    with pytest.raises(PrefixDrift, match="rotate the epoch"):
        lab.build()


def test_wire_names_are_reversed_to_ledger_names() -> None:
    plan = a_plan(tools=[named("web.fetch"), named("web_fetch")])
    for tool in plan.tools:
        assert plan.ledger_name(tool.wire_name) == tool.name
        assert plan.wire_name(tool.name) == tool.wire_name
    assert plan.ledger_name("nobody") == "nobody"
    assert plan.wire_name("nobody") is None
