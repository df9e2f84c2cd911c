"""A memo saves time and nothing else: with it or without, every build gives the same bytes, figures and refusals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxengine.engine.budget.policy import BudgetPolicy
from ctxengine.engine.errors import EngineError, OrphanPair, WireInvalid
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import ForeignPart, Item, ItemKind, Opaque, TextPart, Unit
from ctxengine.engine.memo import BuildMemo
from ctxengine.engine.request import ModelRequest, RunInput
from ctxengine.engine.step import build_step
from ctxengine.engine.tokens.counter import counter_for
from ctxengine.engine.wire.registry import renderer_for
from tests.cast import PROVIDERS
from tests.lab import READ, Lab, Turn, a_plan, turns

THOUGHT = {
    "anthropic": '{"type":"thinking","thinking":"Hm.","signature":"s"}',
    "openai": '{"reasoning_content":"Hm."}',
    "openai-responses": '{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"e"}',
}
SMALL = BudgetPolicy(reserve=500, history_floor=300, recall_floor=50)
providers = pytest.mark.parametrize("provider", PROVIDERS)


def rebuilt(
    lab: Lab,
    run: RunInput,
    memo: BuildMemo | None,
    opaque: Mapping[EventSeq, Sequence[Opaque]] | None = None,
) -> ModelRequest:
    return build_step(
        run, lab.facts, opaque=opaque or {}, renderer=renderer_for(lab.plan.provider), memo=memo
    )


def shape(request: ModelRequest) -> tuple[Any, ...]:
    return (
        request.body,
        request.request_sha256,
        request.manifest.as_json(),
        request.budget,
        request.markers,
        request.segments,
        request.unit_tokens,
        request.opaque_units,
        request.absent,
    )


def outcome(work: Callable[[], ModelRequest]) -> Any:
    """What a build gives, or the class of its refusal."""
    try:
        return shape(work())
    except EngineError as error:
        return type(error)


def assert_same(
    lab: Lab,
    run: RunInput,
    memo: BuildMemo,
    opaque: Mapping[EventSeq, Sequence[Opaque]] | None = None,
) -> None:
    bare = outcome(lambda: rebuilt(lab, run, None, opaque))
    assert outcome(lambda: rebuilt(lab, run, memo, opaque)) == bare
    assert outcome(lambda: rebuilt(lab, run, memo, opaque)) == bare


def thoughts(lab: Lab, run: RunInput) -> dict[EventSeq, tuple[Opaque, ...]]:
    """Reasoning for each assistant step of the open run."""
    api = renderer_for(lab.plan.provider).api.value
    return {
        unit.sequence: (Opaque(0, "reasoning", THOUGHT[lab.plan.provider], api),)
        for unit in run.active
        if unit.items[0].kind is not ItemKind.USER_MESSAGE
    }


# --- whole sessions ---------------------------------------------------------------------------------------------------


@given(
    session=turns(),
    provider=st.sampled_from(PROVIDERS),
    low_water=st.sampled_from([0.25, 1.0]),
    thinking=st.booleans(),
    erase=st.booleans(),
)
@settings(max_examples=40)
def test_every_step_of_a_session_is_the_same_with_a_memo(
    session: list[Turn], provider: str, low_water: float, thinking: bool, erase: bool
) -> None:
    policy = SMALL.model_copy(update={"low_water": low_water})
    lab, memo = Lab(a_plan(provider=provider, policy=policy)), BuildMemo()

    def step() -> None:
        run = lab.build().prepared.run
        assert_same(lab, run, memo, thoughts(lab, run) if thinking else None)

    for number, turn in enumerate(session):
        lab.ask(turn.message)
        step()
        for sizes in turn.steps:
            lab.act(*sizes)
            step()
        lab.reply(turn.reply)
        if erase and number == len(session) // 2:
            bodies = [event.body.id for event in lab.log.events() if event.body is not None]
            lab.log.erase(bodies[len(bodies) // 2])


@providers
def test_a_memo_that_served_another_session_changes_nothing(provider: str) -> None:
    memo = BuildMemo()
    for size in (40, 90):
        lab = Lab(a_plan(provider=provider))
        for _ in range(3):
            lab.ask(size)
            lab.act(size, size + 1)
            assert_same(lab, lab.build().prepared.run, memo)
            lab.reply(size)


@providers
def test_a_memo_follows_a_plan_that_calls_its_tools_otherwise(provider: str) -> None:
    lab, memo = Lab(a_plan(provider=provider)), BuildMemo()
    lab.ask(30)
    lab.act(50)
    run = lab.build().prepared.run
    assert_same(lab, run, memo)
    other = Lab(a_plan(provider=provider, tools=[READ, READ.model_copy(update={"name": "re.ad"})]))
    assert_same(other, run, memo)
    assert_same(lab, run, memo)


@providers
def test_going_back_and_forth_between_steps_changes_nothing(provider: str) -> None:
    lab, memo = Lab(a_plan(provider=provider)), BuildMemo()
    runs = []
    for _ in range(6):
        lab.ask(200)
        lab.act(300, 20)
        runs.append(lab.build().prepared.run)
        lab.reply(100)
    for place in (0, 5, 2, 4, 1, 5, 3, 0):
        assert_same(lab, runs[place], memo)


# --- refusals ---------------------------------------------------------------------------------------------------------


def with_items(unit: Unit, change: Callable[[Item], Item]) -> Unit:
    return replace(unit, items=tuple(change(item) for item in unit.items))


@pytest.fixture(params=PROVIDERS)
def known(request: pytest.FixtureRequest) -> tuple[Lab, RunInput, BuildMemo]:
    """A run of two steps, and a memo that has seen the request before the second."""
    lab, memo = Lab(a_plan(provider=request.param)), BuildMemo()
    lab.ask(20)
    lab.act(30)
    rebuilt(lab, lab.build().prepared.run, memo)
    lab.act(40)
    return lab, lab.build().prepared.run, memo


def test_a_call_id_used_twice_is_refused_though_each_unit_is_sound(
    known: tuple[Lab, RunInput, BuildMemo],
) -> None:
    lab, run, memo = known
    first, last = run.active[1], run.active[2]
    taken = next(item.wire_call_id for item in first.items if item.kind is ItemKind.TOOL_CALL)
    twice = with_items(last, lambda item: replace(item, wire_call_id=taken))
    broken = replace(run, active=[*run.active[:-1], twice])
    for kept in (memo, None):
        with pytest.raises(WireInvalid):
            rebuilt(lab, broken, kept)
    assert_same(lab, run, memo)


def test_a_call_without_its_result_is_refused_when_it_is_new(
    known: tuple[Lab, RunInput, BuildMemo],
) -> None:
    lab, run, memo = known
    alone = replace(run.active[2], items=run.active[2].items[:-1])
    broken = replace(run, active=[*run.active[:-1], alone])
    for kept in (memo, None):
        with pytest.raises(OrphanPair):
            rebuilt(lab, broken, kept)


def test_blocks_of_the_providers_own_are_always_looked_at_in_the_whole_body(
    known: tuple[Lab, RunInput, BuildMemo],
) -> None:
    lab, run, memo = known
    api = renderer_for(lab.plan.provider).api.value
    block = ForeignPart("text", '{"type":"text","text":" "}', api)
    said = replace(run.active[2].items[0], parts=(TextPart("Let me look."), block))
    step = replace(run.active[2], items=(said, *run.active[2].items[1:]))
    assert_same(lab, replace(run, active=[*run.active[:-1], step]), memo)


def test_a_marker_inside_reasoning_is_not_vouched_for() -> None:
    lab, memo = Lab(a_plan(provider="anthropic")), BuildMemo()
    lab.ask(20)
    lab.act(30)
    run = lab.build().prepared.run
    marked = THOUGHT["anthropic"][:-1] + r',"cache\u005fcontrol":{"type":"ephemeral"}}'
    opaque = {run.active[1].sequence: (Opaque(0, "reasoning", marked, "anthropic"),)}
    for kept in (memo, memo, None):
        with pytest.raises(WireInvalid):
            rebuilt(lab, run, kept, opaque)


# --- what else is remembered ------------------------------------------------------------------------------------------


@given(texts=st.lists(st.text(max_size=600), max_size=60))
def test_remembered_counts_are_the_counters_own(texts: list[str]) -> None:
    counter = counter_for("openai", "gpt-4o")
    remembering = BuildMemo().counter(counter)
    for text in [*texts, *texts]:
        assert remembering.text(text) == counter.text(text)


def test_a_memo_lets_go_of_the_past() -> None:
    lab, memo = Lab(a_plan(window=4_000)), BuildMemo()
    for _ in range(300):
        lab.ask(5)
        lab.act(60)
        rebuilt(lab, lab.build().prepared.run, memo)
        lab.reply(5)
    assert len(memo.tape("whole").units) < 400
