"""Cases dev-03 to dev-06 through the REST door: pairs, ids, empty results, reasoning."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from ctxengine.engine.wire.base import WireApi
from tests.api.case_files import (
    MODELS,
    RESPONSES,
    call_ids,
    case,
    checked,
    events_of,
    every_text,
    result_texts,
    said_texts,
    tool_calls,
)
from tests.api.door import Door

pytestmark = pytest.mark.corpus
apis = pytest.mark.parametrize("api", list(WireApi), ids=lambda api: api.value)


@apis
def test_dev_03_parallel_results_come_back_together_and_in_call_order(
    door: Door, cases_folder: Path, api: WireApi
) -> None:
    given = case(cases_folder, "dev-03")
    session = door.open(model=MODELS[api])
    run = door.run(session, events_of(given, "user")[0]["text"])
    door.assemble(run)
    (step,) = events_of(given, "assistant_step")
    door.says(run, *tool_calls(*step["calls"]), stop="tool_use")
    late, last = events_of(given, "tool_result")
    assert "assembled" not in door.results(run, (late["call_id"], late["text"]), assemble=True)
    told = door.results(run, (last["call_id"], last["text"]), assemble=True)
    body = checked(door, api, told["assembled"]["request_id"])
    assert call_ids(api, body) == ["w1", "w2"]
    answers = result_texts(api, body)
    assert [call for call, _ in answers] == ["w1", "w2"]
    assert ["3 C" in answers[0][1], "21 C" in answers[1][1]] == [True, True]
    if api is WireApi.ANTHROPIC:
        step_at = next(i for i, m in enumerate(body["messages"]) if m["role"] == "assistant")
        after = body["messages"][step_at + 1 :]
        assert [message["role"] for message in after] == ["user"]
        assert [block["type"] for block in after[0]["content"]][:2] == ["tool_result"] * 2
        assert "tool_result" not in [block["type"] for block in after[0]["content"]][2:]
    if api is WireApi.OPENAI_CHAT:
        roles = [message["role"] for message in body["messages"]]
        at = roles.index("assistant")
        assert roles[at + 1 : at + 3] == ["tool", "tool"]


def imported(door: Door, given: Any, name: str) -> str:
    answer = door.send("POST", f"imports?name={name}", raw=json.dumps(given["messages"]).encode())
    (session,) = answer.ok()["import"]["sessions"]
    return str(session)


def items_of(door: Door, session: str) -> list[Any]:
    """Every item of a session, in order."""
    items = []
    for event in door.events(session):
        for ordinal in range(20):
            answer = door.get(f"sessions/{session}/items/{event['sequence']}.{ordinal}")
            if answer.status == 404:
                break
            items.append(answer.json)
    return items


def test_dev_04_an_id_used_twice_is_two_calls_in_an_import(door: Door, cases_folder: Path) -> None:
    given = case(cases_folder, "dev-04")
    session = imported(door, given, "dev-04.json")
    items = items_of(door, session)
    calls = [item for item in items if item["kind"] == "tool_call"]
    results = {
        item["wire_call_id"]: item["text"] for item in items if item["kind"] == "tool_result"
    }
    assert [call["call_id"] for call in calls] == ["look:0", "look:0"]
    assert [(json.loads(c["arguments"])["dir"], results[c["wire_call_id"]]) for c in calls] == [
        ("/srv", "shop wiki"),
        ("/var", "log tmp"),
    ]
    for line in door.get(f"sessions/{session}/requests").ok()["items"]:
        ids = call_ids(WireApi.OPENAI_CHAT, checked(door, WireApi.OPENAI_CHAT, line["id"]))
        assert len(set(ids)) == len(ids)
        twice = [door.get(f"requests/{line['id']}/body").raw for _ in range(2)]
        assert twice[0] == twice[1]
    count = len(door.events(session))
    again = door.send("POST", "imports?name=x", raw=json.dumps(given["messages"]).encode())
    assert again.ok()["outcome"] == "unchanged"
    assert len(door.events(session)) == count


@apis
def test_dev_04_an_id_used_twice_is_two_calls_in_a_live_session(
    door: Door, cases_folder: Path, api: WireApi
) -> None:
    session = door.open(model=MODELS[api], tools=[{"name": "look"}])
    run = door.run(session, "What is in /srv and in /var?")
    for folder, found in (("/srv", "shop wiki"), ("/var", "log tmp")):
        door.assemble(run)
        answer = door.calls(run, ("look:0", "look", {"dir": folder}))
        assert answer["calls"][0]["action"] == "execute"
        door.results(run, (answer["calls"][0]["id"], found))
    body = checked(door, api, door.assemble(run)["request_id"])
    ids = call_ids(api, body)
    assert len(set(ids)) == 2
    answers = dict(result_texts(api, body))
    assert "shop wiki" in answers[ids[0]]
    assert "log tmp" in answers[ids[1]]


@apis
def test_dev_05_an_empty_result_keeps_its_pair(
    door: Door, cases_folder: Path, api: WireApi
) -> None:
    given = case(cases_folder, "dev-05")
    user, assistant, tool, last = given["messages"]
    session = door.open(model=MODELS[api], tools=[{"name": "sh"}])
    run = door.run(session, user["content"])
    door.assemble(run)
    choice = {"index": 0, "message": assistant, "finish_reason": "tool_calls"}
    taken = door.post(f"runs/{run}/responses", {"response": {"choices": [choice]}}).ok()
    assert [call["id"] for call in taken["calls"]] == ["m1"]
    door.results(run, (tool["tool_call_id"], tool["content"]))
    told = door.post(f"runs/{run}/input", {"message": last["content"], "assemble": True}).ok()
    body = checked(door, api, told["assembled"]["request_id"])
    ((answered, text),) = result_texts(api, body)
    assert (call_ids(api, body), answered) == (["m1"], "m1")
    inner = text.splitlines()[1:-1]
    assert "".join(inner).strip()
    spoken = said_texts(body)
    assert last["content"] in spoken
    assert all(text.strip() for text in spoken)
    (result,) = [item for item in items_of(door, session) if item["kind"] == "tool_result"]
    assert (result["characters"], result["text"], result["is_error"]) == (0, "", False)


def test_dev_05_an_empty_result_survives_an_import(door: Door, cases_folder: Path) -> None:
    session = imported(door, case(cases_folder, "dev-05"), "dev-05.json")
    items = items_of(door, session)
    assert [item["kind"] for item in items].count("tool_call") == 1
    (result,) = [item for item in items if item["kind"] == "tool_result"]
    assert (result["characters"], result["is_error"]) == (0, False)
    for line in door.get(f"sessions/{session}/requests").ok()["items"]:
        checked(door, WireApi.OPENAI_CHAT, line["id"])


def test_dev_06_reasoning_stands_before_its_item_and_stays_in_its_run(
    door: Door, cases_folder: Path
) -> None:
    given = case(cases_folder, "dev-06")
    user, first_thought, call, output, second_thought, message = given["run_1_items"]
    session = door.open(model=RESPONSES, tools=[{"name": "deploy"}])
    run = door.run(session, user["content"])
    door.assemble(run)
    raw = json.dumps(first_thought)
    response = f'{{"response":{{"output":[{raw},{json.dumps(call)}],"status":"completed"}}}}'
    door.send("POST", f"runs/{run}/responses", raw=response.encode()).ok()
    door.results(run, (output["call_id"], output["output"]))
    a = door.assemble(run)
    sent = door.get(f"requests/{a['request_id']}/body").raw
    assert raw.encode() in sent
    items = checked(door, WireApi.OPENAI_RESPONSES, a["request_id"])["input"]
    place = next(i for i, item in enumerate(items) if item.get("type") == "reasoning")
    assert items[place] == first_thought
    assert (items[place + 1]["type"], items[place + 1]["call_id"]) == ("function_call", "call_1")

    final = {"output": [second_thought, message], "status": "completed"}
    assert door.post(f"runs/{run}/responses", {"response": final}).ok()["next"] == "finish"
    b = door.assemble(door.run(session, "Is it live?"))
    body = checked(door, WireApi.OPENAI_RESPONSES, b["request_id"])
    assert "reasoning" not in [item.get("type") for item in body["input"]]
    ids = [text for item in body["input"] for text in [item.get("id", "")]]
    assert not any(text.startswith(("rs_", "msg_")) for text in ids)
    kinds = [item.get("type") for item in body["input"]]
    assert "function_call" in kinds
    assert "function_call_output" in kinds
    assert any("It is queued." in text for text in every_text(body["input"]))

    seen = json.dumps(door.events(session, "bodies=1"))
    bodies = [
        base64.b64decode(event["body"]["raw_base64"])
        for event in door.events(session, "bodies=1")
        if event["body"]
    ]
    for secret in ("OPAQUE1", "OPAQUE2"):
        assert secret not in seen
        assert not any(secret.encode() in body for body in bodies)
