"""The pages of jobs: what is shown, what asks for itself again, and who may act."""

from __future__ import annotations

from typing import Any

from ctxengine.ledger.models import AuditEntry, Job, JobState
from ctxengine.service.jobs.enqueue import enqueue
from ctxengine.service.specs import Actor
from inspector.job_contexts import jobs_tile
from tests.inspector.conftest import Cast
from tests.work_off import work_off


def asked(cast: Cast, **more: Any) -> Job:
    actor = Actor(cast.tenant.id, "user:olga")
    return enqueue(actor=actor, kind="upkeep.expire", arguments={}, **more)


def test_an_empty_list_says_what_makes_jobs(cast: Cast) -> None:
    page = cast.page("jobs/")
    assert "No job was asked for yet" in page
    assert 'hx-trigger="every' not in page


def test_the_list_asks_for_itself_again_only_while_something_may_change(cast: Cast) -> None:
    job = asked(cast, session_id=cast.session.id, subject="old rows", cause="keeping times")
    page = cast.page("jobs/")
    assert 'hx-trigger="every 2s"' in page
    assert "no worker runs" in page
    assert f"/sessions/{cast.session.id}/" in page
    work_off(cast.tenant.id)
    page = cast.page("jobs/", state="done")
    assert str(job.id) in page
    assert 'hx-trigger="every' not in page
    assert [line["id"] for line in cast.data("jobs.json")] == [str(job.id)]
    lines = cast.operator.get(cast.url("jobs.csv")).getvalue().decode().splitlines()
    assert lines[1].startswith(f"{job.id},upkeep.expire,done,old rows")


def test_an_odd_filter_is_refused_by_name(cast: Cast) -> None:
    for query in ({"state": "odd"}, {"session": "5"}, {"sort": "x"}, {"after": "!"}):
        assert cast.operator.get(cast.url("jobs/"), query).status_code == 400, query


def test_a_job_shows_what_failed_and_lets_an_operator_try_again(cast: Cast) -> None:
    job = asked(cast)
    rows = Job.objects.filter(id=job.id)
    rows.update(
        state=JobState.FAILED,
        error={"code": "auth", "detail": "<b>The key was refused.</b>"},
        attempts=1,
        log=[{"at": "2026-03-28T12:00:00+00:00", "text": "Attempt 1 failed."}],
    )
    path = f"jobs/{job.id}/"
    page = cast.page(path)
    assert "&lt;b&gt;The key was refused." in page
    assert "Attempt 1 failed." in page
    assert "1 of 3" in page
    assert 'hx-trigger="every' not in page
    viewed = cast.viewer.get(cast.url(path)).content.decode()
    assert "needs the role operator" in viewed
    assert cast.viewer.post(cast.url(path), {"act": "retry", "reason": "x"}).status_code == 403
    assert cast.operator.post(cast.url(path), {"act": "retry"}).status_code == 422
    assert cast.operator.post(cast.url(path), {"act": "burn", "reason": "x"}).status_code == 400
    done = cast.operator.post(cast.url(path), {"act": "retry", "reason": "The key is new."})
    assert done.status_code == 303
    assert rows.get().state == JobState.QUEUED
    assert AuditEntry.objects.get(target=str(job.id)).reason == "The key is new."
    refused = cast.operator.post(cast.url(path), {"act": "retry", "reason": "Once more."})
    assert refused.status_code == 409
    assert "Once more." in refused.content.decode()


def test_a_running_job_is_watched_and_its_page_is_made_anew_when_it_ends(cast: Cast) -> None:
    job = asked(cast)
    rows = Job.objects.filter(id=job.id)
    rows.update(state=JobState.RUNNING, percent=40, phase="deep", worker="host:7#abc", attempts=1)
    page = cast.page(f"jobs/{job.id}/")
    assert 'value="40"' in page
    assert "host:7" in page
    assert "#abc" not in page
    assert 'hx-trigger="every 1s"' in page
    poll = {"headers": {"HX-Request": "true"}}
    watched = cast.operator.get(cast.url(f"jobs/{job.id}/?live=1"), **poll)
    assert "HX-Refresh" not in watched.headers
    cast.operator.post(cast.url(f"jobs/{job.id}/"), {"act": "cancel", "reason": "Enough."})
    assert "asked to end" in cast.page(f"jobs/{job.id}/")
    rows.update(state=JobState.CANCELLED)
    ended = cast.operator.get(cast.url(f"jobs/{job.id}/?live=1"), **poll)
    assert ended.headers["HX-Refresh"] == "true"


def test_the_tile_says_whether_jobs_get_done(cast: Cast) -> None:
    assert jobs_tile(cast.tenant.id).state == "ok"
    job = asked(cast)
    assert jobs_tile(cast.tenant.id).verdict == "No worker runs; jobs wait."
    assert "✕ No worker runs; jobs wait." in cast.page("")
    assert cast.data("overview.json")["jobs"]["counts"]["by_state"]["queued"] == 1
    Job.objects.filter(id=job.id).update(state=JobState.FAILED)
    assert (jobs_tile(cast.tenant.id).state, jobs_tile(cast.tenant.id).verdict) == (
        "warn",
        "1 failed.",
    )
