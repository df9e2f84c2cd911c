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


@both
def test_a_found_tool_is_judged_by_its_own_scopes_and_schema(
    door: Door, model: dict[str, str]
) -> None:
    tools = [LOOK, later(1, required_scopes=["port:write"]), *TWELVE[2:]]
    played = Played(door, model, tools=tools, principal={"id": "mara", "scopes": ["port:write"]})
    refused = []
    for number, arguments in ((1, '{"berth": "b1"}'), (2, '{"b": 1}')):
        played.ask(f"Call {wire(TWELVE[number])} with {arguments}", scopes=[])
        told = played.step()
        assert told["next"] == "redo"
        refused += told["calls"]
        assert played.step()["next"] == "finish"
    assert [call["action"] for call in refused] == ["refused", "refused"]
    assert "scope_missing" in refused[0]["result"]
    assert "additionalProperties" in refused[1]["result"]
    assert all(door.replays(built["request_id"]) for built in played.built)


def test_a_tool_that_only_a_search_result_names_is_no_tool(door: Door) -> None:
    played = Played(door, ANTHROPIC)
    played.ask("Hello?")
    door.assemble(played.run)
    reference = {"type": "tool_reference", "tool_name": "wipe_disk"}
    found = {"type": "tool_search_tool_search_result", "tool_references": [reference]}
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": SEARCH["anthropic"]["name"]}
    told = door.says(
        played.run,
        search | {"input": {}},
        {"type": "tool_search_tool_result", "tool_use_id": "srvtoolu_1", "content": found},
        {"type": "tool_use", "id": "c1", "name": "wipe_disk", "input": {}},
        stop="tool_use",
    )
    assert told["calls"][0]["action"] == "refused"
    event = door.events(played.session, "type=model.response.completed&")[-1]
    assert "found_tools" not in event["payload"]


@both
def test_definitions_cost_their_tokens_once_they_are_found(
    door: Door, model: dict[str, str]
) -> None:
    played = Played(door, model)
    plain = Played(door, model, tools=[LOOK])
    assert played.plan["prefix_tokens"] < plain.plan["prefix_tokens"] + 100
    played.ask(f'Call {wire(TWELVE[3])} with {{"berth": "b"}}')
    (call,) = played.step()["calls"]
    door.results(played.run, (call["id"], "Dry."))
    played.step()
    first, second = (built["budget"]["request"] for built in played.built)
    assert second - first > 120


@both
def test_no_marker_stands_on_a_definition_that_is_kept_aside(
    door: Door, model: dict[str, str]
) -> None:
    played = Played(door, model)
    played.ask("Hello?")
    played.step()
    tools = played.request["tools"]
    assert tools[0] == SEARCH[played.provider]
    aside = [tool for tool in tools if tool.get("defer_loading")]
    assert [tool["name"] for tool in aside] == sorted(wire(tool) for tool in TWELVE)
    assert not any("cache_control" in tool for tool in aside)
    assert "tool_call" not in [tool.get("name") for tool in tools]
    assert "More tools can be called" not in json.dumps(played.request)


def test_where_the_model_cannot_the_index_serves_and_the_plan_says_so(door: Door) -> None:
    played = Played(door, {"provider": "openai", "name": "gpt-5.4"})
    (warning,) = played.plan["warnings"]
    assert "not known to defer tools natively" in warning
    played.run = door.run(played.session, "Hello?")
    request = door.assemble(played.run)["request"]
    assert "tool_call" in [tool["function"]["name"] for tool in request["tools"]]
    assert "defer_loading" not in json.dumps(request)


def test_the_index_is_what_nobody_asked_otherwise_gets(door: Door) -> None:
    played = Played(door, ANTHROPIC, policy={})
    assert played.plan["policy"]["deferral"] == "index"
    assert played.plan["deferred_tool_names"] == [tool["name"] for tool in TWELVE]
    refused = door.post(
        "sessions",
        {
            "model": ANTHROPIC,
            "agent": {"name": "a", "version": "1"},
            "policy": {"deferral": "both"},
        },
    )
    assert 400 <= refused.status < 500
    assert "deferral" in refused.raw.decode()


def found_and_answered(door: Door, model: dict[str, str]) -> Played:
    """A session in which two tools were found and used."""
    played = Played(door, model)
    for number in (4, 5):
        played.ask(f'Call {wire(TWELVE[number])} with {{"berth": "b"}}')
        (call,) = played.step()["calls"]
        door.results(played.run, (call["id"], f"Sheet {number} is dry."))
        assert played.step()["next"] == "finish"
    return played


@both
def test_a_tool_removed_for_security_leaves_what_was_found_as_well(
    door: Door, model: dict[str, str]
) -> None:
    played = found_and_answered(door, model)
    gone = {"reason": "tool_removed_for_security", "note": "It leaks."}
    door.post(f"sessions/{played.session}/epochs", gone | {"tools": [TWELVE[4]["name"]]}).ok()
    played.ask(f'Call {wire(TWELVE[6])} with {{"berth": "b"}}')
    (call,) = played.step()["calls"]
    door.results(played.run, (call["id"], "Dry."))
    assert played.step()["next"] == "finish"
    assert "Reads sheet 4 of the port" not in json.dumps(played.request)
    assert "Reads sheet 5 of the port" in json.dumps(played.request)
    assert all(door.replays(built["request_id"]) for built in played.built)


@both
def test_a_session_may_go_back_to_the_index(door: Door, model: dict[str, str]) -> None:
    played = found_and_answered(door, model)
    door.send("PATCH", f"sessions/{played.session}", {"policy": {"deferral": "index"}}).ok()
    played.ask("Hello?")
    assert played.step()["next"] == "finish"
    names = [tool.get("name") for tool in played.request["tools"]]
    assert "tool_call" in names
    assert wire(TWELVE[4]) not in names
    assert "provider block (external_untrusted" in json.dumps(played.request)
    assert all(door.replays(built["request_id"]) for built in played.built)
