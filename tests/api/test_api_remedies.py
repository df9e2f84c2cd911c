"""What a runtime is told to do: reported errors and refusals name a remedy, as the console does."""

from __future__ import annotations

from typing import Any

import pytest

from api.problems import PROBLEMS, problem_document
from ctxengine.engine.boundary.failures import FAILURE_OF
from ctxengine.service.remedies import remedy_of
from tests.api.door import Door

ERRORS = {
    "rate_limited": (429, "slow down"),
    "transient": (529, "overloaded"),
    "auth": (401, "no"),
    "invalid_request": (400, "odd"),
    "too_large": (413, "too many bytes"),
    "over_length": (400, "prompt is too long: 250000 tokens > 200000 maximum"),
}


def opened(door: Door, **fields: Any) -> str:
    body = {
        "engine": "suffix",
        "model": {"provider": "anthropic", "name": "claude-sonnet-4-6"},
        "agent": {"name": "a", "version": "1", "instructions": "Answer shortly."},
    }
    return str(door.post("sessions", body | fields).json["id"])


def test_every_reported_error_comes_back_with_its_remedy(door: Door) -> None:
    run = door.post(f"sessions/{opened(door)}/runs", {"message": "Go on."}).json["id"]
    for code, (status, text) in ERRORS.items():
        door.post(f"runs/{run}/assemble", {})
        told = door.post(f"runs/{run}/responses", {"error": {"status": status, "body": text}}).json
        assert told["code"] == code and told["remedy"] == remedy_of(code, over=False), told
    door.post(f"runs/{run}/assemble", {})
    status, text = ERRORS["over_length"]
    twice = door.post(f"runs/{run}/responses", {"error": {"status": status, "body": text}}).json
    assert twice["next"] == "fail" and "end the run" in twice["remedy"]


def test_a_refused_window_of_a_boundary_session_says_what_to_do(door: Door) -> None:
    session = opened(door, engine="boundary")
    run = door.post(f"sessions/{session}/runs", {"message": "Go on."}).json["id"]
    door.post(f"runs/{run}/assemble", {})
    body = '{"error":{"details":{"error_code":"compaction_signature_invalid"}}}'
    told = door.post(f"runs/{run}/responses", {"error": {"status": 400, "body": body}}).json
    assert told["remedy"] == FAILURE_OF["compaction_signature_invalid"].remedy


def test_an_answer_that_is_none_has_no_remedy(door: Door) -> None:
    run = door.post(f"sessions/{opened(door)}/runs", {"message": "Go on."}).json["id"]
    door.post(f"runs/{run}/assemble", {})
    said = {"content": [{"type": "text", "text": "Done."}], "stop_reason": "end_turn"}
    assert "remedy" not in door.post(f"runs/{run}/responses", {"response": said}).json


def test_every_problem_names_its_remedy_and_a_case_may_say_it_better(door: Door) -> None:
    for kind in PROBLEMS:
        assert problem_document(kind.code, kind.status, "", {})["remedy"] == kind.remedy
    own = {"remedy": "Set its key."}
    assert problem_document("compaction_failed", 409, "", own)["remedy"] == "Set its key."
    assert door.get("sessions/00000000-0000-4000-8000-000000000000").json["remedy"]


@pytest.mark.parametrize(
    ("engine", "says"),
    [("boundary", "compacted first"), ("suffix", "cut for ever")],
)
def test_a_window_too_small_for_its_tools_is_refused_by_what_takes_it(
    door: Door, engine: str, says: str
) -> None:
    tools = [
        {"name": f"tool_{n}", "description": "Does much. " * 60, "input_schema": {"type": "object"}}
        for n in range(12)
    ]
    body = {
        "engine": engine,
        "model": {"provider": "anthropic", "name": "claude-sonnet-4-6", "window": 12_000},
        "agent": {"name": "a", "version": "1", "instructions": "Answer shortly."},
        "tools": tools,
    }
    refused = door.post("sessions", body)
    assert (refused.status, refused.json["code"]) == (422, "plan_overflow")
    detail = refused.json["detail"]
    for text in ("a window of 12,000 tokens", "Tool definitions", says, "Use a larger window"):
        assert text in detail, detail
    assert refused.json["needed"] > refused.json["available"]
