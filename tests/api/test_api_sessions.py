"""Sessions and runs over REST: what they are opened with, their epochs, and how they end."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest

from tests.api.door import MODEL, Door


def test_ending_a_run_twice_tells_the_same_outcome(door: Door) -> None:
    session = door.open()
    run = door.run(session)
    ended = {"state": "ended", "outcome": "cancelled"}
    assert door.post(f"runs/{run}/end", {"outcome": "cancelled"}).ok() == ended
    assert door.post(f"runs/{run}/end", {"outcome": "failed"}).ok() == ended
    for path, body in (
        ("assemble", {}),
        ("input", {"message": "x"}),
        ("responses", {"response": {"content": []}}),
        ("tool-results", {"results": [{"call_id": "a", "content": "b"}]}),
    ):
        answer = door.post(f"runs/{run}/{path}", body)
        assert (answer.status, answer.code) == (409, "run_ended"), path
    assert door.run(session, "Next")


def test_an_ended_session_takes_no_run(door: Door) -> None:
    session = door.open()
    door.run(session)
    assert door.post(f"sessions/{session}/end").ok() == {"state": "ended"}
    answer = door.post(f"sessions/{session}/runs", {"message": "x"})
    assert (answer.status, answer.code) == (409, "session_ended")
    assert door.get(f"sessions/{session}").ok()["state"] == "ended"


def test_a_second_run_waits_for_the_first(door: Door) -> None:
    session = door.open()
    run = door.run(session)
    answer = door.post(f"sessions/{session}/runs", {"message": "x"})
    assert (answer.status, answer.code) == (409, "run_open")
    assert door.get(f"sessions/{session}").ok()["open_run"]["id"] == run


def test_an_epoch_is_rotated_with_a_reason_and_a_note(door: Door) -> None:
    session = door.open()
    rotated = door.post(f"sessions/{session}/epochs", {"reason": "operator", "note": "a try"})
    assert rotated.status == 201
    assert rotated.json["epoch"] == 2
    assert rotated.json["reasons"] == ["operator"]
    plans = door.get(f"sessions/{session}/plans").ok()["items"]
    assert [plan["epoch"] for plan in plans] == [2, 1]
    assert door.get(f"sessions/{session}/plans/1").ok()["epoch"] == 1
    current = door.get(f"sessions/{session}/plan").ok()
    assert current["epoch"] == 2
    assert "weather" in [tool["name"] for tool in current["tools"]]
    assert door.get(f"sessions/{session}/plans/3").code == "not_found"
    for body, code in (
        ({"reason": "operator"}, "reason_required"),
        ({"reason": "boredom", "note": "x"}, "unknown_reason"),
        ({"note": "x"}, "missing_field"),
        ({"reason": "operator", "note": "x" * 2001}, "invalid_field"),
    ):
        assert door.post(f"sessions/{session}/epochs", body).code == code


def test_an_agent_version_never_changes(door: Door) -> None:
    name = f"agent-{uuid4().hex}"
    agent = {"name": name, "version": "1", "instructions": "Be brief."}
    door.open(agent=agent)
    body = {"model": MODEL, "agent": {**agent, "instructions": "Be long."}}
    answer = door.post("sessions", body)
    assert (answer.status, answer.code) == (409, "agent_changed")
    assert door.open(agent={**agent, "version": "2", "instructions": "Be long."})


def test_a_plan_that_does_not_fit_names_the_class(door: Door) -> None:
    body = {
        "model": MODEL,
        "agent": {"name": f"big-{uuid4().hex}", "version": "1", "instructions": "word " * 9000},
    }
    answer = door.post("sessions", body)
    assert (answer.status, answer.code) == (422, "plan_overflow")
    assert answer.json["budget_class"] == "agent"
    assert answer.json["needed"] > answer.json["available"]


def test_a_parent_that_is_not_there_is_refused(door: Door) -> None:
    for occasion in ("interactive", "scheduled", "child"):
        body = {
            "model": MODEL,
            "agent": {"name": "a", "version": "1"},
            "occasion": occasion,
            "parent_run": str(uuid4()),
        }
        answer = door.post("sessions", body)
        assert (answer.status, answer.code) == (422, "invalid_parent")


def test_every_optional_field_of_a_session_is_taken(door: Door) -> None:
    parent = door.run(door.open())
    session = door.open(
        engine="suffix",
        title="Everything",
        principal={"id": "user-1", "scopes": ["a", "b"]},
        occasion="scheduled",
        parent_run=parent,
        persona=["Be kind.", "Be brief."],
        snapshot={"trace_id": "t", "watermark": 4, "items": ["Likes tea."]},
        policy={
            "policy_cap": 100000,
            "reserve": 2000,
            "margin": 0.1,
            "low_water": 0.5,
            "caps": {"agent": 3000},
        },
        environment={"os": "linux"},
        tools=[
            {
                "name": "read.file",
                "description": "Reads.",
                "input_schema": {"type": "object"},
                "output_schema": {"type": "object"},
                "required_scopes": ["a"],
                "side_effect": "workspace_read",
                "result_trust": "EXTERNAL_UNTRUSTED",
                "server": "files",
                "serves": ["x"],
                "always_loaded": True,
                "observes": ["y"],
                "deferred": False,
                "required": True,
                "model_visible": True,
                "presentation": "table",
            }
        ],
    )
    facts = door.get(f"sessions/{session}").ok()
    assert (facts["title"], facts["principal"], facts["occasion"]) == (
        "Everything",
        "user-1",
        "scheduled",
    )
    run = door.run(
        session, scopes=["a"], now="2026-03-28T22:59:30Z", timezone="Europe/Oslo", surface="chat"
    )
    request = door.assemble(
        run,
        recall=[{"text": "r"}],
        corrections=[{"text": "c", "id": "1"}],
        knowledge=[{"text": "k", "score": 1}],
    )["request"]
    text = json.dumps(request)
    assert "Be kind." in text
    assert "Likes tea." in text
    assert "23:59" in text
    assert [t["name"] for t in request["tools"]] == [
        "context_update_working_state",
        "read_file",
        "recall",
    ]


@pytest.mark.parametrize(
    "fields",
    [
        {"agent": {"name": "a", "version": "1", "instructions": "nul \u0000 here"}, "title": "t"},
        {"persona": ["nul \u0000"]},
        {"snapshot": {"items": ["nul \u0000"]}},
        {"tools": [{"name": "t", "description": "nul \u0000"}]},
        {"tools": [{"name": "Ünïcode tool/with spaces", "description": "🎉"}]},
    ],
)
def test_odd_characters_in_configuration_do_not_break_a_session(
    door: Door, fields: dict[str, Any]
) -> None:
    run = door.run(door.open(**fields))
    built = door.assemble(run)
    assert door.replays(built["request_id"])


@pytest.mark.parametrize("timezone", ["Mars/Olympus", "../../etc/passwd", "Europe", "x" * 300])
def test_a_zone_that_is_none_is_refused(door: Door, timezone: str) -> None:
    answer = door.post(f"sessions/{door.open()}/runs", {"message": "x", "timezone": timezone})
    assert (answer.status, answer.code) == (422, "invalid_timezone")


def test_an_empty_message_is_refused(door: Door) -> None:
    session = door.open()
    for message in ("", [], [{"type": "text", "text": ""}]):
        answer = door.post(f"sessions/{session}/runs", {"message": message})
        assert answer.status in {201, 422}
        if answer.status == 201:
            door.post(f"runs/{answer.json['id']}/end").ok()
