"""Replays over REST: asked for once, filled cell by cell by a job, read by their own tenant alone."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.api.door import Door
from tests.work_off import work_off

ENGINES = ["suffix", "append_all"]


@pytest.fixture
def session(door: Door) -> str:
    """A session of two turns."""
    opened = door.open()
    for turn in range(2):
        run = door.run(opened, f"What stands in /srv/app/part_{turn}.py?")
        door.assemble(run)
        door.says(run, f"`limit_{turn}` is set to 4{turn}42 there.")
    return opened


def wanted(session: str, **more: Any) -> dict[str, Any]:
    return {"session": session, "engines": ENGINES, "models": ["claude-sonnet-4-6"], **more}


def test_a_replay_fills_cell_by_cell_and_ends_with_the_hashes_that_were_sent(
    door: Door, tenant: UUID, session: str
) -> None:
    asked = door.post("replays", wanted(session))
    assert asked.status == 202
    replay = asked.json["id"]
    assert asked.json["cells"] == [] and asked.json["cells_wanted"] == 2
    assert [ended for kind, ended in work_off(tenant, kind="replay.run")] == ["done"]

    cells = door.get(f"replays/{replay}").ok()["cells"]
    assert [cell["engine"] for cell in cells] == ENGINES
    assert all(cell["steps"] == 2 and cell["cost"] > 0 for cell in cells)
    steps = door.get(f"replays/{replay}/cells/1/steps").ok()["steps"]
    sent = door.get(f"sessions/{session}/requests").ok()["items"]
    hashes = {door.get(f"requests/{r['id']}").ok()["request_sha256"] for r in sent}
    assert {step["request_sha256"] for step in steps} == hashes
    (line,) = door.get("replays").ok()["items"]
    assert (line["id"], line["cells_done"]) == (replay, 2)


def test_asking_again_under_the_same_key_asks_once(door: Door, session: str) -> None:
    first = door.post("replays", wanted(session), once="k1")
    again = door.post("replays", wanted(session), once="k1")
    assert first.json["id"] == again.json["id"]
    assert len(door.get("replays").ok()["items"]) == 1


def test_another_tenant_sees_none_of_it(
    door: Door, stranger: Door, tenant: UUID, session: str
) -> None:
    replay = door.post("replays", wanted(session)).ok()["id"]
    work_off(tenant, kind="replay.run")
    assert stranger.get("replays").ok()["items"] == []
    assert stranger.get(f"replays/{replay}").code == "not_found"
    assert stranger.get(f"replays/{replay}/cells/1/steps").code == "not_found"
    assert stranger.post("replays", wanted(session)).code == "not_found"


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"engines": ["tarot"]}, 422, "unknown_engine"),
        ({"engines": []}, 422, "invalid_field"),
        ({"models": ["kimi"]}, 422, "unknown_model"),
        (
            {
                "models": [f"claude-{n}" for n in range(20)],
                "engines": ["suffix", "append_all", "sliding_window"],
            },
            422,
            "too_many_cells",
        ),
        ({"budget": 5}, 422, "invalid_field"),
        ({"turn_gap": -1}, 422, "invalid_field"),
        ({"low_water": 7}, 422, "invalid_field"),
        ({"ttl": "2h"}, 422, "invalid_field"),
        ({"colour": "red"}, 400, "unknown_field"),
        ({"session": str(uuid4())}, 404, "not_found"),
    ],
)
def test_what_cannot_be_replayed_is_refused_with_a_reason(
    door: Door, session: str, change: dict[str, Any], status: int, code: str
) -> None:
    refused = door.post("replays", {**wanted(session), **change})
    assert (refused.status, refused.code) == (status, code), refused.raw


def test_a_session_that_asked_no_model_yet_has_nothing_to_replay(door: Door) -> None:
    assert door.post("replays", wanted(door.open())).code == "nothing_to_replay"


def test_an_unknown_engine_is_told_those_there_are(door: Door, session: str) -> None:
    told = door.post("replays", wanted(session, engines=["tarot"])).json["detail"]
    assert "suffix" in told and "sliding_window" in told
