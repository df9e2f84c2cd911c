"""Gate: budget conformance. No request exceeds what is usable, yields are minimal or one pass, floors only rise."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.budget.policy import BudgetPolicy
from ctxengine.engine.budget.yields import Raise
from ctxengine.engine.errors import BudgetExceeded
from ctxengine.engine.fresh import omission_text
from ctxengine.engine.history.suffix import suffix_tokens
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import Unit
from ctxengine.engine.step import Memory
from tests.cast import PricedCounter
from tests.lab import Lab, Step, Turn, a_plan, played, turns

pytestmark = pytest.mark.gate

MINIMAL = BudgetPolicy(reserve=500, history_floor=300, recall_floor=50, low_water=1.0)
DEFAULT = BudgetPolicy(reserve=500, history_floor=300, recall_floor=50)
policies = pytest.mark.parametrize("policy", [MINIMAL, DEFAULT], ids=["minimal", "low water"])
OMISSION = PricedCounter().text(omission_text(turns=99_999, units=99_999, through=99_999_999))
long_sessions = turns(largest=500, most=12)


def lab_with(policy: BudgetPolicy, window: int = 4_000) -> Lab:
    return Lab(a_plan(window=window, policy=policy))


def lived(policy: BudgetPolicy, session: Sequence[Turn], window: int = 4_000) -> Lab:
    """Play a session as far as it goes: a run that cannot fit at all ends it."""
    lab = lab_with(policy, window)
    try:
        played(lab, session)
    except BudgetExceeded as error:
        assert error.numbers["budget_class"]
        needed, available = error.numbers["needed"], error.numbers["available"]
        assert isinstance(needed, int)
        assert isinstance(available, int)
        assert needed > available
    return lab


def history_of(lab: Lab, step: Step) -> list[Unit]:
    return [unit for unit in lab.units() if unit.sequence < step.prepared.inputs.boundary]


# --- never over -------------------------------------------------------------------------------------------------------


@policies
@given(long_sessions)
def test_no_request_is_over_budget_and_the_rows_add_up(
    policy: BudgetPolicy, session: list[Turn]
) -> None:
    for step in lived(policy, session).steps:
        budget, manifest = step.built.budget, step.built.manifest
        assert budget.request <= budget.usable
        assert budget.usable <= budget.total - budget.reserve
        assert sum(row.tokens for row in manifest.rows) == budget.request
        assert budget.free == budget.usable - budget.request
        said = sum(row.tokens for row in manifest.rows if row.row in {10, 15})
        assert said == step.shown_tokens


@policies
@given(
    long_sessions,
    st.lists(st.integers(1, 900), max_size=5),
    st.lists(st.integers(1, 900), max_size=5),
    st.lists(st.integers(1, 60), max_size=2),
)
def test_fresh_rows_yield_before_history_and_corrections_never(
    policy: BudgetPolicy,
    session: list[Turn],
    knowledge: list[int],
    recall: list[int],
    corrections: list[int],
) -> None:
    lab = lived(policy, session)
    before = lab.steps[-1].prepared.allocation if lab.steps else None
    lab.ask(20)
    memory = Memory(*(tuple((str(n), f"{size}|line") for n, size in enumerate(sizes))
                      for sizes in (knowledge, recall, corrections)))  # fmt: skip
    step = lab.build(memory)
    inputs, steps = step.prepared.inputs, step.prepared.allocation.yields
    assert [entry.budget_class for entry in steps] == [
        "knowledge",
        "recall",
        "tool_results",
        "history",
    ]
    assert inputs.knowledge_kept <= len(knowledge)
    assert step.built.budget.request <= step.built.budget.usable
    if step.prepared.allocation.raises:
        assert inputs.knowledge_kept == 0
    rendered = step.built.body.decode()
    assert ("memory:correction" in rendered) == bool(corrections)
    if before is not None:
        assert step.prepared.allocation.floors.cut >= before.floors.cut


def test_what_never_yields_and_does_not_fit_is_refused_with_numbers() -> None:
    lab = lab_with(DEFAULT)
    lab.ask(9_000)
    with pytest.raises(BudgetExceeded) as refused:
        lab.build()
    numbers = refused.value.numbers
    assert numbers["budget_class"] == "user_input"
    assert numbers["needed"] == 9_000
    assert "9,000" in refused.value.message
    assert lab.log.newest_yields() == []


def test_a_higher_factor_leaves_less_room_and_touches_no_count() -> None:
    lab = lab_with(DEFAULT)
    lab.ask(30)
    plain, dear = lab.build(), lab.build(factor=1_250_000)
    assert dear.built.budget.usable == pytest.approx(plain.built.budget.usable / 1.25, abs=1)
    assert dear.shown_tokens == plain.shown_tokens


# --- how much is given up ---------------------------------------------------------------------------------------------


@given(long_sessions)
def test_minimal_yield_fills_at_least_95_percent_of_the_best_possible(session: list[Turn]) -> None:
    lab = lab_with(MINIMAL)
    played(lab, session, build=False)
    lab.ask(20)
    step = lab.build()
    allocation, history = step.prepared.allocation, history_of(lab, step)
    pointer = allocation.floors.pointer
    fitting = [
        total
        for total in (suffix_of(history, cut, pointer) for cut in range(len(history) + 1))
        if total <= allocation.room
    ]
    assert allocation.history >= 0.95 * max(fitting)
    assert allocation.history <= allocation.room


def suffix_of(units: Sequence[Unit], cut: int, pointer: int) -> int:
    return sum(u.pointer_tokens if u.sequence < pointer else u.tokens for u in units[cut:])


@policies
@given(long_sessions)
def test_nothing_yields_while_it_fits(policy: BudgetPolicy, session: list[Turn]) -> None:
    lab = lived(policy, session)
    floors = (EventSeq(0), EventSeq(0))
    for step in lab.steps:
        allocation = step.prepared.allocation
        history = [u for u in history_of(lab, step) if u.sequence >= floors[0]]
        wanted = suffix_of(history, 0, floors[1])
        room = step.built.budget.body - never_yield(step) - allocation.fresh
        room -= OMISSION if floors[0] else 0
        if wanted <= room:
            assert allocation.raises == ()
            assert not allocation.under_pressure
        else:
            assert allocation.under_pressure
        floors = (allocation.floors.cut, allocation.floors.pointer)


def never_yield(step: Step) -> int:
    """What never yields before this step shortened anything of its run."""
    raised = [r for r in step.prepared.allocation.raises if r.floor > step.prepared.inputs.boundary]
    return raised[0].before if raised else step.prepared.allocation.never_yield


@policies
@given(long_sessions)
def test_a_pass_stops_where_giving_one_unit_back_would_be_too_much(
    policy: BudgetPolicy, session: list[Turn]
) -> None:
    lab = lived(policy, session)
    for step in lab.steps:
        for raised in step.prepared.allocation.raises:
            if raised.floor <= step.prepared.inputs.boundary and raised.items:
                assert_minimal(lab, step, raised, policy)


def assert_minimal(lab: Lab, step: Step, raised: Raise, policy: BudgetPolicy) -> None:
    allocation, boundary = step.prepared.allocation, EventSeq(step.prepared.inputs.boundary)
    room = allocation.room
    target = room
    if policy.low_water < 1.0:
        target = min(room, max(math.floor(room * policy.low_water), policy.history_floor))
    earlier = [unit.sequence for unit in lab.units() if unit.sequence < raised.floor][-1]
    pointer = allocation.floors.pointer
    if raised.budget_class == "history":
        given_back = suffix_tokens(lab.log, cut=earlier, boundary=boundary, pointer_floor=pointer)
        # The first cut also pays for the line that tells of it.
        assert given_back > target - OMISSION
        return
    kept = [u.result_tokens for u in lab.units() if earlier <= u.sequence < boundary]
    assert raised.after + saved_at(lab, earlier) > target or sum(kept) > allowed_results(step)


def allowed_results(step: Step) -> int:
    return step.prepared.run.fixed.tool_results_cap


def saved_at(lab: Lab, sequence: EventSeq) -> int:
    (unit,) = lab.log.units(sequence, EventSeq(sequence + 1))
    return unit.tokens - unit.pointer_tokens


# --- what consecutive requests share ----------------------------------------------------------------------------------


@policies
@given(long_sessions)
def test_floors_only_rise_and_each_rise_is_an_event(
    policy: BudgetPolicy, session: list[Turn]
) -> None:
    lab = lived(policy, session)
    floors = [step.prepared.allocation.floors for step in lab.steps]
    for before, after in itertools.pairwise(floors):
        assert after.cut >= before.cut
        assert after.pointer >= before.pointer
    rises = sum(len(step.prepared.allocation.raises) for step in lab.steps)
    assert len(lab.log.newest_yields()) == rises


@policies
@given(long_sessions)
def test_bytes_only_grow_between_two_yields(policy: BudgetPolicy, session: list[Turn]) -> None:
    for before, after in itertools.pairwise(lived(policy, session).steps):
        if not after.prepared.allocation.raises:
            assert after.carried[: len(before.carried)] == before.carried


def test_a_low_water_mark_breaks_the_cache_rarely() -> None:
    session = [Turn(40, ((120,), (90,)), 60)] * 60
    breaks = {
        policy.low_water: sum(
            bool(step.prepared.allocation.raises) for step in lived(policy, session).steps
        )
        for policy in (MINIMAL, DEFAULT)
    }
    assert 0 < breaks[0.25] * 4 < breaks[1.0]


@pytest.mark.parametrize("policy", [MINIMAL, DEFAULT], ids=["minimal", "low water"])
def test_a_long_run_shortens_its_own_results_in_passes_that_are_events(
    policy: BudgetPolicy,
) -> None:
    lab = lived(policy, [Turn(40, ((150,),) * 60, 60), Turn(40, ((150,),) * 3, 60)])
    assert len(lab.steps) == 65
    for before, after in itertools.pairwise(lab.steps):
        assert after.built.budget.request <= after.built.budget.usable
        if not after.prepared.allocation.raises:
            assert after.carried[: len(before.carried)] == before.carried


def test_a_larger_model_sees_everything_again_and_the_smaller_one_finds_its_floor() -> None:
    small, large = a_plan(policy=DEFAULT, window=3_000), a_plan(policy=DEFAULT, window=60_000)
    lab = Lab(small)
    played(lab, [Turn(60, ((200, 200),), 60)] * 8)
    lab.ask(20)
    pressed = lab.build()
    assert pressed.built.manifest.cut.left_out_units > 0
    roomy = Lab(large, log=lab.log, seed=lab.seed).build()
    assert roomy.built.manifest.cut.left_out_units == 0
    assert roomy.prepared.allocation.raises == ()
    again = lab.build()
    assert again.carried == pressed.carried
    assert again.built.body == pressed.built.body
