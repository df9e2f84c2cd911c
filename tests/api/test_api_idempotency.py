"""A write with an Idempotency-Key is done once, however often and by however many it is sent."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from django.db import connection
from django.utils import timezone

from api import idempotency
from ctxengine.ledger.models import Body, Event, Idempotency, SessionRow
from ctxengine.service import session_erasure
from ctxengine.service.specs import LONGEST_WAIT_S
from tests.api.door import MODEL, WEATHER, Answer, Door, key_for, new_tenant

SESSION = {
    "model": MODEL,
    "agent": {"name": "once", "version": "1", "instructions": "Help."},
    "tools": [WEATHER, {"name": "bad"}],
}


def pending_call(door: Door) -> tuple[str, str]:
    """A session and its run with the calls w1 and w2 open."""
    session = door.open()
    run = door.run(session)
    door.assemble(run)
    door.calls(run, ("w1", "weather", {"city": "Oslo"}), ("w2", "weather", {}))
    return session, run


def answer_to_make(door: Door) -> tuple[str, str]:
    session = door.open()
    run = door.run(session)
    door.assemble(run)
    return session, run


def sent_twice(door: Door, path: str, body: Any) -> tuple[Answer, Answer]:
    key = uuid4().hex
    return door.post(path, body, once=key), door.post(path, body, once=key)


def check_same(first: Answer, again: Answer) -> None:
    assert 200 <= first.status < 300, first.raw
    assert (again.status, again.raw) == (first.status, first.raw)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert "Idempotency-Replayed" not in first.headers


def test_opening_a_session_twice_opens_one(door: Door, tenant: UUID) -> None:
    check_same(*sent_twice(door, "sessions", SESSION))
    assert SessionRow.objects.filter(tenant_id=tenant).count() == 1


def test_acts_on_the_history_are_answered_to_the_byte(door: Door) -> None:
    session, run = answer_to_make(door)
    door.says(run, {"type": "text", "text": "Hi."})
    target = next(e for e in door.events(session) if e["type"] == "user.message.created")
    act = {"target": str(target["sequence"]), "form": "pinned", "note": "needed"}
    check_same(*sent_twice(door, f"sessions/{session}/presentation", act))
    check_same(*sent_twice(door, f"sessions/{session}/compactions", {"preview": True}))


def test_starting_a_run_twice_starts_one(door: Door) -> None:
    session = door.open()
    check_same(*sent_twice(door, f"sessions/{session}/runs", {"message": "Hello \u0000 \ud83d"}))
    assert door.get(f"sessions/{session}").ok()["runs"] == 1


def test_assembling_twice_answers_with_the_first_request_even_when_more_was_appended(
    door: Door,
) -> None:
    _, run = answer_to_make(door)
    base = door.assemble(run)["request_id"]
    door.post(f"runs/{run}/input", {"message": "more"}).ok()
    first = door.post(f"runs/{run}/assemble", {"recall": [{"text": "r"}]}, once="a")
    delta = door.post(f"runs/{run}/assemble", {"base_request_id": base}, once="d")
    door.post(f"runs/{run}/input", {"message": "even more"}).ok()
    check_same(first, door.post(f"runs/{run}/assemble", {"recall": [{"text": "r"}]}, once="a"))
    check_same(delta, door.post(f"runs/{run}/assemble", {"base_request_id": base}, once="d"))
    assert "delta" in delta.json


CALLS = [
    {"type": "text", "text": "Let me see."},
    {"type": "tool_use", "id": "w1", "name": "weather", "input": {"city": "Oslo", "n": 1.0}},
    {"type": "tool_use", "id": "w 2", "name": "nothing_like_it", "input": {}},
]
RECALL = [{"type": "tool_use", "id": "r1", "name": "recall", "input": {"id": "3.0"}}]
BROKEN = [{"type": "tool_call", "id": "b1", "name": "weather", "arguments": '{"city": "Os'}]


@pytest.mark.parametrize(
    "body",
    [
        {"response": {"content": CALLS, "stop_reason": "tool_use"}, "usage": {"input_tokens": 5}},
        {"response": {"content": CALLS, "stop_reason": "tool_use"}, "assemble": True},
        {"response": {"content": RECALL, "stop_reason": "tool_use"}},
        {"response": {"content": RECALL, "stop_reason": "tool_use"}, "assemble": True},
        {"response": {"content": BROKEN, "stop_reason": "max_tokens"}, "assemble": True},
        {"response": {"content": [{"type": "text", "text": "Done."}], "stop_reason": "end_turn"}},
        {"error": {"status": 529, "body": "overloaded"}},
        {"error": {"status": 529, "body": {"type": "error"}}, "assemble": True},
    ],
    ids=["calls", "calls+", "recall", "recall+", "broken+", "final", "error", "error+"],
)
def test_reporting_a_response_twice_takes_it_once(door: Door, body: dict[str, Any]) -> None:
    session, run = answer_to_make(door)
    first = door.post(f"runs/{run}/responses", body, once="r")
    count = len(door.events(session))
    check_same(first, door.post(f"runs/{run}/responses", body, once="r"))
    assert len(door.events(session)) == count


@pytest.mark.parametrize("assemble", [False, True])
def test_reporting_results_twice_takes_them_once(door: Door, assemble: bool) -> None:
    session, run = pending_call(door)
    one = {"results": [{"call_id": "w2", "content": "2"}], "assemble": assemble}
    two = {"results": [{"call_id": "w1", "content": "1"}], "assemble": assemble}
    first, second = (
        door.post(f"runs/{run}/tool-results", body, once=key)
        for key, body in (("1", one), ("2", two))
    )
    check_same(second, door.post(f"runs/{run}/tool-results", two, once="2"))
    check_same(first, door.post(f"runs/{run}/tool-results", one, once="1"))
    assert len(door.events(session, "type=tool.result.received")) == 2
    assert ("assembled" in second.json) is assemble


def test_sending_input_twice_appends_it_once(door: Door) -> None:
    session, run = answer_to_make(door)
    check_same(*sent_twice(door, f"runs/{run}/input", {"message": "x", "assemble": True}))
    assert len(door.events(session, "type=run.input.received")) == 1


def test_a_refused_follow_up_is_told_again_alike(door: Door) -> None:
    session = door.open(model={**MODEL, "window": 16_000, "max_output": 1000})
    run = door.run(session)
    body = {"message": "word " * 40_000, "assemble": True}
    first, again = sent_twice(door, f"runs/{run}/input", body)
    check_same(first, again)
    assert first.json["assemble_problem"]["code"] == "budget_exceeded"


def test_ends_and_rotations_are_done_once(door: Door) -> None:
    session, run = answer_to_make(door)
    rotation = {"reason": "operator", "note": "once"}
    check_same(*sent_twice(door, f"sessions/{session}/epochs", rotation))
    check_same(*sent_twice(door, f"runs/{run}/end", {"outcome": "failed"}))
    check_same(*sent_twice(door, f"sessions/{session}/end", {}))
    assert door.get(f"sessions/{session}").ok()["epoch"] == 2


def test_the_plan_of_an_old_epoch_is_answered_again_after_a_rotation(door: Door) -> None:
    first = door.post("sessions", SESSION, once="s")
    door.post(f"sessions/{first.ok()['id']}/epochs", {"reason": "operator", "note": "x"}).ok()
    check_same(first, door.post("sessions", SESSION, once="s"))


def test_another_body_or_address_under_the_same_key_is_refused(door: Door) -> None:
    session = door.open()
    door.post(f"sessions/{session}/runs", {"message": "a"}, once="k").ok()
    for path, body in (
        (f"sessions/{session}/runs", {"message": "b"}),
        (f"sessions/{session}/end", {"message": "a"}),
        ("sessions", SESSION),
    ):
        answer = door.post(path, body, once="k")
        if answer.status == 400:  # the body does not belong to that address at all
            continue
        assert (answer.status, answer.code) == (409, "idempotency_mismatch")


def test_keys_of_two_tenants_do_not_meet(door: Door, stranger: Door) -> None:
    first = door.post("sessions", SESSION, once="same")
    other = stranger.post("sessions", SESSION, once="same")
    assert other.status == 201
    assert other.json["id"] != first.json["id"]


def test_a_refusal_leaves_no_mark(door: Door) -> None:
    session = door.open()
    run = door.run(session)
    refused = door.post(f"sessions/{session}/runs", {"message": "x"}, once="k")
    assert refused.code == "run_open"
    door.post(f"runs/{run}/end").ok()
    assert door.post(f"sessions/{session}/runs", {"message": "x"}, once="k").status == 201


def test_what_a_refusal_recorded_stays_recorded(door: Door) -> None:
    session = door.open(model={**MODEL, "window": 16_000, "max_output": 1000})
    run = door.run(session, "word " * 40_000)
    for _ in range(2):
        assert door.post(f"runs/{run}/assemble", {}, once="k").code == "budget_exceeded"
    assert len(door.events(session, "type=context.budget.exceeded")) == 1


def test_a_failure_of_ours_undoes_the_write_and_the_mark(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, run = answer_to_make(door)
    before = door.events(session)

    def fail(*_: Any, **__: Any) -> Any:
        raise RuntimeError("power cut")

    with monkeypatch.context() as patch:
        patch.setattr("api.v1.tool_results._taken_json", fail)
        answer = door.post(f"runs/{run}/input", {"message": "x"}, once="k")
        assert answer.code == "internal_error"
    assert door.events(session) == before
    assert door.post(f"runs/{run}/input", {"message": "x"}, once="k").status == 200


@pytest.mark.parametrize("key", ["", " x", "x ", "a\tb", "é", "x" * 256])
def test_a_key_that_cannot_be_used_is_refused(door: Door, key: str) -> None:
    answer = door.post("sessions", SESSION, once=key)
    assert (answer.status, answer.code) == (400, "invalid_idempotency_key")


def test_keys_may_hold_any_visible_ascii_character(door: Door) -> None:
    key = "".join(map(chr, range(0x21, 0x7F)))
    check_same(door.post("sessions", SESSION, once=key), door.post("sessions", SESSION, once=key))


def row_of(tenant: UUID, key: str) -> Any:
    return Idempotency.objects.filter(tenant_id=tenant, key=key)


def test_while_the_first_call_is_at_work_a_repeat_is_told_to_wait(door: Door, tenant: UUID) -> None:
    door.post("sessions", SESSION, once="k").ok()
    row_of(tenant, "k").update(status=None, resource={})
    answer = door.post("sessions", SESSION, once="k")
    assert (answer.status, answer.code) == (409, "idempotency_in_progress")
    assert answer.headers["Retry-After"] == "1"


def test_a_claim_of_a_dead_process_is_taken_over(door: Door, tenant: UUID) -> None:
    claimed = timezone.now() - idempotency.LEASE - timedelta(seconds=1)
    door.post("sessions", SESSION, once="k").ok()
    row_of(tenant, "k").update(status=None, resource={}, created_at=claimed)
    assert door.post("sessions", SESSION, once="k").status == 201
    assert row_of(tenant, "k").get().status == 201


def test_a_claim_whose_connection_is_closed_is_taken_over_at_once(door: Door, tenant: UUID) -> None:
    door.post("sessions", SESSION, once="k").ok()
    with new_connection() as other:
        alive = {"holder": other.info.backend_pid}
        row_of(tenant, "k").update(status=None, resource=alive)
        answer = door.post("sessions", SESSION, once="k")
        assert (answer.status, answer.code) == (409, "idempotency_in_progress")
    with new_connection() as watching:
        gone = "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = %s)"
        while not watching.execute(gone, [alive["holder"]]).fetchone()[0]:  # type: ignore[index]
            pass
    with connection.cursor() as cursor:
        # Postgres keeps what it saw of its connections until the transaction ends, and the test is one.
        cursor.execute("SELECT pg_stat_clear_snapshot()")
    assert door.post("sessions", SESSION, once="k").status == 201
    assert row_of(tenant, "k").get().status == 201


def new_connection() -> psycopg.Connection[tuple[object, ...]]:
    """A connection of its own to the test's database."""
    options = connection.get_connection_params()
    wanted = {
        name: options[name] for name in ("host", "user", "password", "dbname") if name in options
    }
    return psycopg.connect(**wanted, autocommit=True)


def test_an_address_with_a_zero_byte_can_have_a_key(door: Door) -> None:
    answer = door.post("people/a%00b/erase", {"note": "asked for"}, once="zero")
    assert (answer.status, answer.code) == (404, "not_found")


def test_a_call_that_may_wait_for_minutes_is_not_taken_for_dead_meanwhile(
    door: Door, tenant: UUID
) -> None:
    _, run = answer_to_make(door)
    address = f"runs/{run}/assemble?compaction=wait&wait_s={LONGEST_WAIT_S}"
    door.post(address, once="k").ok()
    longest = timedelta(seconds=LONGEST_WAIT_S)
    for age, status in ((longest, 409), (longest + idempotency.LEASE + timedelta(seconds=1), 200)):
        claimed = timezone.now() - age
        row_of(tenant, "k").update(status=None, resource={}, created_at=claimed)
        assert door.post(address, once="k").status == status
    beyond = f"runs/{run}/assemble?compaction=wait&wait_s={LONGEST_WAIT_S + 1}"
    assert door.post(beyond).status == 400


def test_an_erasure_under_a_key_keeps_what_it_did_and_its_repeat_tells_of_the_whole(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = [door.open(principal={"id": "ann"}) for _ in range(2)]
    for session in sessions:
        door.run(session)
    whole, seen = session_erasure._Erasure.blank, []

    def breaks(self: Any) -> None:
        seen.append(self.session.id)
        if len(seen) == 2:
            raise ConnectionError("the database went away")
        whole(self)

    monkeypatch.setattr(session_erasure._Erasure, "blank", breaks)
    assert door.post("people/ann/erase", {"note": "asked"}, once="k").status == 500
    assert Body.objects.filter(owner="ann", erased_at__isnull=False).exists()
    first = door.post("people/ann/erase", {"note": "asked"}, once="k")
    assert (first.ok()["sessions"], first.ok()["runs_ended"]) == (2, 2)
    check_same(first, door.post("people/ann/erase", {"note": "asked"}, once="k"))


def test_a_process_that_lost_its_claim_commits_nothing(
    door: Door, tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = door.open()

    def lose(call: idempotency.Call, *_: Any) -> None:
        row_of(tenant, call.key).update(created_at=timezone.now())
        real(call, *_)

    real: Callable[..., None] = idempotency.finish
    monkeypatch.setattr(idempotency, "finish", lose)
    answer = door.post(f"sessions/{session}/runs", {"message": "x"}, once="k")
    assert (answer.status, answer.code) == (409, "idempotency_in_progress")
    assert door.get(f"sessions/{session}").ok()["runs"] == 0


def test_after_a_day_a_key_is_free_again(door: Door, tenant: UUID) -> None:
    first = door.post("sessions", SESSION, once="k").ok()["id"]
    row_of(tenant, "k").update(created_at=timezone.now() - idempotency.KEPT - timedelta(seconds=1))
    assert door.post("sessions", {**SESSION, "title": "new"}, once="k").ok()["id"] != first


def test_expired_rows_are_swept_in_passing(door: Door, tenant: UUID) -> None:
    old = timezone.now() - idempotency.KEPT - timedelta(hours=1)
    Idempotency.objects.bulk_create(
        Idempotency(
            tenant_id=tenant,
            key=f"old-{n}",
            operation="x",
            body_sha256="y",
            status=200,
            created_at=old,
        )
        for n in range(50)
    )
    for n in range(256):
        call = idempotency.Call(tenant, f"new-{n}", "POST /x", f"{n:02x}" * 32, timezone.now())
        idempotency.begin(call)
    assert not Idempotency.objects.filter(tenant_id=tenant, key__startswith="old-").exists()


def test_a_row_holds_ids_and_no_content(door: Door, tenant: UUID) -> None:
    session = door.open()
    run = door.post(f"sessions/{session}/runs", {"message": "very private words"}, once="1").ok()[
        "id"
    ]
    door.assemble(run)
    response = {
        "content": [{"type": "text", "text": "private answer"}, *CALLS],
        "stop_reason": "tool_use",
    }
    door.post(f"runs/{run}/responses", {"response": response}, once="2").ok()
    result = [{"call_id": "w1", "content": "private result"}]
    door.post(f"runs/{run}/tool-results", {"results": result, "assemble": True}, once="3").ok()
    for row in Idempotency.objects.filter(tenant_id=tenant):
        assert "private" not in str(row.resource)
        assert "Let me see" not in str(row.resource)


@pytest.mark.django_db(transaction=True)
def test_many_senders_of_one_key_write_once() -> None:
    tenant = new_tenant("crowd")
    key = key_for(tenant)
    session = Door(key).open()
    run = Door(key).run(session)
    statuses: list[int] = []
    barrier = threading.Barrier(6)

    def send() -> None:
        try:
            barrier.wait()
            answer = Door(key).post(f"runs/{run}/input", {"message": "once"}, once="k")
            statuses.append(answer.status)
        finally:
            connection.close()

    threads = [threading.Thread(target=send) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(statuses) <= {200, 409}
    assert 200 in statuses
    inputs = Event.objects.filter(tenant_id=tenant, type="run.input.received")
    assert inputs.count() == 1


def test_a_call_that_ended_while_its_repeat_looked_for_it_is_not_done_again(
    door: Door, tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    door.post("sessions", SESSION, once="k").ok()
    closed = row_of(tenant, "k").get()
    row_of(tenant, "k").update(status=None, resource={"holder": 0})

    def ends_now(_row: Idempotency) -> bool:
        row_of(tenant, "k").update(status=closed.status, resource=closed.resource)
        return True

    monkeypatch.setattr(idempotency, "_holder_is_gone", ends_now)
    answer = door.post("sessions", SESSION, once="k")
    assert (answer.status, answer.code) == (409, "idempotency_in_progress")
    repeat = door.post("sessions", SESSION, once="k")
    assert repeat.headers["Idempotency-Replayed"] == "true"
    assert SessionRow.objects.filter(tenant_id=tenant).count() == 1
