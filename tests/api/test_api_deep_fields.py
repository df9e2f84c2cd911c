"""A value nested as deep as the door reads, at any place of any body, is taken or refused, and fails nothing (design 5)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from ctxengine.engine.lexeme import MAX_DEPTH
from tests.api.door import MODEL, WEATHER, Door

HOLE = "__deep__"
OPENAI = {"provider": "openai", "name": "gpt-5.4"}
AGENT = {"name": "deep", "version": "1", "instructions": "Help."}
CARD = {"name": "emit_odd", "description": "Shows.", "presentation": "odd.kind"}
SESSION = {
    "engine": "working_set",
    "model": MODEL,
    "agent": AGENT,
    "tools": [{**WEATHER, "output_schema": {"type": "object"}, "required_scopes": ["a"]}, CARD],
    "principal": {"id": "p", "scopes": ["a"]},
    "persona": ["kind"],
    "skills": [{"name": "s", "description": "d", "body": "b"}],
    "snapshot": {"trace_id": "t", "watermark": 1, "items": ["x"]},
    "policy": {"caps": {"tools": 1000}, "guards": "on"},
    "environment": {"os": "linux"},
}
TEXT = {"type": "text", "text": "Hello."}
RUN = {
    "message": [TEXT, {"type": "image", "source": {"type": "base64", "data": ""}}],
    "reading": {"act": "answer", "domains": ["web"], "entities": ["x"]},
    "scopes": ["a"],
}
LINE = {"text": "x", "id": "m1", "score": 0.5}
ASSEMBLE = {
    "recall": [LINE],
    "corrections": [LINE],
    "knowledge": [LINE],
    "legs": [{"model": MODEL}],
}
RESPONSE = {
    "response": {
        "content": [TEXT, {"type": "thinking", "thinking": "x", "signature": "y"}],
        "stop_reason": "end_turn",
        "model": "m",
        "id": "r",
    },
    "usage": {"input_tokens": 3, "cache_creation": {"ephemeral_5m_input_tokens": 1}},
}
REFUSED = {"error": {"status": 400, "body": {"error": {"type": "x", "message": "y"}}}}
RESULTS = {"results": [{"call_id": "c1", "content": [TEXT], "operation_id": "o"}]}
AUTHORITY = {"scopes": ["a"]}
STATE = {"remove_constraints": ["c1"], "add_constraints": ["x"]}
KINDS = ("objects", "arrays", "mixed")


def deep(depth: int, kind: str) -> str:
    """A value of that depth."""
    if kind == "arrays":
        return "[" * depth + "1" + "]" * depth
    if kind == "objects":
        return '{"properties":' * depth + "1" + "}" * depth
    pairs, odd = divmod(depth, 2)
    return "[" * odd + '{"tools":[' * pairs + "1" + "]}" * pairs + "]" * odd


def holes(body: Any, depth: int = 0) -> Iterator[tuple[Any, int]]:
    """The body with one place left open, for every place of it and once more in each object; and how deep that lies."""
    yield HOLE, depth
    if isinstance(body, dict):
        for name, value in body.items():
            for changed, at in holes(value, depth + 1):
                yield {**body, name: changed}, at
        yield {**body, "odd": HOLE}, depth + 1
    if isinstance(body, list):
        for place, value in enumerate(body):
            for changed, at in holes(value, depth + 1):
                yield [*body[:place], changed, *body[place + 1 :]], at


def bodies(body: Any, kind: str) -> Iterator[bytes]:
    """The body with the deepest value that the door reads at each of its places."""
    for changed, at in holes(body):
        text = json.dumps(changed).replace(f'"{HOLE}"', deep(MAX_DEPTH - at, kind))
        yield text.encode()


def sent(door: Door, path: str, body: Any, kind: str, method: str = "POST") -> set[int]:
    """Statuses of all of them."""
    statuses = set()
    for raw in bodies(body, kind):
        answer = door.send(method, path, raw=raw)
        assert answer.status < 500, (path, raw[:300], answer.raw[:300])
        statuses.add(answer.status)
    return statuses


@pytest.mark.parametrize("kind", KINDS)
def test_sessions(door: Door, kind: str) -> None:
    assert sent(door, "sessions", SESSION, kind) >= {400}


@pytest.mark.parametrize("kind", ["properties", "items", "anyOf", "enum", "default"])
def test_a_schema_is_taken_as_deep_as_it_is_read(door: Door, kind: str) -> None:
    """Down to the depth at which the whole body can still be read; in a body of its own a schema stands four levels deep."""
    opens, closes = {
        "properties": ('{"properties":{"a":', "}}"),
        "items": ('{"type":"array","items":', "}"),
        "anyOf": ('{"anyOf":[', "]}"),
        "enum": ('{"enum":[', "]}"),
        "default": ('{"default":{"a":', "}}"),
    }[kind]
    per = opens.count("{") + opens.count("[")
    levels = (MAX_DEPTH - 6) // per
    schema = '{"type":"object","properties":{"x":' + opens * levels + "{}" + closes * levels + "}}"
    tool = {**WEATHER, "input_schema": HOLE}
    for model in (MODEL, OPENAI):
        text = json.dumps({"model": model, "agent": {**AGENT, "name": kind}, "tools": [tool]})
        answer = door.post("sessions", raw=text.replace(f'"{HOLE}"', schema).encode())
        session = answer.ok()["id"]
        request = door.assemble(door.run(session))
        assert door.replays(request["request_id"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("engine", ["working_set", "suffix", "boundary"])
def test_the_loop(door: Door, kind: str, engine: str) -> None:
    session = door.open(engine=engine, tools=[WEATHER, CARD])
    for raw in bodies(RUN, kind):
        answer = door.post(f"sessions/{session}/runs", raw=raw)
        assert answer.status < 500, (raw[:300], answer.raw[:300])
        if answer.status == 201:
            door.post(f"runs/{answer.json['id']}/assemble", {}).ok()
            door.post(f"runs/{answer.json['id']}/end", {"outcome": "cancelled"}).ok()
    run = door.run(session)
    sent(door, f"runs/{run}/assemble", ASSEMBLE, kind)
    for body in (RESPONSE, REFUSED):
        for raw in bodies(body, kind):
            door.assemble(run)
            answer = door.post(f"runs/{run}/responses", raw=raw)
            assert answer.status < 500, (raw[:300], answer.raw[:300])
            if answer.status == 200 and answer.json["next"] in {"finish", "fail"}:
                door.post(f"runs/{run}/end", {"outcome": "failed"})
                run = door.run(session)
    door.assemble(run)
    door.calls(run, ("c1", "weather", {"city": "x"}))
    sent(door, f"runs/{run}/tool-results", RESULTS, kind)
    sent(door, f"runs/{run}/input", {"message": [TEXT], "operation_id": "o"}, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_everything_else_that_is_written(door: Door, kind: str) -> None:
    session = door.open()
    sent(door, f"sessions/{session}/authority", AUTHORITY, kind, "PUT")
    sent(door, f"sessions/{session}/working-state", STATE, kind, "PATCH")
    sent(door, f"sessions/{session}/epochs", {"reason": "operator", "note": "x"}, kind)
    sent(door, f"sessions/{session}/compactions", {"preview": True, "note": "x"}, kind)
    sent(door, f"sessions/{session}/reset", {"handoff": "x", "note": "y"}, kind)
    sent(door, f"sessions/{session}/presentation", {"target": "1.0", "form": "pinned"}, kind, "PUT")
    sent(door, "personas/p", {"lines": ["x"], "revision": 0}, kind, "PUT")
    sent(door, "capacity-profiles", {"provider": "openai", "model": "x"}, kind)
    sent(door, "replays", {"session_id": session, "models": [MODEL], "engines": ["suffix"]}, kind)
