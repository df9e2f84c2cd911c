"""Who holds what cannot yield, what is refused with which name, and what a build refuses of itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.budget.arithmetic import frame
from ctxengine.engine.budget.classes import BudgetClass
from ctxengine.engine.budget.policy import BudgetPolicy
from ctxengine.engine.budget.yields import Allocation, Demand, Floors, allocate
from ctxengine.engine.build import build
from ctxengine.engine.errors import BudgetExceeded, LayoutBreach, PlanOverflow
from ctxengine.engine.fresh import Runtime, runtime_text, windowed_line
from ctxengine.engine.fresh_fit import line_tokens, recall_window, scopes_shown
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.request import CheckpointInput
from ctxengine.engine.step import Memory
from ctxengine.engine.stretch import Stretch, Totals
from ctxengine.engine.validate import check_layout
from ctxengine.engine.wire.registry import renderer_for
from tests.cast import PricedCounter, memory_log
from tests.lab import Lab, a_plan

POLICY = BudgetPolicy(reserve=500, history_floor=300, recall_floor=50)
FIXED = frame(window=4_500, max_output=500, prefix_tokens=800, policy=POLICY, factor=1.0)
HELD = {
    "user_input": BudgetClass.USER_INPUT,
    "working_state": BudgetClass.WORKING_STATE,
    "skills": BudgetClass.SKILL_BODIES,
    "corrections": BudgetClass.RECALL,
    "runtime": BudgetClass.RUNTIME,
    "active": BudgetClass.HISTORY,
}


def allocated(demand: Demand, policy: BudgetPolicy = POLICY) -> Allocation:
    """An allocation of a session that holds nothing yet but what is demanded."""
    return allocate(
        fixed=FIXED,
        policy=policy,
        demand=demand,
        floors=Floors(),
        index=memory_log(),
        boundary=EventSeq(1),
        head=EventSeq(1),
    )


@pytest.mark.parametrize(("field", "name"), HELD.items())
def test_the_refusal_names_the_largest_class_that_cannot_yield(
    field: str, name: BudgetClass
) -> None:
    small = Demand(active=300, user_input=200, runtime=50, working_state=100, corrections=40)
    with pytest.raises(BudgetExceeded) as refused:
        allocated(replace(small, **{field: 3_000}))  # type: ignore[arg-type]
    numbers = refused.value.numbers
    assert numbers["budget_class"] == name.value
    assert numbers["needed"] == 3_000
    assert isinstance(numbers["available"], int)
    assert 0 <= numbers["available"] < 3_000
    assert [step.budget_class for step in refused.value.steps] == [
        "knowledge",
        "recall",
        "tool_results",
        "history",
    ]


@given(
    st.integers(0, 3_000),
    st.lists(st.integers(1, 900), max_size=5),
    st.lists(st.integers(1, 1_900), max_size=5),
)
def test_fresh_rows_give_way_even_where_there_is_no_history(
    held: int, knowledge: list[int], recall: list[int]
) -> None:
    demand = Demand(active=0, user_input=held, runtime=0, knowledge=knowledge, recall=recall)
    try:
        found = allocated(demand)
    except BudgetExceeded:
        assert held > FIXED.body
        return
    assert found.never_yield + found.fresh <= FIXED.body
    assert found.fresh >= 0
    assert found.raises == ()


def test_the_best_line_of_recall_keeps_the_floor_where_it_is_longer_than_it() -> None:
    policy = POLICY.model_copy(update={"recall_floor": 200})
    body = FIXED.body
    found = allocated(Demand(active=0, user_input=body - 250, runtime=0, recall=(900, 60)), policy)
    assert (found.recall_kept, found.recall_window, found.fresh) == (1, 200, 200)
    tight = allocated(Demand(active=0, user_input=body - 100, runtime=0, recall=(900, 60)), policy)
    assert (tight.recall_kept, tight.recall_window, tight.fresh) == (1, 100, 100)
    none = allocated(Demand(active=0, user_input=body - 20, runtime=0, recall=(900, 60)), policy)
    assert (none.recall_kept, none.recall_window, none.fresh) == (0, 0, 0)
    roomy = allocated(Demand(active=0, user_input=10, runtime=0, recall=(900, 60)), policy)
    assert (roomy.recall_kept, roomy.recall_window, roomy.fresh) == (2, 0, 960)


class Quarters(PricedCounter):
    """Four characters are a token, whatever a text claims."""

    def text(self, text: str) -> int:
        """Tokens of a text."""
        return -(-len(text) // 4)


@given(st.text(min_size=1, max_size=2_000), st.integers(60, 400))
def test_a_line_is_cut_to_the_tokens_it_may_take(text: str, tokens: int) -> None:
    counter = Quarters()
    chars = recall_window([("r", text)], tokens, counter)
    assert chars >= 1
    (cost,) = line_tokens([("r", windowed_line(text, chars))], counter)
    assert cost <= tokens or chars == 1


@given(st.lists(st.text("abcdef.", min_size=1, max_size=40), max_size=300))
def test_row_14_names_as_many_scopes_as_its_class_holds(scopes: Sequence[str]) -> None:
    counter = Quarters()
    runtime = Runtime(principal="mara", scopes=tuple(scopes))
    shown = scopes_shown(runtime, POLICY, counter)
    text = runtime_text(replace(runtime, scopes_shown=shown))
    assert counter.text(text) <= 500
    if shown is None:
        assert text == runtime_text(runtime)
    else:
        assert f"{len(scopes) - shown} more." in text


# --- what a build refuses of itself -----------------------------------------------------------------------------------


def test_a_build_whose_rows_are_over_what_is_usable_is_refused() -> None:
    lab = Lab(a_plan())
    lab.ask(100)
    run = lab.build(Memory(corrections=(("c", "30|mind"),))).prepared.run
    over = replace(run, row_tokens={**run.row_tokens, 9: run.fixed.usable})
    with pytest.raises(BudgetExceeded, match="add up"):
        build(over, CheckpointInput(), lab.plan, renderer=renderer_for("anthropic"))


def test_rows_out_of_their_order_or_region_are_refused() -> None:
    def at(row: int) -> Stretch:
        return Stretch(row, "block", "whole", (), (), ("d",), (Totals(), Totals()))

    check_layout([at(9), at(10), at(14), at(15)])
    with pytest.raises(LayoutBreach, match="out of their order"):
        check_layout([at(14), at(10)])
    with pytest.raises(LayoutBreach, match="region A"):
        check_layout([at(8)])


def test_the_class_of_tool_results_counts_pointers_as_pointers() -> None:
    lab = Lab(a_plan(window=4_000, policy=POLICY.model_copy(update={"low_water": 1.0})))
    lab.ask(20)
    for _ in range(6):
        lab.act(500)
    step = lab.build()
    shown = [
        unit.pointer_tokens if stretch.form == "pointer" else unit.tokens
        for stretch in step.built.stretches
        for unit in stretch.units
        if unit.result_tokens
    ]
    assert step.prepared.inputs.active_pointer > 0
    assert step.built.budget.tool_results <= sum(shown)
    assert step.built.budget.tool_results > 500


# --- what a plan is held against --------------------------------------------------------------------------------------


def test_a_factor_that_was_learnt_counts_at_open() -> None:
    roomy = {"window": 4_000, "policy": BudgetPolicy(reserve=500, history_floor=2_000)}
    a_plan(**roomy, factor=1.0)  # type: ignore[arg-type]
    with pytest.raises(PlanOverflow, match="history"):
        a_plan(**roomy, factor=1.5)  # type: ignore[arg-type]


def test_declaring_tools_is_paid_for_once() -> None:
    class Dear(PricedCounter):
        tools_once = 300

    plain, dear = a_plan(), a_plan(counter=Dear())
    bare, none = a_plan(tools=()), a_plan(tools=(), counter=Dear())
    assert dear.by_class["tools"].tokens - plain.by_class["tools"].tokens == 300
    assert dear.row_counts["5"][0] - plain.row_counts["5"][0] == 300
    assert dear.prefix_tokens - plain.prefix_tokens == 300
    assert none.prefix_tokens == bare.prefix_tokens
