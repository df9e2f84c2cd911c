"""Gate: uniqueness. No tool name and no directive stands twice in a request (capacity spec, Verification; design 11).

Each name and each directive here holds a word that nothing else holds, so that counting a word counts the whole of what a
request says of it: in definitions, index, system text, history, summaries and fresh rows alike.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxengine.engine.budget.policy import BudgetPolicy
from ctxengine.engine.plan.plan import Plan, wire_prefix
from ctxengine.engine.plan.tool import PinnedTool
from ctxengine.engine.wire.registry import PROVIDER_API, renderer_for
from ctxengine.service.plans import control_tools
from ctxengine.service.specs import Content, PolicySpec, ServiceError, TakeInput
from ctxengine.service.take_input import take_input
from tests.cast import AT, Runtime, tool
from tests.lab import NONCE_KEY, Lab, Turn, a_plan, turns
from tests.shrinking import PROSE, Shrinker

pytestmark = pytest.mark.gate

_SPOKEN = {api: provider for provider, api in sorted(PROVIDER_API.items(), reverse=True)}
every_provider = pytest.mark.parametrize("provider", sorted(_SPOKEN.values()))
_WORD = re.compile(r"zq\d+z")


def word(number: int) -> str:
    """A word that occurs where it was put and nowhere else."""
    return f"zq{number}z"


def repeated(text: str) -> set[str]:
    """The words that a text holds more than once."""
    return {found for found, many in Counter(_WORD.findall(text)).items() if many > 1}


def held(text: str) -> set[str]:
    """The words that a text holds at all."""
    return set(_WORD.findall(text))


@st.composite
def candidates(draw: st.DrawFn) -> list[PinnedTool]:
    """Tools as an agent and its servers bring them, in any order: up to more than the slots there are."""
    made = []
    for number in draw(st.permutations(range(draw(st.integers(1, 45))))):
        name = draw(st.sampled_from(["{}", "mcp.{}", "a {} b", "{}.get", "x" * 70 + "{}"]))
        made.append(
            PinnedTool(
                name=name.format(word(number)),
                wire_name="",
                description=draw(st.sampled_from(["Does it.", "", "Does it. Slowly."])),
                input_schema='{"type":"object"}',
                server=draw(st.sampled_from(["", "shop", "zoo"])),
                side_effect=draw(st.sampled_from(["world", "none"])),
                deferred=draw(st.booleans()),
                always_loaded=draw(st.integers(0, 9)) == 0,
            )
        )
    return made


def prefix_of(plan: Plan) -> str:
    return renderer_for(plan.provider).prefix_bytes(wire_prefix(plan, NONCE_KEY)).decode()


@every_provider
@pytest.mark.parametrize("deferral", ["index", "native"])
@settings(max_examples=25)
@given(given_tools=candidates())
def test_a_tool_is_named_once_or_not_at_all(
    provider: str, deferral: Literal["index", "native"], given_tools: list[PinnedTool]
) -> None:
    plan = a_plan(
        provider=provider,
        window=200_000,
        tools=[*given_tools, *control_tools(())],
        policy=BudgetPolicy(deferral=deferral),
    )
    text = prefix_of(plan)
    assert repeated(text) == set()
    reachable = [entry for entry in plan.tools if entry.callable and not entry.control]
    told = {found for entry in reachable for found in held(entry.wire_name + entry.name)}
    # A long name is cut on the wire and then ends in a digest instead of its word.
    assert held(text) <= told
    assert {w for t in reachable if len(t.name) < 60 for w in held(t.name)} <= held(text)


@every_provider
@given(st.sets(st.sampled_from(["a.b", "a_b", "a b", "a:b", "A.b", "a..b", "é.b", "a_b_"])))
def test_names_that_a_wire_cannot_tell_apart_are_told_apart(
    provider: str, names: Collection[str]
) -> None:
    tools = [
        PinnedTool(name=name, wire_name="", description="", input_schema='{"type":"object"}')
        for name in names
    ]
    plan = a_plan(provider=provider, window=200_000, tools=[*tools, *control_tools(names)])
    sent = [entry.wire_name for entry in plan.defined]
    assert len(sent) == len(set(sent)) > len(names)


@pytest.mark.django_db
def test_two_tools_of_one_name_are_refused_at_open() -> None:
    with pytest.raises(ServiceError) as refused:
        Runtime(tools=(tool("read"), tool("write"), tool("read", server="shop")))
    assert refused.value.code == "duplicate_tool"


# --- directives -----------------------------------------------------------------------------------------------------------


def bodies_of(lab: Lab, session: Sequence[Turn]) -> list[str]:
    """Every request of a session whose directives are told apart by their words."""
    bodies = []
    for number, turn in enumerate(session):
        lab.seed = lab.scribe.user(f"{turn.message}|Directive {word(number)}.")
        for sizes in turn.steps:
            bodies.append(bytes(lab.build().built.body).decode())
            lab.act(*sizes)
        bodies.append(bytes(lab.build().built.body).decode())
        lab.reply(turn.reply)
    return bodies


@pytest.mark.parametrize("provider", ["anthropic", "openai", "openai-responses"])
@settings(max_examples=40)
@given(session=turns(largest=900, most=10))
def test_a_directive_stands_once_and_the_current_one_always(
    provider: str, session: list[Turn]
) -> None:
    lab = Lab(a_plan(provider=provider))
    bodies = bodies_of(lab, session)
    current = [word(n) for n, turn in enumerate(session) for _ in range(len(turn.steps) + 1)]
    for body, own in zip(bodies, current, strict=True):
        assert repeated(body) == set()
        assert own in held(body)


@pytest.mark.django_db
@pytest.mark.parametrize("provider", ["anthropic", "openai", "openai-responses"])
def test_no_way_of_shrinking_says_a_directive_twice(provider: str) -> None:
    runtime = Shrinker(
        provider=provider,
        window=80_000,
        policy=PolicySpec(history_floor=600, summary_tokens=500),
    )
    asked = 0

    def look() -> str:
        body = runtime.assemble().body.decode()
        assert repeated(body) == set()
        assert word(asked) in held(body)
        return body

    def turn() -> None:
        nonlocal asked
        asked += 1
        runtime.ask(f"Please see to {word(asked)} as well. " + PROSE, now=AT)
        look()
        runtime.look(f"c{asked}", "Row of the sheet. " * 400)
        look()
        runtime.say(PROSE * 3)

    for _ in range(5):
        turn()
    asked += 1
    runtime.ask(f"And {word(asked)}?", now=AT)
    whole = look()
    folded = runtime.events()[2].sequence
    runtime.mark(str(folded), "folded", scope="turn")
    look()
    done = runtime.shrink(through=runtime.row.content_sequence // 2)
    shorter = look()
    assert len(shorter) < len(whole)
    later = runtime.shrink(through=runtime.row.content_sequence - 1)
    look()
    runtime.undo(later.event)
    look()
    runtime.undo(done.event)
    look()
    runtime.all_proven()


@pytest.mark.django_db
def test_input_that_came_late_stands_once() -> None:
    runtime = Runtime()
    runtime.ask(f"First {word(1)}.")
    runtime.look("c1", "Found.")
    take_input(
        actor=runtime.actor,
        run_id=runtime.run,
        spec=TakeInput(message=Content(raw=f"Also {word(2)}.")),
    )
    body = runtime.assemble().body.decode()
    assert held(body) == {word(1), word(2)}
    assert repeated(body) == set()


def test_the_gate_sees_what_stands_twice() -> None:
    lab = Lab(a_plan())
    (body,) = bodies_of(lab, [Turn(5, (), 5)])
    doubled = json.loads(body)
    doubled["messages"].append(doubled["messages"][0])
    assert repeated(body) == set()
    assert repeated(json.dumps(doubled)) == {word(0)}
