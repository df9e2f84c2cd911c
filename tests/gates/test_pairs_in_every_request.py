"""Gate: tool-pair integrity of whole requests, whatever was cut, shortened, refused, interrupted or rebound."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.budget.policy import BudgetPolicy
from ctxengine.engine.errors import BudgetExceeded
from ctxengine.engine.events import EventType
from ctxengine.engine.wire.registry import PROVIDER_API
from ctxengine.engine.wire.rules import violations
from ctxengine.service.end_run import end_run
from ctxengine.service.specs import EndRun, PolicySpec
from tests.cast import PROVIDERS, Call, Runtime
from tests.lab import Lab, Turn, a_plan, turns
from tests.rewire import broken_rules

pytestmark = pytest.mark.gate

PRESSED = BudgetPolicy(reserve=500, history_floor=300, recall_floor=50)


@pytest.mark.parametrize("provider", PROVIDERS)
@given(turns(largest=600, most=6), st.data())
def test_cuts_and_pointers_never_leave_half_a_pair(
    provider: str, session: Sequence[Turn], data: st.DataObject
) -> None:
    lab = Lab(a_plan(provider=provider, window=4_000, policy=PRESSED))
    try:
        for turn in session:
            lab.ask(turn.message)
            lab.build()
            for sizes in turn.steps:
                lab.act(*sizes, order=data.draw(st.permutations(range(len(sizes)))))
                lab.build()
            lab.reply(turn.reply)
    except BudgetExceeded:
        pass
    for step in lab.steps:
        body = step.built.body
        assert violations(PROVIDER_API[provider], body) == ()
        calls, results = pairs(body)
        assert calls == results


def pairs(body: bytes) -> tuple[list[str], list[str]]:
    """Call ids and result ids of a body, each in the order in which they stand."""
    request = json.loads(body)
    if "input" in request:
        items = request["input"]
        return (
            [item["call_id"] for item in items if item.get("type") == "function_call"],
            [item["call_id"] for item in items if item.get("type") == "function_call_output"],
        )
    blocks = [part for message in request["messages"] for part in parts_of(message)]
    return (
        [part["id"] for part in blocks if part.get("type") in {"tool_use", "function"}],
        [part["tool_use_id"] for part in blocks if part.get("type") == "tool_result"],
    )


def parts_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    if message["role"] == "tool":
        return [{"type": "tool_result", "tool_use_id": message["tool_call_id"]}]
    parts = message.get("content")
    return [*(parts if isinstance(parts, list) else []), *message.get("tool_calls", [])]


@pytest.mark.django_db
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_live_session_is_valid_for_every_api(provider: str) -> None:
    runtime = Runtime(
        provider=provider, window=6_000, policy=PolicySpec(reserve=900, history_floor=400)
    )
    for turn in range(5):
        runtime.ask(f"Question {turn}")
        runtime.assemble()
        calls = [Call(f"id {turn} {n}", "read", '{"n": 1.0}') for n in range(3)]
        runtime.say("Three at once.", *calls)
        for call in reversed(calls):
            runtime.results((call.id, "line\n" * 120))
        runtime.assemble()
        runtime.say("", Call("same", "nobody"), Call("same", "shell_run"))
        runtime.results(("same", ""))
        runtime.assemble()
        runtime.say("Done.")
    runtime.ask("Once more")
    runtime.assemble()
    runtime.say("", Call("left", "read"), Call("open", "read"))
    end_run(actor=runtime.actor, run_id=runtime.run, spec=EndRun(outcome="interrupted"))
    runtime.turn("Still there?", "Yes.")
    rows = runtime.requests
    assert runtime.events(EventType.YIELD_APPLIED)
    assert [found for row in rows for found in broken_rules(runtime.row, row)] == []
