"""The `working_set` loop over REST: a dozen turns that prove, a refusal as too long, a reset with handoff (design 5 and 6)."""

from __future__ import annotations

import pytest

from tests.api.door import Door, key_for, new_tenant

pytestmark = pytest.mark.django_db


@pytest.fixture
def door() -> Door:
    return Door(key_for(new_tenant("working")))


def turn(door: Door, session: str, number: int) -> str:
    """A turn with one call; gives its last request's id."""
    run = door.run(session, f"How was the weather on day {number}?")
    door.assemble(run)
    door.calls(run, (f"c{number}", "weather", {"day": number}))
    door.results(run, (f"c{number}", f"day {number}: {number * 3} degrees"))
    built = door.assemble(run)
    door.says(run, f"On day {number} it was {number * 3} degrees.")
    return str(built["request_id"])


def test_twelve_turns_prove_and_a_reset_sets_them_aside(door: Door) -> None:
    session = door.open(engine="working_set")
    requests = [turn(door, session, number) for number in range(12)]
    for request in requests:
        assert door.get(f"requests/{request}/replay").ok()["identical"]
    done = door.post(f"sessions/{session}/reset", {"handoff": "Twelve days were looked up."}).ok()
    assert (done["turns"], done["by"]) == (12, "runtime")
    run = door.run(session, "And what now?")
    text = str(door.assemble(run)["request"])
    assert "Twelve days were looked up." in text
    assert "day 3 it was" not in text


def test_the_same_key_resets_once(door: Door) -> None:
    session = door.open(engine="working_set")
    turn(door, session, 1)
    first = door.post(f"sessions/{session}/reset", {"note": "again"}, once="k1").ok()
    assert door.post(f"sessions/{session}/reset", {"note": "again"}, once="k1").ok() == first
    again = door.post(f"sessions/{session}/reset", {})
    assert (again.status, again.json["code"]) == (409, "nothing_to_reset")


def test_another_engine_is_not_reset_and_unknown_fields_are_named(door: Door) -> None:
    session = door.open()
    refused = door.post(f"sessions/{session}/reset", {})
    assert (refused.status, refused.json["code"]) == (422, "reset_unavailable")
    unknown = door.post(f"sessions/{session}/reset", {"handover": "x"})
    assert (unknown.status, unknown.json["code"]) == (400, "unknown_field")
