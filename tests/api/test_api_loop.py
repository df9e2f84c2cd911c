"""The loop as a runtime drives it: run, assemble, respond, report, prove."""

from __future__ import annotations

import base64
import json
from typing import Any
from uuid import uuid4

import pytest

from tests.api.door import MODEL, Door, as_messages

CHAT = {"provider": "openai", "name": "gpt-5.4"}


RESPONSES = {"provider": "openai-responses", "name": "gpt-5.4"}


def test_the_smallest_loop_works_and_its_requests_prove(door: Door) -> None:
    session = door.open()
    run = door.run(session, "Weather in Oslo?")
    first = door.assemble(run)
    assert set(first) == {
        "request_id",
        "request",
        "prefix_sha256",
        "wire_prefix_sha256",
        "request_sha256",
        "manifest",
        "budget",
        "cache",
    }
    assert first["request"]["messages"][-1]["role"] == "user"
    answer = door.calls(run, ("w1", "weather", {"city": "Oslo"}))
    assert answer == {
        "calls": [
            {"id": "w1", "name": "weather", "action": "execute", "arguments": {"city": "Oslo"}}
        ],
        "next": "tools",
    }
    assert door.results(run, ("w1", "-3 C")) == {"next": "assemble", "open_calls": []}
    second = door.assemble(run)
    assert second["prefix_sha256"] == first["prefix_sha256"]
    assert door.says(run, "Cold.")["next"] == "finish"
    for built in (first, second):
        replay = door.get(f"requests/{built['request_id']}/replay").ok()
        assert replay["identical"] is True
        assert replay["recorded_sha256"] == replay["rebuilt_sha256"] == built["request_sha256"]


@pytest.mark.parametrize("model", [MODEL, CHAT, RESPONSES], ids=["anthropic", "chat", "responses"])
def test_a_step_is_two_calls_when_the_next_request_is_asked_for_with_the_answer(
    door: Door, model: dict[str, str]
) -> None:
    run = door.run(door.open(model=model), "Weather in Oslo?")
    first = door.assemble(run)
    waiting = door.calls(run, ("w1", "weather", {"city": "Oslo"}), assemble=True)
    assert waiting["next"] == "tools"
    assert "assembled" not in waiting
    told = door.results(run, ("w1", "-3 C"), assemble=True)
    assert told["next"] == "assemble"
    assert told["assembled"]["request_id"] != first["request_id"]
    assert door.assemble(run) == told["assembled"]
    assert door.replays(told["assembled"]["request_id"])


def test_a_control_call_is_answered_on_the_spot(door: Door) -> None:
    run = door.run(door.open(), "A message worth reading again")
    door.assemble(run)
    answer = door.calls(run, ("r1", "recall", {"id": "3.0"}), assemble=True)
    assert answer["next"] == "redo"
    assert answer["calls"][0]["action"] == "answered"
    assert "worth reading again" in answer["calls"][0]["result"]
    assert "arguments" not in answer["calls"][0]
    assert "r1" in json.dumps(as_messages(answer["assembled"]["request"]))


def test_several_results_may_come_one_by_one(door: Door) -> None:
    run = door.run(door.open())
    door.assemble(run)
    door.calls(run, ("a", "weather", {}), ("b", "weather", {}))
    half = door.results(run, ("b", "2"), assemble=True)
    assert half == {"next": "tools", "open_calls": ["a"]}
    assert door.post(f"runs/{run}/assemble").code == "calls_pending"
    assert "assembled" in door.results(run, ("a", "1"), assemble=True)


def test_assembling_again_with_nothing_new_gives_the_same_bytes(door: Door) -> None:
    run = door.run(door.open(), now="2026-03-28T22:59:30Z", timezone="Europe/Oslo")
    recall = [{"text": "Likes rain.", "id": "m1", "score": 0.5}]
    first = door.send("POST", f"runs/{run}/assemble", {"recall": recall})
    again = door.send("POST", f"runs/{run}/assemble", {"now": "2027-01-01T00:00:00Z"})
    assert first.ok() == again.ok()
    assert first.raw == again.raw


def test_what_the_answer_holds_is_what_the_body_endpoint_rebuilds(door: Door) -> None:
    run = door.run(door.open(), "Grüße 🎉")
    answer = door.post(f"runs/{run}/assemble")
    body = door.get(f"requests/{answer.ok()['request_id']}/body")
    assert body.status == 200
    assert b'"request":' + body.raw + b',"prefix_sha256":' in answer.raw


def test_a_delta_applied_to_its_base_is_the_request(door: Door) -> None:
    session = door.open()
    run = door.run(session, "One")
    base = door.assemble(run)
    door.calls(run, ("w1", "weather", {}))
    door.results(run, ("w1", "x"))
    middle = door.assemble(run)
    door.calls(run, ("w2", "weather", {}))
    door.results(run, ("w2", "y"))
    unknown = door.assemble(run, base_request_id=str(uuid4()))
    whole = json.loads(door.get(f"requests/{unknown['request_id']}/body").raw)
    assert unknown["request"] == whole
    for known in (base, middle):
        answer = door.assemble(run, base_request_id=known["request_id"])
        assert "request" not in answer
        delta = answer["delta"]
        changed = {
            name: value
            for name, value in delta.items()
            if name not in {"keep", "messages", "base_sha256", "sha256", "removed"}
        }
        kept = known["request"]["messages"][: delta["keep"]]
        applied = {**known["request"], **changed, "messages": kept + delta["messages"]}
        assert applied == whole


@pytest.mark.parametrize(
    ("model", "response"),
    [
        (
            MODEL,
            {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": "claude",
                "content": [
                    {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Oslo"}}
                ],
                "stop_reason": "tool_use",
                "usage": {"input_tokens": 10, "output_tokens": 5},
            },
        ),
        (
            CHAT,
            {
                "id": "chatcmpl-1",
                "object": "chat.completion",
                "choices": [
                    {
                        "index": 0,
                        "finish_reason": "tool_calls",
                        "message": {
                            "role": "assistant",
                            "content": None,
                            "tool_calls": [
                                {
                                    "id": "c1",
                                    "type": "function",
                                    "function": {"name": "weather", "arguments": '{"city":"Oslo"}'},
                                }
                            ],
                        },
                    }
                ],
                "usage": {"prompt_tokens": 10, "completion_tokens": 5},
            },
        ),
        (
            RESPONSES,
            {
                "id": "resp_1",
                "object": "response",
                "status": "completed",
                "output": [
                    {
                        "type": "function_call",
                        "id": "fc_1",
                        "call_id": "c1",
                        "name": "weather",
                        "arguments": '{"city":"Oslo"}',
                    }
                ],
                "usage": {"input_tokens": 10, "output_tokens": 5},
            },
        ),
    ],
    ids=["anthropic", "chat", "responses"],
)
def test_a_whole_provider_response_is_taken_as_it_is(
    door: Door, model: dict[str, str], response: dict[str, Any]
) -> None:
    run = door.run(door.open(model=model))
    request = door.assemble(run)["request_id"]
    answer = door.post(
        f"runs/{run}/responses", {"request_id": request, "response": response, "latency_ms": 812}
    ).ok()
    assert answer["calls"] == [
        {"id": "c1", "name": "weather", "action": "execute", "arguments": {"city": "Oslo"}}
    ]
    facts = door.get(f"requests/{request}").ok()
    assert facts["status"] == "answered"
    assert facts["usage"]["output"] == 5
    door.results(run, ("c1", "ok"))
    assert door.assemble(run)["request"]


def test_call_arguments_reach_the_runtime_exactly_as_the_model_wrote_them(door: Door) -> None:
    run = door.run(door.open())
    door.assemble(run)
    arguments = '{ "b":1.0, "a":12345678901234567890123, "a": "\\u0000", "e":1E400 }'
    raw = (
        '{"response":{"content":[{"type":"tool_use","id":"w1","name":"weather","input":'
        + arguments
        + '}],"stop_reason":"tool_use"}}'
    )
    answer = door.send("POST", f"runs/{run}/responses", raw=raw.encode())
    assert answer.status == 200
    assert f'"arguments":{arguments}'.encode() in answer.raw


def test_a_reported_error_says_whether_to_assemble_again(door: Door) -> None:
    run = door.run(door.open())
    request = door.assemble(run)["request_id"]
    busy = door.post(
        f"runs/{run}/responses",
        {
            "request_id": request,
            "error": {
                "status": 400,
                "body": {"error": {"type": "invalid_request_error", "message": "x"}},
            },
        },
    ).ok()
    assert busy["next"] in {"reassemble", "fail"}
    assert busy["code"]
    assert door.get(f"requests/{request}").ok()["status"] == "failed"


def test_an_answer_to_a_superseded_request_is_refused(door: Door) -> None:
    run = door.run(door.open())
    old = door.assemble(run)["request_id"]
    response = {"content": [{"type": "text", "text": "x"}], "stop_reason": "end_turn"}
    assert door.post(f"runs/{run}/input", {"message": "And Rome?"}).ok()["next"] == "assemble"
    new = door.assemble(run)["request_id"]
    assert new != old
    answer = door.post(f"runs/{run}/responses", {"request_id": old, "response": response})
    assert (answer.status, answer.code) == (409, "stale_request")
    assert answer.json["latest"] == new
    assert door.post(f"runs/{run}/responses", {"request_id": new, "response": response}).ok()


def test_input_that_came_while_the_model_answered_is_still_to_be_answered(door: Door) -> None:
    run = door.run(door.open())
    request = door.assemble(run)["request_id"]
    door.post(f"runs/{run}/input", {"message": "And Rome?"}).ok()
    response = {"content": [{"type": "text", "text": "x"}], "stop_reason": "end_turn"}
    body = {"request_id": request, "response": response, "assemble": True}
    answer = door.post(f"runs/{run}/responses", body).ok()
    assert answer["next"] == "redo"
    assert "And Rome?" in json.dumps(as_messages(answer["assembled"]["request"]))


def test_late_input_stands_in_the_next_request(door: Door) -> None:
    run = door.run(door.open(), "Oslo?")
    door.assemble(run)
    told = door.post(f"runs/{run}/input", {"message": "And Rome?", "assemble": True}).ok()
    assert told["next"] == "assemble"
    assert "And Rome?" in json.dumps(as_messages(told["assembled"]["request"]))


@pytest.mark.parametrize(
    ("result", "code"),
    [
        ({"call_id": "nobody", "content": "x"}, "unknown_call"),
        ({"call_id": "a\u0000", "content": "x"}, "unknown_call"),
        ({"call_id": "w1", "content": "x", "trust": "PLATFORM"}, "trust_above_ceiling"),
        ({"call_id": "w1", "content": [{"type": "text"}]}, "invalid_content"),
        ({"call_id": "w1", "content": "x", "retain": "always"}, "invalid_field"),
    ],
)
def test_a_report_that_cannot_be_taken_changes_nothing(
    door: Door, result: dict[str, Any], code: str
) -> None:
    session = door.open()
    run = door.run(session)
    door.assemble(run)
    door.calls(run, ("w1", "weather", {}), ("w2", "weather", {}))
    before = door.events(session)
    good = {"call_id": "w2", "content": "fine"}
    answer = door.post(f"runs/{run}/tool-results", {"results": [good, result]})
    assert (answer.status, answer.code) == (422, code)
    assert door.events(session) == before


def test_trust_within_the_ceiling_is_kept(door: Door) -> None:
    session = door.open(tools=[{"name": "db", "result_trust": "MEMORY"}])
    run = door.run(session)
    door.assemble(run)
    door.calls(run, ("d1", "db", {}))
    result = {
        "call_id": "d1",
        "content": "x",
        "trust": "MEMORY",
        "retain": "objective",
        "operation_id": "op",
    }
    door.post(f"runs/{run}/tool-results", {"results": [result]}).ok()
    newest = door.events(session, "type=tool.result.received")[-1]
    assert newest["trust"] == "MEMORY"
    assert newest["payload"]["operation_id"] == "op"


def test_blocks_in_messages_and_results_keep_their_text(door: Door) -> None:
    session = door.open()
    blocks = '[{"type":"text", "text":"one"},{"text":"two","type":"text"}]'
    body = f'{{"message":{blocks}}}'
    run = door.send("POST", f"sessions/{session}/runs", raw=body.encode()).ok()["id"]
    request = door.assemble(run)["request"]
    assert [b["text"] for b in request["messages"][0]["content"]][-2:] == ["one", "two"]
    event = door.events(session, "bodies=1&type=user.message.created")[0]
    assert base64.b64decode(event["body"]["raw_base64"]).decode() == blocks


def test_the_difference_of_two_requests_names_byte_row_and_event(door: Door) -> None:
    session = door.open()
    run = door.run(session, "One")
    a = door.assemble(run)["request_id"]
    door.calls(run, ("w1", "weather", {}))
    door.results(run, ("w1", "x"))
    b = door.assemble(run)["request_id"]
    diff = door.get(f"requests/{a}/diff/{b}").ok()
    assert (diff["a"], diff["b"], diff["same_session"]) == (a, b, True)
    assert diff["same_prefix_bytes"] > 0
    assert diff["first_changed"]["row"]
    assert diff["first_changed"]["event_sequence"]
    assert len(diff["rows"]) == 15
    same = door.get(f"requests/{a}/diff/{a}").ok()
    assert same["first_changed"] is None


def test_what_never_yields_and_does_not_fit_is_refused_once_and_stays_refused(door: Door) -> None:
    session = door.open(model={**MODEL, "window": 16_000, "max_output": 1000})
    run = door.run(session, "word " * 40_000)
    answers = [door.post(f"runs/{run}/assemble") for _ in range(2)]
    assert {(a.status, a.code) for a in answers} == {(409, "budget_exceeded")}
    assert answers[0].raw == answers[1].raw
    assert len(door.events(session, "type=context.budget.exceeded")) == 1


def test_a_refused_assembly_does_not_lose_what_was_reported_with_it(door: Door) -> None:
    session = door.open(model={**MODEL, "window": 16_000, "max_output": 1000})
    run = door.run(session, "Hello")
    door.assemble(run)
    told = door.post(f"runs/{run}/input", {"message": "word " * 40_000, "assemble": True})
    assert told.status == 200
    assert told.json["next"] == "assemble"
    assert told.json["assemble_problem"]["code"] == "budget_exceeded"
    assert len(door.events(session, "type=run.input.received")) == 1
