"""Development cases on reasoning: dev-06 and dev-07 a and c. Opaque blocks are replayed in their run and kept nowhere."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from ctxengine.engine.events import EventType
from ctxengine.engine.wire.base import WireApi
from ctxengine.engine.wire.rules import violations
from ctxengine.ledger.models import Body, Checkpoint
from ctxengine.service.end_run import end_run
from ctxengine.service.import_transcript import import_file
from ctxengine.service.prove import replay_request
from ctxengine.service.specs import EndRun, PolicySpec
from tests.canary import tables_with
from tests.cast import Runtime, new_actor, tool
from tests.reading import seen
from tests.service.conftest import Case

pytestmark = pytest.mark.django_db

# --- dev-06: a reasoning item and the item it belongs to ---------------------------------------------------------------

OWN_06 = {
    "run_1_items": [
        {"role": "user", "content": "Ship it."},
        {"type": "reasoning", "id": "rs_9", "summary": [], "encrypted_content": "VEILED1"},
        {"type": "function_call", "id": "fc_9", "call_id": "c9", "name": "deploy", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c9", "output": "in the queue"},
        {"type": "reasoning", "id": "rs_10", "summary": [], "encrypted_content": "VEILED2"},
        {"type": "message", "id": "msg_9", "role": "assistant",
         "content": [{"type": "output_text", "text": "It waits."}]},
    ],
}  # fmt: skip


def responded(*items: dict[str, Any]) -> str:
    return json.dumps({"id": "resp_1", "status": "completed", "output": list(items)})


def test_06_reasoning_stands_before_its_call_and_ends_with_its_run(
    case: Case, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    asked, thought, call, output, second, message = case("06", OWN_06)["run_1_items"]
    runtime = Runtime(provider="openai-responses", tools=(tool("deploy"),))
    runtime.ask(asked["content"])
    runtime.assemble()
    runtime.hear(responded(thought, call))
    runtime.results((call["call_id"], output["output"]))
    body = runtime.assemble().body
    items = json.loads(body)["input"]
    place = next(n for n, item in enumerate(items) if item.get("type") == "reasoning")
    assert items[place] == thought
    assert json.dumps(thought) in body.decode()
    assert items[place + 1]["type"] == "function_call"
    assert items[place + 1]["id"] == call["id"]

    runtime.hear(responded(second, message))
    runtime.ask("Is it live?")
    later = runtime.assemble().body.decode()
    found = json.loads(later)["input"]
    assert not any(item.get("type") == "reasoning" for item in found)
    assert not any(str(item.get("id", "")).startswith(("rs_", "msg_", "fc_")) for item in found)
    assert {"call", "result", "assistant"} <= {entry.what for entry in seen(later.encode())}
    for secret in (thought["encrypted_content"], second["encrypted_content"]):
        assert tables_with(secret) == []
        assert secret not in later
        assert secret not in caplog.text


def test_06_reasoning_without_its_follower_is_refused_before_sending(case: Case) -> None:
    asked, thought, *_ = case("06", OWN_06)["run_1_items"]
    runtime = Runtime(provider="openai-responses", tools=(tool("deploy"),))
    runtime.ask(asked["content"])
    body = json.loads(runtime.assemble().body)
    body["input"].append(thought)
    assert violations(WireApi.OPENAI_RESPONSES, json.dumps(body).encode())
    lonely = body["input"]
    lonely[-1:] = [thought, {"role": "user", "content": "Go on."}]
    assert violations(WireApi.OPENAI_RESPONSES, json.dumps(body).encode())


def test_06_an_import_keeps_no_reasoning_in_the_clear(case: Case) -> None:
    items = case("06", OWN_06)["run_1_items"]
    data = json.dumps(items).encode()
    outcome = import_file(actor=new_actor(), name="items.json", data=data)
    assert (outcome.status, outcome.format) == ("imported", "openai_responses")
    assert outcome.items_in == outcome.items_kept + outcome.items_set_aside
    secrets = [item["encrypted_content"] for item in items if item.get("type") == "reasoning"]
    assert len(secrets) == 2
    for secret in secrets:
        assert tables_with(secret) == []


# --- dev-07: signed thinking ------------------------------------------------------------------------------------------

OWN_07 = {
    "messages": [
        {"role": "user", "content": "Look at the log."},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "The log may be long.", "signature": "ABC123=="},
            {"type": "redacted_thinking", "data": "HIDDEN=="},
            {"type": "tool_use", "id": "u1", "name": "sh", "input": {"cmd": "cat log"}},
        ]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "u1", "content": "fine"}]},
    ]
}  # fmt: skip


def thinking(case: Case) -> tuple[str, list[dict[str, Any]], str, str]:
    asked, reply, answered = case("07", OWN_07)["messages"]
    (result,) = answered["content"]
    return asked["content"], reply["content"], result["tool_use_id"], result["content"]


def anthropic(blocks: list[dict[str, Any]]) -> str:
    return json.dumps(
        {"type": "message", "role": "assistant", "content": blocks, "stop_reason": "tool_use"}
    )


def thinking_of(body: bytes) -> list[tuple[int, str]]:
    """(place, kind) of every block of the last assistant message that thinks, else of the last one."""
    turns = [m["content"] for m in json.loads(body)["messages"] if m["role"] == "assistant"]
    thoughtful = [blocks for blocks in turns if blocks[0]["type"] == "thinking"]
    return [(place, block["type"]) for place, block in enumerate((thoughtful or turns)[-1])]


def test_07a_both_blocks_go_back_byte_for_byte_in_place(case: Case) -> None:
    question, blocks, call_id, result = thinking(case)
    runtime = Runtime(tools=(tool("sh"),))
    runtime.ask(question)
    runtime.assemble()
    assert runtime.hear(anthropic(blocks)).next == "tools"
    runtime.results((call_id, result))
    body = runtime.assemble().body
    for block in blocks[:2]:
        assert json.dumps(block) in body.decode()
    assert thinking_of(body) == [(0, "thinking"), (1, "redacted_thinking"), (2, "tool_use")]
    for secret in (blocks[0]["thinking"], blocks[0]["signature"], blocks[1]["data"]):
        assert tables_with(secret) == []
    kept = Checkpoint.objects.get(session_id=runtime.session)
    assert blocks[0]["signature"].encode() not in bytes(kept.opaque or b"")


def test_07c_pressure_shortens_results_and_never_touches_the_blocks(case: Case) -> None:
    question, blocks, call_id, result = thinking(case)
    runtime = Runtime(
        tools=(tool("sh"),), window=5_000, policy=PolicySpec(reserve=800, history_floor=300)
    )
    runtime.turn("Before?", "words " * 400)
    runtime.ask(question)
    runtime.assemble()
    runtime.hear(anthropic(blocks))
    runtime.results((call_id, result + "\n" + "noise " * 1_250))
    runtime.look("later", "noise " * 1_250, "sh")
    body = runtime.assemble().body
    assert "[elided] tool result" in body.decode()
    for block in blocks[:2]:
        assert json.dumps(block) in body.decode()
    assert thinking_of(body) == [(0, "thinking"), (1, "redacted_thinking"), (2, "tool_use")]
    assert runtime.events(EventType.YIELD_APPLIED)
    replay = replay_request(actor=runtime.actor, request_id=runtime.requests[-1].id)
    assert replay.verdict == "identical"


def test_07_at_the_end_of_the_run_the_pair_stays_and_the_blocks_leave(case: Case) -> None:
    question, blocks, call_id, result = thinking(case)
    runtime = Runtime(tools=(tool("sh"),))
    runtime.ask(question)
    runtime.assemble()
    runtime.hear(anthropic(blocks))
    runtime.results((call_id, result))
    end_run(actor=runtime.actor, run_id=runtime.run, spec=EndRun(outcome="cancelled"))
    runtime.ask("And?")
    body = runtime.assemble().body
    assert thinking_of(body) == [(0, "tool_use")]
    assert [entry.id for entry in seen(body) if entry.what == "result"] == [call_id]
    bodies = [bytes(row.data) for row in Body.objects.filter(session_id=runtime.session)]
    assert not any(b"thinking" in data for data in bodies)
