"""Lists, events, items and requests as they are read back."""

from __future__ import annotations

import base64
import json
from itertools import pairwise
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from api.reads import events as event_reads
from tests.api.door import Door


def all_pages(door: Door, path: str) -> list[Any]:
    items: list[Any] = []
    joint = "&" if "?" in path else "?"
    cursor = ""
    while True:
        page = door.get(f"{path}{joint}limit=3{cursor}").ok()
        assert len(page["items"]) <= 3
        items += page["items"]
        if page["next_cursor"] is None:
            return items
        cursor = f"&cursor={page['next_cursor']}"


def said(door: Door, session: str, message: str) -> str:
    """A whole run of one step; its id."""
    run = door.run(session, message)
    door.assemble(run)
    door.says(run, "ok")
    return run


def test_sessions_come_page_by_page_newest_first_and_once(door: Door) -> None:
    opened = [door.open(title=f"Session {n}") for n in range(8)]
    assert [line["id"] for line in all_pages(door, "sessions")] == opened[::-1]


def test_sessions_are_narrowed_by_query(door: Door) -> None:
    wanted = door.open(title="Zebra crossing", agent={"name": "striped", "version": "1"})
    other = door.open(title="Lion")
    door.post(f"sessions/{other}/end").ok()
    for query in ("q=zebra", "q=zebra+crossing", "agent=striped", "state=open", f"q={wanted}"):
        lines = door.get(f"sessions?{query}").ok()["items"]
        assert [line["id"] for line in lines] == [wanted], query
    assert (
        len(door.get("sessions?engine=suffix&format=live&model=claude-sonnet-4-6").ok()["items"])
        == 2
    )
    assert door.get("sessions?format=any").ok()["items"] == []
    assert door.get("sessions?engine=boundary").ok()["items"] == []
    for query in ("format=bogus", "engine=bogus", "state=bogus"):
        refused = door.get(f"sessions?{query}")
        assert (refused.status, refused.json["code"]) == (400, "invalid_parameter"), query


def test_events_come_oldest_first_and_link_to_one_another(door: Door) -> None:
    session = door.open()
    runs = [said(door, session, f"Message {n}") for n in range(3)]
    events = all_pages(door, f"sessions/{session}/events")
    assert [event["sequence"] for event in events] == list(range(1, len(events) + 1))
    for before, after in pairwise(events):
        assert after["prev_hash"] == before["hash"]
    facts = door.get(f"sessions/{session}").ok()
    assert (facts["last_sequence"], facts["last_hash"]) == (len(events), events[-1]["hash"])
    late = all_pages(door, f"sessions/{session}/events?after=5")
    assert late == events[5:]
    of_run = all_pages(door, f"sessions/{session}/events?run={runs[2]}&type=user.message.created")
    assert [event["run"] for event in of_run] == runs[2:]
    assert all("body" not in event for event in events)


def test_bodies_come_as_received_and_as_a_model_sees_them(door: Door) -> None:
    session = door.open()
    door.run(session, "nul \u0000 half \ud83d six \\u0000")
    (event,) = door.events(session, "bodies=1&type=user.message.created")
    raw = base64.b64decode(event["body"]["raw_base64"]).decode("utf-8", "surrogatepass")
    assert raw == "nul \u0000 half \ud83d six \\u0000"
    assert event["body"]["text"] == "nul \u2400 half \ufffd six \\u0000"
    assert event["body_length"] == len(raw.encode("utf-8", "surrogatepass"))
    assert event["body"]["erased_at"] is None
    opened = door.events(session, "bodies=1&type=session.opened")[0]
    assert opened["body"] is None


def test_a_page_with_bodies_ends_early_but_loses_nothing(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = door.open()
    run = door.run(session, "x" * 500)
    for n in range(4):
        door.post(f"runs/{run}/input", {"message": str(n) * 500}).ok()
    monkeypatch.setattr(event_reads, "BODY_PAGE_BYTES", 800)
    page = door.get(f"sessions/{session}/events?bodies=1&after=2").ok()
    assert len(page["items"]) == 1
    events = door.events(session, "bodies=1")
    assert [event["sequence"] for event in events] == list(range(1, 8))


def test_an_item_is_read_whole(door: Door) -> None:
    session = door.open()
    run = door.run(session)
    door.assemble(run)
    arguments = {"city": "Oslo \u0000"}
    door.calls(run, ("w1", "weather", arguments))
    door.results(run, ("w1", "-3 C \u0000"))
    items = {}
    for event in door.events(session):
        answer = door.get(f"sessions/{session}/items/{event['sequence']}.0")
        if answer.status == 200:
            items[answer.json["kind"]] = answer.json
    call, result = items["tool_call"], items["tool_result"]
    assert (call["name"], call["call_id"], call["wire_call_id"]) == ("weather", "w1", "w1")
    assert json.loads(base64.b64decode(call["arguments_base64"])) == arguments
    assert result["text"] == "-3 C \u2400"
    assert base64.b64decode(result["text_base64"]) == b"-3 C \x00"
    assert base64.b64decode(result["body_base64"]) == b"-3 C \x00"
    assert (result["trust"], result["characters"]) == ("EXTERNAL_UNTRUSTED", 6)
    assert result["problem"] == ""


def test_requests_of_a_session_are_listed_in_their_order(door: Door) -> None:
    session = door.open()
    runs = [said(door, session, f"Message {n}") for n in range(4)]
    made = all_pages(door, f"sessions/{session}/requests")
    assert [line["run"] for line in made] == runs
    assert [line["number"] for line in made] == [1, 2, 3, 4]
    lines = door.get(f"sessions/{session}/requests?run={runs[3]}&status=answered").ok()["items"]
    assert lines == made[-1:]
    assert (lines[0]["run_number"], lines[0]["step"], lines[0]["number"]) == (4, 1, 4)


def test_a_request_explains_itself(door: Door) -> None:
    session = door.open()
    built = door.assemble(door.run(session))
    facts = door.get(f"requests/{built['request_id']}").ok()
    for part in ("manifest", "budget", "cache", "prefix_sha256", "request_sha256"):
        assert facts[part] == built[part]
    assert [row["row"] for row in facts["manifest"]["rows"]] == list(range(1, 16))
    assert facts["inputs"]["content_head"] == facts["content_sequence"]
    assert facts["session"] == session
    assert facts["body_bytes"] == len(door.get(f"requests/{built['request_id']}/body").raw)


@pytest.mark.parametrize(
    "path",
    [
        "sessions?limit=200",
        "sessions/{session}/events?bodies=1&limit=200",
        "sessions/{session}/requests?limit=200",
    ],
)
def test_a_list_takes_as_many_queries_for_many_rows_as_for_few(door: Door, path: str) -> None:
    session = door.open()

    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as captured:
            door.get(path.format(session=session)).ok()
        return len(captured)

    door.assemble(door.run(session))
    few = queries()
    for _ in range(6):
        door.open()
        run = door.get(f"sessions/{session}").ok()["open_run"]["id"]
        door.says(run, "ok")
        door.assemble(door.run(session))
    assert queries() == few
    assert few <= 6


def test_no_answer_to_a_runtime_carries_a_secret(door: Door) -> None:
    thinking = {"type": "thinking", "thinking": "private thought", "signature": "SIGNATURE=="}
    session = door.open()
    run = door.run(session)
    door.assemble(run)
    call = {"type": "tool_use", "id": "w1", "name": "weather", "input": {}}
    taken = door.says(run, thinking, call, stop="tool_use")
    door.results(run, ("w1", "x"))
    # The next request replays the block, as the provider asks; no other answer shows it.
    request = door.assemble(run)
    assert "SIGNATURE==" in json.dumps(request["request"])
    seen = json.dumps(
        [taken, door.events(session, "bodies=1"), door.get(f"sessions/{session}").ok()]
    )
    for path in ("", "/replay", f"/diff/{request['request_id']}"):
        seen += door.get(f"requests/{request['request_id']}{path}").raw.decode()
    for secret in (
        "SIGNATURE==",
        "private thought",
        base64.b64encode(b"SIGNATURE==").decode()[:-3],
        door.key,
    ):
        assert secret not in seen
