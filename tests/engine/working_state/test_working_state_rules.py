"""Limits, carry rules and transitions of the working state, as pure values."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.trust.levels import Trust
from ctxengine.engine.working_state.carry import CARRY_RULES, carried
from ctxengine.engine.working_state.limits import CAP_OF, StateFull, settle
from ctxengine.engine.working_state.offers import eligible_facts
from ctxengine.engine.working_state.outcomes import (
    Asked,
    Outcome,
    asked_transition,
    outcome_transition,
    question_text,
)
from ctxengine.engine.working_state.render import block_text
from ctxengine.engine.working_state.state import (
    EMPTY,
    Constraint,
    Fact,
    NextAction,
    Question,
    Task,
    TaskStatus,
    WorkingState,
)
from ctxengine.engine.working_state.transitions import Recorded, Transition, apply, replay
from tests.cast import PricedCounter

KEY = bytes(range(32))


def task(number: int, status: TaskStatus = TaskStatus.OPEN) -> Task:
    return Task(
        id=f"t{number}", title=f"task {number}", status=status, trust=Trust.MODEL, sequence=number
    )


def fact(number: int, **fields: Any) -> Fact:
    return Fact(
        id=f"f{number}",
        statement=f"fact {number}",
        trust=Trust.MODEL,
        sequence=number,
        **fields,
    )


def constraint(number: int, text: str = "") -> Constraint:
    return Constraint(
        id=f"c{number}", text=text or f"rule {number}", trust=Trust.USER, sequence=number
    )


def test_finished_tasks_go_first_then_the_oldest_of_each_kind() -> None:
    tasks = [task(n, TaskStatus.COMPLETED if n % 2 else TaskStatus.OPEN) for n in range(1, 41)]
    facts = [fact(n) for n in range(1, 46)]
    state = WorkingState(tasks=tuple(tasks), facts=tuple(facts))
    settled = settle(state, PricedCounter(), 100_000)
    assert len(settled.state.tasks) == CAP_OF["tasks"]
    assert len(settled.state.open_tasks) == 20
    assert settled.state.facts[0].id == "f6"
    assert set(settled.evicted) == {f"t{n}" for n in range(1, 20, 2)} | {
        f"f{n}" for n in range(1, 6)
    }


def test_more_open_tasks_than_the_cap_drop_the_oldest() -> None:
    state = WorkingState(tasks=tuple(task(n) for n in range(1, 34)))
    settled = settle(state, PricedCounter(), 100_000)
    assert settled.evicted == ("t1", "t2", "t3")


def test_the_ceiling_of_the_block_evicts_by_age_and_never_a_constraint() -> None:
    state = WorkingState(
        constraints=(constraint(1, "stay " * 20),),
        tasks=(task(2, TaskStatus.COMPLETED), task(3)),
        facts=(fact(4), fact(5)),
        questions=(Question(id="q6", text="when?", trust=Trust.MODEL, sequence=6),),
    )
    counter = PricedCounter()
    order = []
    cap = counter.text(block_text(state)) - 1
    while True:
        try:
            settled = settle(state, counter, cap)
        except StateFull as full:
            assert full.code == "working_state_full"
            break
        order += [entry for entry in settled.evicted if entry not in order]
        assert settled.state.constraints == state.constraints
        cap = counter.text(block_text(settled.state)) - 1
    assert order == ["t2", "f4", "f5", "t3", "q6"]


def test_a_twenty_first_constraint_does_not_fit() -> None:
    state = WorkingState(constraints=tuple(constraint(n) for n in range(1, 22)))
    with pytest.raises(StateFull, match="at most 20"):
        settle(state, PricedCounter(), 100_000)


def test_the_carry_table_names_every_field_and_is_what_happens() -> None:
    state = WorkingState(
        constraints=(constraint(1),),
        tasks=(task(2, TaskStatus.COMPLETED), task(3, TaskStatus.BLOCKED)),
        facts=(fact(4),),
        questions=(Question(id="q5", text="?", trust=Trust.MODEL),),
        next_action=NextAction(text="go", trust=Trust.MODEL),
        run="a",
    )
    after = carried(state, "b")
    assert {rule.field for rule in CARRY_RULES} == {
        "objective", "constraints", "tasks", "facts", "questions", "next_action",
    }  # fmt: skip
    assert (after.constraints, after.facts, after.questions) == (
        state.constraints,
        state.facts,
        state.questions,
    )
    assert [t.id for t in after.tasks] == ["t3"]
    assert after.next_action is None
    assert carried(state, "a") is state


_TEXTS = st.sampled_from(["one", "two", "three"])
_TRANSITIONS = st.builds(
    Transition,
    writer=st.just("model"),
    constraints=st.lists(st.integers(1, 9).map(constraint), max_size=2).map(tuple),
    lifted=st.lists(st.sampled_from(["c1", "c2"]), max_size=1).map(tuple),
    tasks=st.lists(st.builds(task, st.integers(1, 9), st.sampled_from(TaskStatus)), max_size=2).map(
        tuple
    ),
    facts=st.lists(st.integers(1, 9).map(fact), max_size=2).map(tuple),
    next_action=st.none() | st.builds(NextAction, text=_TEXTS, trust=st.just(Trust.MODEL)),
    evicted=st.lists(st.sampled_from(["t1", "f1"]), max_size=1).map(tuple),
)


@given(
    st.lists(st.tuples(_TRANSITIONS, st.sampled_from(["a", "b"])), min_size=1, max_size=12),
    st.data(),
)
def test_a_keyframe_gives_the_state_of_the_whole_log(
    steps: list[tuple[Transition, str]], data: st.DataObject
) -> None:
    recorded, state = [], EMPTY
    for number, (transition, run) in enumerate(steps, start=10):
        state = apply(state, transition, sequence=number, run=run)
        recorded.append(Recorded(number, run, transition, state))
    place = data.draw(st.integers(0, len(recorded) - 1))
    thinned = [
        entry if at == place else entry._replace(keyframe=None) for at, entry in enumerate(recorded)
    ]
    bare = [entry._replace(keyframe=None) for entry in recorded]
    assert replay(bare) == replay(thinned) == state
    assert WorkingState.model_validate_json(state.model_dump_json()) == state


@given(st.lists(_TRANSITIONS, max_size=12))
def test_a_constraint_goes_only_when_the_user_lifts_it(steps: list[Transition]) -> None:
    state = EMPTY
    for number, transition in enumerate(steps, start=10):
        before = {entry.id: entry.text for entry in state.constraints}
        state = apply(state, transition, sequence=number, run="a")
        after = {entry.id: entry.text for entry in state.constraints}
        assert set(before) - set(after) <= set(transition.lifted)


def test_the_block_is_one_deterministic_text_in_envelopes_by_trust() -> None:
    state = WorkingState(
        constraints=(constraint(1),),
        facts=(
            fact(2, origin="tool:web", source_event_ids=(7,)).model_copy(
                update={"trust": Trust.EXTERNAL_UNTRUSTED}
            ),
        ),
        through=9,
    )
    text = block_text(state, KEY, "12")
    assert text == block_text(state, KEY, "12")
    assert text != block_text(state, KEY, "13")
    assert text.index('trust="USER"') < text.index('trust="EXTERNAL_UNTRUSTED"')
    assert "fact f2 (claim by tool:web, event 7): fact 2" in text
    assert block_text(EMPTY, KEY, "12") == ""


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ('{"question":"Which year?"}', "Which year?"),
        ('{"prompt":"Go?","question":"Which?"}', "Which?"),
        ('{"options":[1]}', '{"options":[1]}'),
        ("no json", "no json"),
    ],
)
def test_a_question_is_read_from_typed_arguments(arguments: str, text: str) -> None:
    assert question_text(arguments) == text


def test_the_runtime_writes_only_what_it_saw() -> None:
    opened = asked_transition(
        EMPTY, [Asked("a1", '{"question":"When?"}')], lambda texts: [[] for _ in texts]
    )
    assert opened is not None
    state = apply(EMPTY, opened, sequence=5, run="a")
    assert asked_transition(state, [Asked("a1", "{}")], lambda texts: [[] for _ in texts]) is None
    assert outcome_transition(state, [Outcome("other", "read", failed=False)]) is None
    assert outcome_transition(state, [Outcome("a1", "ask", failed=True)]) is None
    closed = outcome_transition(state, [Outcome("a1", "ask", failed=False)])
    assert closed is not None
    assert closed.resolved == ("q1",)


def test_a_task_that_names_a_call_is_moved_by_that_call_alone() -> None:
    state = WorkingState(tasks=(task(1).model_copy(update={"call_id": "c7", "tool": "read"}),))
    assert outcome_transition(state, [Outcome("c8", "read", failed=False)]) is None
    moved = outcome_transition(state, [Outcome("c7", "write", failed=True)])
    assert moved is not None
    assert moved.tasks[0].status is TaskStatus.BLOCKED


def test_offers_are_bounded_and_need_sources() -> None:
    facts = [fact(n, source_event_ids=(3,)) for n in range(1, 30)] + [fact(40)]
    offer = eligible_facts(facts, lambda sequence: sequence == 3, ceiling=20)
    assert [f.id for f in offer.facts] == [f"f{n}" for n in range(10, 30)]
    assert offer.withheld == 10
