"""Cards and evidence over REST: for every engine, in every form, with the trust they have (design 5; capacity spec 10)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.api.door import Door, key_for, new_tenant

pytestmark = pytest.mark.django_db

REPORT = "\n".join(f"{n:04} pump {n % 5} ran for {n} minutes" for n in range(2_000))


@pytest.fixture
def door() -> Door:
    return Door(key_for(new_tenant("turns")))


def worked(door: Door, engine: str, **fields: Any) -> tuple[str, str]:
    """A session of two closed turns and an open one; gives it and the id of its one result."""
    session = door.open(engine=engine, **fields)
    run = door.run(session, "How long did the pumps run?")
    door.assemble(run)
    door.calls(run, ("c1", "weather", {"city": "Bergen"}))
    door.results(run, ("c1", REPORT))
    door.assemble(run)
    door.says(run, "About a thousand minutes each.")
    second = door.run(session, "Thanks.")
    door.assemble(second)
    door.says(second, "You are welcome.")
    door.run(session, "And now?")
    (result,) = [e for e in door.events(session) if e["type"] == "tool.result.received"]
    return session, f"{result['sequence']}.0"


@pytest.mark.parametrize("engine", ["suffix", "working_set"])
def test_every_engine_shows_the_cards_of_its_closed_turns(door: Door, engine: str) -> None:
    session, evidence = worked(door, engine)
    page = door.get(f"sessions/{session}/cards").ok()
    assert page["next_cursor"] is None
    first, second = page["items"]
    assert [first["number"], second["number"]] == [1, 2]
    assert (first["recorded"] is not None) is (engine == "working_set")
    assert first["tokens_full"] > first["tokens_card"] > 0
    card = first["card"]
    assert card["asked"] == "How long did the pumps run?"
    assert (card["asked_trust"], card["narration_trust"]) == ("USER", "MODEL")
    (line,) = card["did"]
    assert (line["name"], line["evidence"], line["chars"]) == ("weather", evidence, len(REPORT))
    assert second["card"]["narration"] == "You are welcome."


def test_engines_agree_on_what_a_card_says(door: Door) -> None:
    cards = []
    for engine in ("suffix", "working_set"):
        session, evidence = worked(door, engine)
        text = json.dumps(
            [row["card"] for row in door.get(f"sessions/{session}/cards").ok()["items"]]
        )
        told = json.loads(text.replace(evidence, "RESULT"))
        cards.append([{**card, "first": 0, "last": 0} for card in told])
    assert cards[0] == cards[1]


def test_cards_come_in_pages(door: Door) -> None:
    session, _ = worked(door, "suffix")
    page = door.get(f"sessions/{session}/cards?limit=1").ok()
    assert [card["number"] for card in page["items"]] == [1]
    rest = door.get(f"sessions/{session}/cards?limit=1&cursor={page['next_cursor']}").ok()
    assert [card["number"] for card in rest["items"]] == [2]
    assert rest["next_cursor"] is None
    assert door.get(f"sessions/{session}/cards?after=2").ok()["items"] == []


def test_a_result_stands_in_all_its_forms(door: Door) -> None:
    session, evidence = worked(door, "working_set")
    found = door.get(f"evidence/{session}:{evidence}").ok()
    assert found == door.get(f"sessions/{session}/evidence/{evidence}").ok()
    assert (found["characters"], found["lines"], found["turn"]) == (len(REPORT), 2_000, 1)
    assert (found["trust"], found["name"], found["shape"]) == (
        "EXTERNAL_UNTRUSTED",
        "weather",
        "output",
    )
    for form in ("window", "digest", "pointer"):
        assert f'id "{evidence}"' in found[form]
        assert len(found[form]) < len(REPORT)
    assert found["window"].startswith("0000 pump 0")
    assert found["window"].endswith(REPORT.rsplit("\n", 1)[1])


def test_a_window_says_whether_it_is_all_that_the_open_turn_shows(door: Door) -> None:
    session, evidence = worked(door, "working_set")
    assert door.get(f"evidence/{session}:{evidence}").ok()["window_ends"] is False
    session, evidence = worked(door, "suffix", policy={"inline_maximum_bytes": 1_000_000})
    found = door.get(f"evidence/{session}:{evidence}").ok()
    assert (found["window_ends"], found["limit"]) == (True, 1_000_000)
    assert len(found["window"]) < 31_000 < found["characters"]


@pytest.mark.parametrize(
    ("query", "part"),
    [
        (
            "lines=2-3",
            "[lines 2 to 3 of 2000]\n0001 pump 1 ran for 1 minutes\n0002 pump 2 ran for 2 minutes",
        ),
        ("chars=1-4", f"[characters 1 to 4 of {len(REPORT)}]\n0000"),
        ("lines=2&chars=6-9", "[characters 6 to 9 of 29]\npump"),
    ],
)
def test_any_part_of_the_whole_can_be_read(door: Door, query: str, part: str) -> None:
    session, evidence = worked(door, "suffix")
    assert door.get(f"evidence/{session}:{evidence}?{query}").ok()["part"] == part


@pytest.mark.parametrize("query", ["lines=x", "chars=9-1", "lines=0"])
def test_a_range_that_is_none_is_refused(door: Door, query: str) -> None:
    session, evidence = worked(door, "suffix")
    assert door.get(f"evidence/{session}:{evidence}?{query}").code == "invalid_parameter"


def test_what_is_no_result_or_somebody_elses_is_not_found(door: Door) -> None:
    session, evidence = worked(door, "suffix")
    stranger: Any = Door(key_for(new_tenant("stranger")))
    assert door.get(f"evidence/{session}:3.0").code == "not_found"
    assert door.get(f"evidence/{session}:99999.0").code == "not_found"
    assert stranger.get(f"evidence/{session}:{evidence}").code == "not_found"
    assert stranger.get(f"sessions/{session}/cards").code == "not_found"
