"""The user speaks while a tool of the provider still runs: no wire refuses it, and nothing is lost (providers 2.1 A)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxengine.service.end_run import end_run
from ctxengine.service.prove import prove_all
from ctxengine.service.specs import Content, EndRun, TakeInput
from ctxengine.service.take_input import take_input
from tests.cast import Call, Runtime, answer

pytestmark = pytest.mark.django_db

SEARCH = json.dumps(
    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "tin"}}
)
FOUND = json.dumps(
    {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
)
THOUGHT = json.dumps({"type": "thinking", "thinking": "Look it up.", "signature": "s1"})
KINDS = (
    pytest.param({"extra": {"engine": "suffix"}}, id="suffix"),
    pytest.param({"model": "claude-opus-5-5"}, id="kept in place"),
    pytest.param({"extra": {"engine": "working_set"}}, id="working_set"),
    pytest.param({"extra": {"engine": "boundary"}}, id="boundary"),
)


def waiting(fields: dict[str, Any]) -> Runtime:
    """A run whose newest answer calls a tool of ours, answered, and one of the provider, which still runs."""
    runtime = Runtime(**fields)
    runtime.ask("What does copper cost?")
    runtime.assemble()
    calls = [Call("toolu_1", "read")]
    runtime.hear(answer("anthropic", "", calls, reasoning=[THOUGHT, SEARCH]))
    runtime.results(("toolu_1", "nine"))
    return runtime


def late(runtime: Runtime, text: str = "And tin?") -> None:
    take_input(actor=runtime.actor, run_id=runtime.run, spec=TakeInput(message=Content(raw=text)))


def messages(built: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(built.body)["messages"]
    return found


def kinds(built: Any) -> list[str]:
    return [block["type"] for message in messages(built) for block in message["content"]]


def proven(runtime: Runtime) -> bool:
    found = {proof.verdict for proof in prove_all(session_id=runtime.session)}
    return found <= {"identical", "identical_except"}


@pytest.mark.parametrize("fields", KINDS)
def test_late_input_gives_the_open_call_up_and_is_heard(fields: dict[str, Any]) -> None:
    runtime = waiting(fields)
    late(runtime)
    built = runtime.assemble()
    assert "server_tool_use" not in kinds(built) and "tool_result" in kinds(built)
    assert "thinking" not in kinds(built)
    text = built.body.decode()
    assert "And tin?" in text and "[elided] provider block" in text
    assert any("user spoke before" in warning for warning in built.manifest["warnings"])
    runtime.say("Tin is dearer.")
    runtime.ask("Thanks.")
    assert "server_tool_use" not in kinds(runtime.assemble())
    assert proven(runtime)


@pytest.mark.parametrize("fields", KINDS)
def test_a_result_that_comes_for_it_later_stands_as_a_note_too(fields: dict[str, Any]) -> None:
    runtime = waiting(fields)
    sent = runtime.assemble()
    assert messages(sent)[-1]["content"][-1]["type"] == "tool_result"
    late(runtime)
    calls = [Call("toolu_2", "read")]
    runtime.hear(answer("anthropic", "Found it.", calls, reasoning=[FOUND]))
    runtime.results(("toolu_2", "ten"))
    built = runtime.assemble()
    assert {"server_tool_use", "web_search_tool_result"}.isdisjoint(kinds(built))
    assert built.body.decode().count("[elided] provider block") == 2
    assert proven(runtime)


@pytest.mark.parametrize("fields", KINDS)
def test_a_run_that_ended_while_it_ran_does_not_end_the_session(fields: dict[str, Any]) -> None:
    runtime = waiting(fields)
    end_run(actor=runtime.actor, run_id=runtime.run, spec=EndRun(outcome="interrupted"))
    runtime.ask("And tin?")
    assert "server_tool_use" not in kinds(runtime.assemble())
    assert proven(runtime)


def test_answers_of_one_turn_keep_the_call_and_its_result() -> None:
    runtime = waiting({})
    runtime.assemble()
    runtime.hear(answer("anthropic", "Copper is nine.", [], reasoning=[FOUND]))
    runtime.ask("And tin?")
    assert {"server_tool_use", "web_search_tool_result"} <= set(kinds(runtime.assemble()))
