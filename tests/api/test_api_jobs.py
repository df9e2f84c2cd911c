"""Jobs over REST: lists, one job, and the operator's hand on it."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest

from ctxengine.ledger.models import AuditEntry, Job, JobState
from ctxengine.service import erase_job
from ctxengine.service.jobs.enqueue import enqueue
from ctxengine.service.specs import Actor
from tests.api.door import Door, key_for
from tests.work_off import work_off


@pytest.fixture
def asked(tenant: UUID) -> Any:
    def ask(**more: Any) -> str:
        job = enqueue(
            actor=Actor(tenant, "key:abc"), kind="upkeep.expire", arguments={"n": 1}, **more
        )
        return str(job.id)

    return ask


def test_a_job_shows_its_cause_progress_log_and_result(
    door: Door, tenant: UUID, asked: Any
) -> None:
    ident = asked(subject="old rows", cause="keeping times")
    waiting = door.get(f"jobs/{ident}").ok()
    assert (waiting["state"], waiting["percent"], waiting["finished_at"]) == ("queued", 0, None)
    assert (waiting["cause"], waiting["asked_by"]) == ("keeping times", "key:abc")
    assert waiting["arguments"] == {"n": 1}
    work_off(tenant)
    done = door.get(f"jobs/{ident}").ok()
    assert (done["state"], done["percent"], done["error"]) == ("done", 100, None)
    assert done["result"] == {"answers": 0}
    assert done["log"][-1]["text"] == "Done."


def test_the_list_is_paged_and_narrowed(door: Door, tenant: UUID, asked: Any) -> None:
    session = door.open()
    idents = [asked(session_id=UUID(session) if n == 2 else None) for n in range(5)]
    first = door.get("jobs?limit=3").ok()
    rest = door.get(f"jobs?limit=3&cursor={first['next_cursor']}").ok()
    assert [job["id"] for job in first["items"] + rest["items"]] == idents[::-1]
    assert rest["next_cursor"] is None
    assert [job["id"] for job in door.get(f"jobs?session={session}").ok()["items"]] == [idents[2]]
    assert door.get("jobs?kind=tea.make").ok()["items"] == []
    Job.objects.filter(id=idents[0]).update(state=JobState.FAILED)
    assert len(door.get("jobs?state=unfinished").ok()["items"]) == 4
    assert [job["id"] for job in door.get("jobs?state=failed").ok()["items"]] == [idents[0]]
    for query, code in (
        ("state=odd", "invalid_parameter"),
        ("session=5", "invalid_parameter"),
        ("cursor=!", "invalid_cursor"),
        ("sort=x", "unknown_parameter"),
    ):
        assert door.get(f"jobs?{query}").code == code


def test_an_operator_cancels_and_retries_once_however_often_it_is_sent(
    door: Door, tenant: UUID, asked: Any
) -> None:
    ident = asked()
    for _ in range(2):
        done = door.post(f"jobs/{ident}/cancel", {"note": "not wanted"}, once="c-1").ok()
        assert done["state"] == "cancelled"
    assert door.post(f"jobs/{ident}/cancel", {}).code == "job_ended"
    assert door.post(f"jobs/{ident}/retry", {}).ok()["state"] == "queued"
    assert door.post(f"jobs/{ident}/retry", {}).code == "job_not_ended"
    work_off(tenant)
    assert door.post(f"jobs/{ident}/retry", {}).code == "job_done"
    assert door.post(f"jobs/{ident}/retry", {"why": "x"}).code == "unknown_field"
    assert door.post(f"jobs/{uuid4()}/retry", {}).code == "not_found"
    acts = AuditEntry.objects.filter(tenant_id=tenant, target=ident).values_list("action", "reason")
    assert set(acts) == {("job.cancelled", "not wanted"), ("job.retried", "")}


def test_only_operators_act_and_strangers_find_nothing(
    door: Door, stranger: Door, tenant: UUID, asked: Any
) -> None:
    ident = asked()
    for scope in ("read", "runtime"):
        other = Door(key_for(tenant, scope))
        assert other.get(f"jobs/{ident}").status == 200
        assert other.post(f"jobs/{ident}/cancel", {}).code == "scope_missing"
    assert stranger.get("jobs").ok()["items"] == []
    for answer in (
        stranger.get(f"jobs/{ident}"),
        stranger.post(f"jobs/{ident}/cancel", {}),
        stranger.post(f"jobs/{ident}/retry", {}),
    ):
        assert answer.code == "not_found"
    assert door.get(f"jobs/{ident}").ok()["state"] == "queued"


def test_a_person_in_many_sessions_is_erased_by_a_job(
    door: Door, tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erase_job, "ERASED_AT_ONCE", 1)
    sessions = [door.open(principal={"id": "mara"}) for _ in range(2)]
    for session in sessions:
        door.run(session)
    answers = [door.post("people/mara/erase", {"note": "asked for"}, once="e-1") for _ in range(2)]
    assert [answer.status for answer in answers] == [202, 202]
    job = answers[0].ok()["job"]
    assert answers[1].ok()["job"]["id"] == job["id"]
    again = door.post("people/mara/erase", {"note": "asked for"}).ok()
    assert again["job"]["id"] == job["id"], "one erasure of a person at a time"
    assert ("people.erase", "done") in work_off(tenant)
    shown = door.get(f"jobs/{job['id']}").ok()
    assert shown["result"]["sessions"] == 2
    assert shown["subject"] == "mara"
    assert door.post("people/mara/erase", {"note": "again"}).ok() == {
        "sessions": 0, "bodies": 0, "runs_ended": 0,
    }  # fmt: skip
