"""Deferred tools on providers that search themselves: found, called and replayed over REST, without one refusal."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID, uuid4

import pytest

from ctxengine.providers.strict_local.exchange import Call
from ctxengine.providers.strict_local.provider import StrictProvider
from ctxengine.service.prove import prove_all
from tests.api.door import Door, as_messages

ANTHROPIC = {"provider": "anthropic", "name": "claude-sonnet-4-6"}
RESPONSES = {"provider": "openai-responses", "name": "gpt-5.4"}
PATHS = {"anthropic": "/v1/messages", "openai-responses": "/v1/responses"}
SEARCH = {
    "anthropic": {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"},
    "openai-responses": {"type": "tool_search", "execution": "server"},
}
both = pytest.mark.parametrize("model", [ANTHROPIC, RESPONSES], ids=["anthropic", "responses"])
NATIVE = {"deferral": "native"}


def later(number: int, **fields: Any) -> dict[str, Any]:
    """A deferred tool with a long description."""
    schema = {
        "type": "object",
        "properties": {"berth": {"type": "string"}},
        "required": ["berth"],
        "additionalProperties": False,
    }
    return {
        "name": f"port.tool_{number:02d}",
        "description": f"Reads sheet {number} of the port. " + "It is kept by the harbour. " * 20,
        "input_schema": schema,
        "deferred": True,
        **fields,
    }


TWELVE = [later(number) for number in range(12)]
LOOK = {"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}


class Played:
    """A session over REST whose model is the strict provider."""

    def __init__(self, door: Door, model: dict[str, str], **fields: Any) -> None:
        self.door = door
        self.provider = model["provider"]
        self.strict = StrictProvider(instance="t")
        body = {
            "model": model,
            "agent": {"name": f"a-{uuid4().hex[:8]}", "version": "1", "instructions": "Help."},
            "tools": [LOOK, *TWELVE],
            "policy": NATIVE,
            **fields,
        }
        opened = door.post("sessions", body).ok()
        self.session, self.plan = opened["id"], opened["plan"]
        self.built: list[dict[str, Any]] = []

    def ask(self, text: str, **fields: Any) -> None:
        self.run = self.door.run(self.session, text, **fields)

    def step(self) -> dict[str, Any]:
        """One request to the strict provider and its answer to us; gives what the runtime must do."""
        self.built.append(self.door.assemble(self.run))
        answer = self.send(self.built[-1]["request"])
        return dict(self.door.post(f"runs/{self.run}/responses", {"response": answer}).ok())

    def send(self, request: dict[str, Any]) -> dict[str, Any]:
        headers = {"authorization": "Bearer t", "anthropic-version": "2026-10-21"}
        body = json.dumps(request).encode()
        answer = self.strict.handle(Call("POST", PATHS[self.provider], headers, body))
        assert answer.status == 200, answer.body.decode()
        return dict(json.loads(answer.body))

    @property
    def request(self) -> dict[str, Any]:
        return dict(self.built[-1]["request"])


def wire(tool: dict[str, Any]) -> str:
    return str(tool["name"]).replace(".", "_")


def blocks_of(request: dict[str, Any]) -> list[dict[str, Any]]:
    """Blocks of Anthropic messages, or the items of a Responses input."""
    found: list[dict[str, Any]] = []
    for entry in as_messages(request):
        content = entry.get("content")
        found += content if "messages" in request and isinstance(content, list) else [entry]
    return found


@both
def test_a_found_tool_is_called_and_replayed_under_one_prefix(
    door: Door, model: dict[str, str]
) -> None:
    played = Played(door, model)
    for turn in range(3):
        played.ask(f'Call {wire(TWELVE[turn])} with {{"berth": "b{turn}"}}')
        told = played.step()
        assert told["next"] == "tools", told
        (call,) = told["calls"]
        assert (call["name"], call["action"]) == (TWELVE[turn]["name"], "execute")
        door.results(played.run, (call["id"], f"Sheet {turn} is dry."))
        assert played.step()["next"] == "finish"
    kinds = [block.get("type") for block in blocks_of(played.request)]
    found = "tool_search_tool_result" if played.provider == "anthropic" else "tool_search_output"
    assert kinds.count(found) == 3
    for name in ("prefix_sha256", "wire_prefix_sha256"):
        assert {built[name] for built in played.built} == {played.plan[name]}
    assert all(door.replays(built["request_id"]) for built in played.built)
    events = [e for e in door.events(played.session) if e["type"] == "model.response.completed"]
    named = [e["payload"].get("found_tools") for e in events]
    assert named == [value for turn in range(3) for value in ([TWELVE[turn]["name"]], None)]
    proved = list(prove_all(session_id=UUID(played.session)))
    assert len(proved) == 6
    assert all(replay.identical for replay in proved)
