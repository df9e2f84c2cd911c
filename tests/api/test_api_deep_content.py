"""Whatever nesting the door takes, a session goes on: turns close, cards are listed, requests are proven (capacity spec 10)."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from ctxengine.engine.lexeme import MAX_DEPTH
from ctxengine.engine.presentations.payload import MAX_PAYLOAD_DEPTH
from tests.api.door import MODEL, WEATHER, Answer, Door

CARDS = [
    {
        "name": f"emit_{name}",
        "description": "Shows a card.",
        "input_schema": {"type": "object"},
        "presentation": type,
    }
    for name, type in (("metric", "metric"), ("table", "table"), ("odd", "odd.kind"))
]
OPENAI = {"provider": "openai", "name": "gpt-5.4"}
NUMBER = "29.10"


def nested(depth: int, kind: str) -> str:
    """An object of that depth; what is innermost is a text, a number and a member named as secrets are."""
    inner = f'{{"leaf":"harbour","figure":{NUMBER}}}'
    around = depth - 2
    if kind == "objects":
        return '{"columns":' + '{"a":' * around + inner + "}" * around + "}"
    if kind == "arrays":
        return '{"columns":' + "[" * around + inner + "]" * around + "}"
    pairs, odd = divmod(around, 2)
    return '{"columns":' + "[" * odd + '{"a":[' * pairs + inner + "]}" * pairs + "]" * odd + "}"


def said(model: dict[str, str], text: str, *calls: tuple[str, str, str]) -> bytes:
    """A report of a whole response body, written by hand: a value of that depth must not be built first."""
    if model is MODEL:
        blocks = [json.dumps({"type": "text", "text": text})] if text else []
        blocks += [
            f'{{"type":"tool_use","id":"{id}","name":"{name}","input":{arguments}}}'
            for id, name, arguments in calls
        ]
        stop = "tool_use" if calls else "end_turn"
        body = f'{{"content":[{",".join(blocks)}],"stop_reason":"{stop}"}}'
    else:
        message: dict[str, Any] = {"role": "assistant", "content": text or None}
        if calls:
            message["tool_calls"] = [
                {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
                for id, name, arguments in calls
            ]
        body = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]})
    return f'{{"response":{body}}}'.encode()


class Played:
    """One session over REST, whose every answer must be a good one."""

    def __init__(self, door: Door, engine: str, model: dict[str, str]) -> None:
        """Open it."""
        self.door, self.engine, self.model = door, engine, model
        self.session = door.open(engine=engine, model=model, tools=[WEATHER, *CARDS])
        self.run = ""
        self.requests: list[str] = []

    def ask(self, message: str) -> None:
        """Start a run."""
        self.run = self.door.run(self.session, message)

    def hears(self, text: str, *calls: tuple[str, str, str]) -> Answer:
        """One step: a request, and what the model answers."""
        self.requests.append(str(self.door.assemble(self.run)["request_id"]))
        return self.door.post(f"runs/{self.run}/responses", raw=said(self.model, text, *calls))

    def hears_deepest(self, tool: str, kind: str, most: int = MAX_DEPTH) -> Any:
        """One step whose call has the deepest arguments that the door takes; deeper ones are refused, not failed."""
        self.requests.append(str(self.door.assemble(self.run)["request_id"]))
        for depth in range(most, most - 10, -1):
            body = said(self.model, "", ("c1", tool, nested(depth, kind)))
            answer = self.door.post(f"runs/{self.run}/responses", raw=body)
            if answer.status == 200:
                return answer.ok()
            assert answer.code == "too_deep"
        raise AssertionError("The door takes far less than it says.")

    def goes_on(self, *, turns: int = 2) -> None:
        """The turn ends, others follow, and everything of the session can be read and proven."""
        self.hears("Done.").ok()
        self.ask("And what about the harbour?")
        self.hears("Nothing new.").ok()
        cards = self.door.get(f"sessions/{self.session}/cards").ok()
        assert [card["number"] for card in cards["items"]] == list(range(1, turns + 1))
        self.door.get(f"sessions/{self.session}/presentations").ok()
        for event in self.door.events(self.session):
            for item in event.get("items", ()):
                self.door.get(f"sessions/{self.session}/items/{item['id']}").ok()
                if event["type"] == "tool.result":
                    self.door.get(f"sessions/{self.session}/evidence/{item['id']}").ok()
        self.door.get(f"sessions/{self.session}/export").ok()
        assert all(self.door.replays(request) for request in self.requests)
        self.set_aside()
        self.ask("Once more?")
        self.hears("Nothing new again.").ok()
        assert self.door.replays(self.requests[-1])

    def set_aside(self) -> None:
        """What an operator does when a session grew long."""
        if self.engine == "working_set":
            self.door.post(f"sessions/{self.session}/reset", {}).ok()
        else:
            self.door.post(f"sessions/{self.session}/compactions", {"force": True}).ok()

    @property
    def shown(self) -> list[Any]:
        """The session's cards."""
        page = self.door.get(f"sessions/{self.session}/presentations").ok()
        return list(page["items"])


ENGINES = pytest.mark.parametrize("engine", ["working_set", "suffix"])
KINDS = pytest.mark.parametrize("kind", ["objects", "arrays", "mixed"])
MODELS = pytest.mark.parametrize("model", [MODEL, OPENAI], ids=["anthropic", "openai"])


@ENGINES
@KINDS
@MODELS
def test_arguments_and_results_as_deep_as_the_door_takes_bar_no_session(
    door: Door, engine: str, kind: str, model: dict[str, str]
) -> None:
    played = Played(door, engine, model)
    played.ask("Weather?")
    taken = played.hears_deepest("weather", kind)
    assert taken["calls"][0]["action"] == "execute"
    door.results(played.run, ("c1", nested(MAX_DEPTH, kind)))
    played.goes_on()


@ENGINES
@KINDS
@pytest.mark.parametrize("card", [tool["name"] for tool in CARDS])
def test_a_card_as_deep_as_a_card_may_be_is_shown_and_read_back(
    door: Door, engine: str, kind: str, card: str
) -> None:
    played = Played(door, engine, OPENAI)
    played.ask("Weather?")
    taken = played.hears_deepest(card, kind, MAX_PAYLOAD_DEPTH)
    assert json.loads(taken["calls"][0]["result"])["ok"]
    (shown,) = played.shown
    payload = base64.b64decode(shown["payload_base64"]).decode()
    assert NUMBER in payload and "harbour" in payload
    played.goes_on()


@ENGINES
@KINDS
@pytest.mark.parametrize("type", [tool["presentation"] for tool in CARDS])
def test_a_fence_as_deep_as_a_card_may_be_is_shown_and_read_back(
    door: Door, engine: str, kind: str, type: str
) -> None:
    played = Played(door, engine, MODEL)
    played.ask("Weather?")
    played.hears(
        f"Here:\n```card {type}\n{nested(MAX_PAYLOAD_DEPTH, kind)}\n```\nThat is all."
    ).ok()
    (shown,) = played.shown
    assert shown["origin"] == "fence"
    played.ask("And then?")
    played.goes_on(turns=3)


@ENGINES
def test_a_card_deeper_than_a_card_may_be_is_told_the_bound_and_its_own_depth(
    door: Door, engine: str
) -> None:
    played = Played(door, engine, OPENAI)
    played.ask("Weather?")
    taken = played.hears_deepest("emit_metric", "mixed")
    told = json.loads(taken["calls"][0]["result"])
    assert told["error"] == "card_too_deep"
    assert f"{MAX_PAYLOAD_DEPTH} levels" in told["detail"] and f"has {MAX_DEPTH}" in told["detail"]
    assert played.shown == []
    played.goes_on()


@ENGINES
@pytest.mark.parametrize("depth", [MAX_DEPTH, MAX_DEPTH + 1, 3 * MAX_DEPTH])
def test_a_fence_deeper_than_a_card_may_be_is_plain_text(
    door: Door, engine: str, depth: int
) -> None:
    played = Played(door, engine, MODEL)
    played.ask("Weather?")
    played.hears(f"```card metric\n{nested(depth, 'mixed')}\n```").ok()
    assert played.shown == []
    played.ask("And then?")
    played.goes_on(turns=3)
