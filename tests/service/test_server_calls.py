"""Answers in which a tool of the provider is still running: nothing but results may follow them (providers 2.1 A)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxengine.service.prove import prove_all
from ctxengine.service.specs import MemoryLine
from tests.cast import Call, Runtime, answer

pytestmark = pytest.mark.django_db

SEARCH = json.dumps(
    {
        "type": "server_tool_use",
        "id": "srvtoolu_1",
        "name": "web_search",
        "input": {"query": "copper"},
    }
)
FOUND = json.dumps(
    {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
)
KINDS = (
    pytest.param({"extra": {"engine": "suffix"}}, id="moving"),
    pytest.param({"model": "claude-opus-5-5"}, id="kept in place"),
    pytest.param({"extra": {"engine": "working_set"}}, id="working_set"),
    pytest.param({"extra": {"engine": "boundary"}}, id="boundary"),
)


def last_user(built: Any) -> list[str]:
    message = json.loads(built.body)["messages"][-1]
    assert message["role"] == "user"
    return [block["type"] for block in message["content"]]


def said(built: Any) -> str:
    return str(built.body.decode())


@pytest.mark.parametrize("fields", KINDS)
def test_only_results_follow_an_answer_whose_server_tool_still_runs(fields: dict[str, Any]) -> None:
    runtime = Runtime(**fields)
    runtime.ask("What does copper cost?")
    runtime.assemble()
    runtime.hear(answer("anthropic", "", [Call("toolu_1", "read")], reasoning=[SEARCH]))
    runtime.results(("toolu_1", "nine"))
    told = MemoryLine(id="m1", text="prices are in dollars")

    held = runtime.assemble(knowledge=(told,))

    assert last_user(held) == ["tool_result"]
    assert "prices are in dollars" not in said(held)
    assert any("held back" in warning for warning in held.manifest["warnings"])
    runtime.hear(
        answer("anthropic", "One more look.", [Call("toolu_2", "read")], reasoning=[FOUND])
    )
    runtime.results(("toolu_2", "ten"))
    free = runtime.assemble(knowledge=(told,))
    assert "prices are in dollars" in said(free)
    assert not any("held back" in warning for warning in free.manifest["warnings"])
    assert {found.verdict for found in prove_all(session_id=runtime.session)} == {"identical"}


def test_an_answered_server_call_holds_nothing_back() -> None:
    runtime = Runtime()
    runtime.ask("What does copper cost?")
    runtime.assemble()
    runtime.hear(answer("anthropic", "", [Call("toolu_1", "read")], reasoning=[SEARCH, FOUND]))
    runtime.results(("toolu_1", "nine"))
    assert last_user(runtime.assemble()) == ["tool_result", "text"]
