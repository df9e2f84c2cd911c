"""Case dev-19 through the REST door: two writers on one session."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from django.db import connection

from ctxengine.engine.wire.base import WireApi
from tests.api.case_files import MODELS, call_ids, case, checked, result_texts, tool_calls
from tests.api.door import Answer, Door, key_for, new_tenant

pytestmark = pytest.mark.corpus
CONTENT = {
    "user.message.created",
    "model.response.completed",
    "tool.result.received",
    "run.input.received",
}


@pytest.mark.parametrize("api", list(WireApi), ids=lambda api: api.value)
def test_dev_19_a_second_run_is_told_that_the_session_is_busy(
    door: Door, cases_folder: Path, api: WireApi
) -> None:
    first, step, quick, other, answer, slow, last = case(cases_folder, "dev-19")["interleaved"]
    session = door.open(model=MODELS[api], tools=[{"name": n} for n in ("quick", "slow")])
    run = door.run(session, first["text"])
    early = door.assemble(run)["request_id"]
    door.says(run, *tool_calls(*step["calls"]), stop="tool_use")
    door.results(run, (quick["call_id"], quick["text"]))
    busy = door.post(f"sessions/{session}/runs", {"message": other["text"]})
    assert (busy.status, busy.code) == (409, "run_open")
    door.results(run, (slow["call_id"], slow["text"]))
    later = door.assemble(run)["request_id"]
    body = checked(door, api, later)
    assert call_ids(api, body) == ["a1", "a2"]
    answers = result_texts(api, body)
    assert [call for call, _ in answers] == ["a1", "a2"]
    assert "green after 9 h" in answers[1][1]
    assert door.says(run, last["text"])["next"] == "finish"
    second = door.run(session, other["text"])
    checked(door, api, door.assemble(second)["request_id"])
    assert door.says(second, answer["text"])["next"] == "finish"

    events = door.events(session)
    assert [event["sequence"] for event in events] == list(range(1, len(events) + 1))
    assert len([event for event in events if event["type"] in CONTENT]) == 7
    checked(door, api, early)
    checked(door, api, later)


def at_once(*work: Callable[[], Answer]) -> list[Answer]:
    """Run calls at the same time, each on a connection of its own; answers in the order of the calls."""
    answers: dict[int, Answer] = {}
    barrier = threading.Barrier(len(work))

    def go(place: int, call: Callable[[], Answer]) -> None:
        try:
            barrier.wait()
            answers[place] = call()
        finally:
            connection.close()

    threads = [threading.Thread(target=go, args=pair) for pair in enumerate(work)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [answers[place] for place in range(len(work))]


@pytest.mark.django_db(transaction=True)
def test_dev_19_writers_at_the_same_time_share_no_sequence_and_lose_nothing() -> None:
    key = key_for(new_tenant("busy"))
    door = Door(key)
    session = door.open()
    run = door.run(session)
    door.assemble(run)
    door.calls(run, *((f"c{n}", "weather", {"n": n}) for n in range(4)))

    def report(n: int) -> Answer:
        body = {"results": [{"call_id": f"c{n}", "content": f"result {n}"}]}
        return Door(key).post(f"runs/{run}/tool-results", body)

    waiting = set(range(4))
    for _ in range(4):
        order = sorted(waiting)
        answers = at_once(*(partial(report, n) for n in order))
        for n, answer in zip(order, answers, strict=True):
            assert answer.status == 200 or answer.code == "stale_head"
            if answer.status == 200:
                waiting.discard(n)
        if not waiting:
            break
    assert not waiting
    events = door.events(session)
    assert [event["sequence"] for event in events] == list(range(1, len(events) + 1))
    body = checked(door, WireApi.ANTHROPIC, door.assemble(run)["request_id"])
    assert [call for call, _ in result_texts(WireApi.ANTHROPIC, body)] == ["c0", "c1", "c2", "c3"]


@pytest.mark.django_db(transaction=True)
def test_dev_19_of_two_runs_started_at_the_same_time_one_is_refused() -> None:
    key = key_for(new_tenant("busy"))
    session = Door(key).open()
    path = f"sessions/{session}/runs"
    answers = at_once(*(partial(Door(key).post, path, {"message": str(n)}) for n in range(4)))
    assert sorted(answer.status for answer in answers) == [201, 409, 409, 409]
    assert {answer.code for answer in answers if answer.status == 409} <= {"run_open", "stale_head"}
    assert len(Door(key).events(session, "type=user.message.created")) == 1


@pytest.mark.django_db(transaction=True)
def test_dev_19_two_assemblies_at_the_same_time_are_one_request() -> None:
    key = key_for(new_tenant("busy"))
    door = Door(key)
    session = door.open()
    run = door.run(session)
    answers = at_once(*(partial(Door(key).post, f"runs/{run}/assemble") for _ in range(4)))
    good = [answer for answer in answers if answer.status == 200]
    assert good
    assert all(answer.status == 200 or answer.code == "stale_head" for answer in answers)
    assert len({answer.raw for answer in good}) == 1
    assert len(door.get(f"sessions/{session}/requests").ok()["items"]) == 1
