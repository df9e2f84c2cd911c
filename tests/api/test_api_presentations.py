"""Cards over the REST door: shown, read back, thought of, chosen on; and what guards answer in a step."""

from __future__ import annotations

import base64
import json
from typing import Any

from tests.api.door import Door

CARD = {
    "name": "emit_metric",
    "description": "Shows a figure.",
    "input_schema": {"type": "object"},
    "presentation": "metric",
}


def shown(door: Door) -> tuple[str, str, Any]:
    """A session with one card; gives the session, the run and the answer."""
    session = door.open(tools=[CARD])
    run = door.run(session, "How warm is it?")
    door.assemble(run)
    answer = door.calls(run, ("c1", "emit_metric", {"value": 29.1, "label": "Temperature"}))
    return session, run, answer


def test_a_card_is_acknowledged_and_read_back(door: Door) -> None:
    session, run, answer = shown(door)
    (call,) = answer["calls"]
    assert (call["action"], answer["next"]) == ("answered", "redo")
    event = json.loads(call["result"])["presentation"]
    page = door.get(f"sessions/{session}/presentations").ok()
    (card,) = page["items"]
    assert (card["id"], card["run"], card["semantic_type"]) == (event, run, "metric")
    assert json.loads(base64.b64decode(card["payload_base64"])) == {
        "value": 29.1,
        "label": "Temperature",
    }
    assert door.get(f"sessions/{session}/presentations/{event}").ok() == card
    assert door.get(f"sessions/{session}/presentations?after={event}").ok()["items"] == []


def test_feedback_and_selection_are_events_about_the_card(door: Door) -> None:
    session, _, answer = shown(door)
    event = json.loads(answer["calls"][0]["result"])["presentation"]
    at = f"sessions/{session}/presentations/{event}"
    door.post(f"{at}/feedback", {"verdict": "dismissed", "note": "not now"}).ok()
    card = door.post(f"{at}/selection", {"choice": "Temperature"}).ok()
    assert [(r["kind"], r["verdict"], r["text"]) for r in card["reactions"]] == [
        ("feedback", "dismissed", "not now"),
        ("selection", "", "Temperature"),
    ]
    assert door.get(at).ok() == card


def test_what_is_no_card_is_not_found_and_odd_verdicts_are_refused(door: Door) -> None:
    session, _, answer = shown(door)
    event = json.loads(answer["calls"][0]["result"])["presentation"]
    assert (
        door.post(f"sessions/{session}/presentations/1/feedback", {"verdict": "wrong"}).status
        == 404
    )
    odd = door.post(f"sessions/{session}/presentations/{event}/feedback", {"verdict": "meh"})
    assert odd.status in {400, 422}
    assert door.get(f"sessions/{session}/presentations/999999").status == 404


def test_the_same_key_gives_the_same_answer_and_notes_once(door: Door) -> None:
    session, _, answer = shown(door)
    event = json.loads(answer["calls"][0]["result"])["presentation"]
    at = f"sessions/{session}/presentations/{event}/feedback"
    first = door.post(at, {"verdict": "helpful"}, once="once").ok()
    assert door.post(at, {"verdict": "helpful"}, once="once").ok() == first
    assert len(door.get(f"sessions/{session}/presentations/{event}").ok()["reactions"]) == 1


def test_a_nudge_and_a_statement_come_with_the_answer_of_a_step(door: Door) -> None:
    lookup = {
        "name": "lookup",
        "description": "Looks it up.",
        "input_schema": {"type": "object"},
        "observes": ["network"],
    }
    session = door.open(tools=[lookup], policy={"guards": "on"})
    run = door.run(session, "What is the current price of copper?")
    door.assemble(run)
    said = {"content": [{"type": "text", "text": "9,100 dollars."}], "stop_reason": "end_turn"}
    first = door.post(f"runs/{run}/responses", {"response": said}).ok()
    assert first["next"] == "redo" and first["nudge"].startswith("[freshness-check]")
    door.assemble(run)
    second = door.post(f"runs/{run}/responses", {"response": said}, once="end").ok()
    assert second["next"] == "finish" and second["statement"].startswith("[freshness-check]")
    assert door.post(f"runs/{run}/responses", {"response": said}, once="end").ok() == second


def test_a_reading_is_taken_with_the_message_and_an_odd_one_is_refused(door: Door) -> None:
    session = door.open()
    good = {"act": "answer", "domains": ["web"], "entities": ["copper"], "live_data": True}
    door.post(f"sessions/{session}/runs", {"message": "Copper?", "reading": good}).ok()
    (taken,) = door.get(f"sessions/{session}/events?type=run.reading.taken").ok()["items"]
    assert taken["payload"]["source"] == "runtime" and taken["payload"]["domains"] == []
    other = door.open()
    odd = door.post(f"sessions/{other}/runs", {"message": "x", "reading": {"mood": "good"}})
    assert odd.code == "unknown_field"


def test_a_card_description_that_names_no_fields_is_refused(door: Door) -> None:
    odd = {**CARD, "card": {"identity": ["rows[*]"]}}
    body: dict[str, Any] = {"model": {"provider": "anthropic", "name": "claude-sonnet-4-6"}}
    body |= {"agent": {"name": "a", "version": "9", "instructions": ""}, "tools": [odd]}
    assert door.post("sessions", body).code == "invalid_card"
