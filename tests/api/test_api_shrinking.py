"""Working state, compactions and presentation through the REST door."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from tests.api.door import Door, key_for, new_tenant

pytestmark = pytest.mark.django_db

PROSE = "The northern depot sent its figures late, so the comparison waits for them. " * 40
STATE_TOOL = "context_update_working_state"


@pytest.fixture
def tenant() -> uuid.UUID:
    """A tenant of its own."""
    return new_tenant("shrinking")


@pytest.fixture
def door(tenant: uuid.UUID) -> Door:
    """A key with every scope."""
    return Door(key_for(tenant))


def talked(door: Door, turns: int = 3, **fields: Any) -> str:
    """A session with some turns behind it."""
    session = door.open(principal={"id": "ada"}, **fields)
    for number in range(turns):
        run = door.run(session, f"Question {number}. {PROSE}")
        door.assemble(run)
        door.says(run, f"Answer {number}. {PROSE}")
    return session


def test_the_working_state_is_read_and_its_constraints_are_the_users(door: Door) -> None:
    session = door.open(principal={"id": "ada"})
    run = door.run(session)
    door.assemble(run)
    answer = door.calls(run, ("w1", STATE_TOOL, {"add_constraints": ["never write to prod"]}))
    assert answer["calls"][0]["action"] == "answered"
    state = door.get(f"sessions/{session}/working-state").ok()
    assert [c["text"] for c in state["constraints"]] == ["never write to prod"]
    assert state["caps"]["constraints"]["entries"] == 20
    path = f"sessions/{session}/working-state"
    lifted = door.send("PATCH", path, {"remove_constraints": ["c1"], "note": "no longer"}).ok()
    assert lifted["constraints"] == []
    assert door.send("PATCH", path, {"remove_constraints": ["c1"]}).code == "unknown_constraint"
    assert door.send("PATCH", path, {"remove": ["c1"]}).code == "unknown_field"


def test_a_runtime_lifts_a_constraint_only_on_the_principals_behalf(
    tenant: uuid.UUID, door: Door
) -> None:
    session = door.open(principal={"id": "ada"})
    path = f"sessions/{session}/working-state"
    door.send("PATCH", path, {"add_constraints": ["answer in French"]}).ok()
    runtime, reader = Door(key_for(tenant, "runtime")), Door(key_for(tenant, "read"))
    refused = runtime.send("PATCH", path, {"remove_constraints": ["c1"]})
    assert (refused.status, refused.code) == (403, "principal_required")
    wrong = runtime.send("PATCH", path, {"remove_constraints": ["c1"], "principal": "eve"})
    assert wrong.code == "principal_required"
    assert reader.send("PATCH", path, {"remove_constraints": ["c1"]}).code == "scope_missing"
    right = runtime.send("PATCH", path, {"remove_constraints": ["c1"], "principal": "ada"}).ok()
    assert right["constraints"] == []


def test_compact_list_undo_once_each(door: Door) -> None:
    session = talked(door)
    path = f"sessions/{session}/compactions"
    preview = door.post(path, {"preview": True, "through": 20}).ok()
    assert preview["outcome"] == "previewed"
    done = door.post(path, {"through": 20, "note": "long"}, once="k1")
    assert done.ok()["outcome"] == "compacted"
    again = door.post(path, {"through": 20, "note": "long"}, once="k1")
    assert again.ok() == done.json
    assert again.headers["Idempotency-Replayed"] == "true"
    assert door.post(path, {"through": 20}).ok()["outcome"] == "unchanged"
    listed = door.get(path).ok()
    (line,) = listed["items"]
    assert (line["event"], line["state"], line["depth"]) == (done.json["event"], "standing", 1)
    assert listed["coverage"][0] == {
        "first": 1,
        "through": line["through"],
        "told_by": "summary",
        "event": line["event"],
    }
    undone = door.post(f"{path}/{line['event']}/undo", {"note": "better not"}).ok()
    assert door.get(path).ok()["items"][0]["state"] == "undone"
    assert door.post(f"{path}/{line['event']}/undo", {}).ok() == undone
    assert door.post(f"{path}/1/undo", {}).code == "not_found"


def test_a_third_round_is_a_problem_with_its_remedy(door: Door) -> None:
    session = talked(door, turns=2)
    path = f"sessions/{session}/compactions"
    refused = door.post(path, {"merge": True})
    assert (refused.status, refused.code) == (409, "nothing_to_compact")
    for _ in range(2):
        last = door.get(f"sessions/{session}").ok()["last_sequence"]
        door.post(path, {"through": last}).ok()
        run = door.run(session, PROSE)
        door.assemble(run)
        door.says(run, PROSE)
    assert door.post(path, {"merge": True}).ok()["outcome"] == "merged"
    deeper = door.post(path, {"merge": True})
    assert (deeper.code, deeper.json["remedy"]) == ("depth_exceeded", "child_run")


def test_pin_fold_and_exclude_by_rest(door: Door) -> None:
    session = talked(door)
    path = f"sessions/{session}/presentation"
    seed = door.events(session, "type=user.message.created&")[0]["sequence"]
    pinned = door.post(path, {"target": str(seed), "form": "pinned", "scope": "turn"}).ok()
    assert pinned["event"] is not None
    assert len(pinned["sequences"]) == 2
    out = door.post(path, {"target": f"{seed}.0", "form": "excluded", "scope": "item"}).ok()
    assert out["item"] == f"{seed}.0"
    assert door.post(path, {"target": "x", "form": "pinned"}).code == "invalid_target"
    assert door.post(path, {"target": "1", "form": "gone"}).code == "invalid_field"
    run = door.run(session, "And now?")
    built = door.assemble(run)
    assert "[excluded]" in str(built["request"])
    assert door.replays(built["request_id"])


def test_a_child_runs_answer_is_a_result(door: Door) -> None:
    tools = [{"name": "delegate", "description": "Delegates.", "input_schema": {"type": "object"}}]
    session = door.open(tools=tools)
    run = door.run(session)
    door.assemble(run)
    door.calls(run, ("d1", "delegate", {}))
    child = door.open(occasion="child", parent_run=run)
    child_run = door.run(child, "Look it up.")
    door.assemble(child_run)
    early = door.post(
        f"runs/{run}/tool-results", {"results": [{"call_id": "d1", "child_run": child_run}]}
    )
    assert early.code == "child_running"
    door.says(child_run, "Forty.")
    both = {"call_id": "d1", "child_run": child_run, "content": "x"}
    assert door.post(f"runs/{run}/tool-results", {"results": [both]}).code == "invalid_content"
    door.post(
        f"runs/{run}/tool-results", {"results": [{"call_id": "d1", "child_run": child_run}]}
    ).ok()
    result = door.events(session, "type=tool.result.received&bodies=1&")[0]
    assert result["trust"] == "MODEL"
    assert "Forty." in str(result)
    assert door.post("sessions", {"occasion": "child"}).status in {422, 400}
