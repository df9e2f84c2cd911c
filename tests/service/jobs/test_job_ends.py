"""No job stays unfinished for ever: whoever asks for its end, and whenever its worker dies, it reaches a final state."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models.functions import Now

from ctxengine.ledger.models import Idempotency, Job, JobState
from ctxengine.ledger.queries.jobs import job_counts
from ctxengine.service import expire
from ctxengine.service.jobs import enqueue as asking
from ctxengine.service.jobs import kinds
from ctxengine.service.jobs.cancel import cancel_job
from ctxengine.service.jobs.context import JobContext
from ctxengine.service.jobs.enqueue import enqueue
from ctxengine.service.jobs.lease import take_lease
from ctxengine.service.jobs.retry import retry_job
from ctxengine.service.jobs.run import run_job
from ctxengine.service.jobs.stops import JobCancelled, JobDelayed, LeaseLost
from ctxengine.service.jobs.sweep import sweep
from ctxengine.service.jobs.wait_for import FINAL
from ctxengine.service.probe.job import step_aside
from ctxengine.service.retention.old import OLD
from ctxengine.service.specs import Actor, ServiceError
from tests.cast import AT, new_actor

pytestmark = pytest.mark.django_db

Work = Callable[[JobContext], dict[str, Any]]
_KEY = "probe:ollama/tiny:1b"


@pytest.fixture
def does(monkeypatch: pytest.MonkeyPatch) -> Callable[[Work], None]:
    """Let jobs do something else than their kind."""

    def instead(work: Work) -> None:
        monkeypatch.setattr(kinds.JobKind, "load", lambda _: work)

    return instead


def asked(actor: Actor) -> Job:
    return enqueue(actor=actor, kind="capacity.probe", arguments={}, single_flight=_KEY)


def row(job: Job) -> Job:
    return Job.objects.get(tenant_id=job.tenant_id, id=job.id)


def change(job: Job, **fields: Any) -> None:
    Job.objects.filter(tenant_id=job.tenant_id, id=job.id).update(**fields)


def run_now(job: Job) -> str:
    return run_job(job.tenant_id, job.id, "test", beats=False)


def swept() -> int:
    return sweep(waiting=lambda _: 0).ended


def by_hand(job: Job) -> None:
    cancel_job(actor=Actor(job.tenant_id, "ann"), job_id=job.id)


def by_a_turn(job: Job) -> None:
    step_aside(job.tenant_id, "ollama", "tiny:1b")


def by_an_older_version(job: Job) -> None:
    """A flag alone, as it may stand in a row."""
    change(job, cancel_asked=True)


def while_it_waits(job: Job, end: Callable[[Job], None], does: Callable[[Work], None]) -> None:
    does(lambda _: {})
    end(job)


def in_an_attempt_that_fails(
    job: Job, end: Callable[[Job], None], does: Callable[[Work], None]
) -> None:
    def work(_: JobContext) -> dict[str, Any]:
        end(job)
        raise JobDelayed("rate_limited", "later")

    does(work)
    assert run_now(job) == "cancelled"


def between_two_attempts(
    job: Job, end: Callable[[Job], None], does: Callable[[Work], None]
) -> None:
    def work(_: JobContext) -> dict[str, Any]:
        raise JobDelayed("rate_limited", "later")

    does(work)
    assert run_now(job) == "again"
    end(job)


def in_an_attempt_whose_worker_dies(
    job: Job, end: Callable[[Job], None], does: Callable[[Work], None]
) -> None:
    assert take_lease(tenant_id=job.tenant_id, job_id=job.id, worker="dead") is not None
    end(job)
    change(job, lease_until=Now() - timedelta(seconds=1))


@pytest.mark.parametrize("end", [by_hand, by_a_turn, by_an_older_version])
@pytest.mark.parametrize(
    "when",
    [
        while_it_waits,
        in_an_attempt_that_fails,
        between_two_attempts,
        in_an_attempt_whose_worker_dies,
    ],
)
def test_a_job_whose_end_is_asked_for_ends_and_frees_its_key(
    when: Callable[..., None], end: Callable[[Job], None], does: Callable[[Work], None]
) -> None:
    actor = new_actor()
    job = asked(actor)
    when(job, end, does)
    change(job, not_before=Now())
    swept()
    run_now(job)
    ended = row(job)
    assert (ended.state, ended.lease_until) == (JobState.CANCELLED, None)
    assert ended.finished_at is not None
    assert asked(actor).id != job.id


def test_a_flagged_waiting_job_is_ended_by_asking_again_and_may_then_be_retried() -> None:
    actor = new_actor()
    job = asked(actor)
    change(job, cancel_asked=True)
    assert cancel_job(actor=actor, job_id=job.id).state == JobState.CANCELLED
    again = retry_job(actor=actor, job_id=job.id)
    assert (again.state, again.cancel_asked) == (JobState.QUEUED, False)


def test_what_stands_with_its_outcome_is_done_although_its_last_worker_died(
    does: Callable[[Work], None],
) -> None:
    """The worker is killed between the commit of what it made and its last word."""

    class Killed(BaseException):
        pass

    def work(context: JobContext) -> dict[str, Any]:
        context.progress("installing", 95)
        with transaction.atomic():
            context.conclude({"event": 7})
        raise Killed

    does(work)
    job = asked(new_actor())
    change(job, max_attempts=1)
    with pytest.raises(Killed):
        run_now(job)
    change(job, not_before=Now())
    assert swept() == 0
    assert run_now(job) == "not_due"
    ended = row(job)
    assert (ended.state, ended.result, ended.percent) == (JobState.DONE, {"event": 7}, 100)
    assert [line["text"] for line in ended.log][-1] == "Done."
    with pytest.raises(ServiceError, match="ended already"):
        by_hand(job)


@pytest.mark.parametrize("error", [None, ConnectionError("the answer to the commit was lost")])
def test_an_outcome_that_is_written_is_not_written_twice(
    does: Callable[[Work], None], error: Exception | None
) -> None:
    def work(context: JobContext) -> dict[str, Any]:
        with transaction.atomic():
            context.conclude({"event": 7})
        if error is not None:
            raise error
        return {"event": 8}

    does(work)
    job = asked(new_actor())
    assert run_now(job) == "done"
    assert (row(job).state, row(job).result, row(job).attempts) == ("done", {"event": 7}, 1)


def test_an_outcome_is_not_written_where_an_end_was_asked_for_or_another_has_the_job(
    does: Callable[[Work], None],
) -> None:
    def work(context: JobContext) -> dict[str, Any]:
        by_hand(context.job)
        with pytest.raises(JobCancelled), transaction.atomic():
            context.conclude({"event": 7})
        change(context.job, worker="another", cancel_asked=False)
        with pytest.raises(LeaseLost), transaction.atomic():
            context.conclude({"event": 7})
        return {}

    does(work)
    job = asked(new_actor())
    assert run_now(job) == "lost"
    assert (row(job).state, row(job).result) == (JobState.RUNNING, {})


def test_a_row_that_breaks_another_rule_is_refused_and_not_tried_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(asking, "utc_now", lambda: None)
    with pytest.raises(IntegrityError), transaction.atomic():
        asked(new_actor())


def test_whoever_loses_the_race_for_a_key_gets_the_winners_job(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    actor = new_actor()
    first = asked(actor)
    looks = iter([None, first])
    monkeypatch.setattr(asking, "unfinished", lambda *_: next(looks))
    assert asked(actor).id == first.id


def test_only_a_job_that_could_have_begun_counts_as_waiting() -> None:
    actor = new_actor()
    job = asked(actor)
    change(job, not_before=Now() + timedelta(hours=1))
    assert job_counts(actor.tenant_id).oldest_due is None
    change(job, not_before=Now() - timedelta(minutes=1))
    assert job_counts(actor.tenant_id).oldest_due == row(job).not_before


def test_upkeep_leaves_what_has_begun_anew_since_it_looked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look and the removal somebody retries the job, and the key is used again."""
    actor = new_actor()
    job = asked(actor)
    change(job, state=JobState.FAILED, finished_at=AT)
    answer = Idempotency.objects.create(
        tenant_id=actor.tenant_id, key="k", operation="x", body_sha256="", created_at=AT
    )

    def then(look: Callable[[], Any], meanwhile: Callable[[], object]) -> Callable[[], Any]:
        calls: list[int] = []

        def again() -> Any:
            calls.append(1)
            if len(calls) == 2:
                meanwhile()
            return look()

        return again

    def use_again() -> None:
        Idempotency.objects.filter(tenant_id=actor.tenant_id, key=answer.key).update(
            created_at=Now()
        )

    retried: list[str] = []

    def retry_first(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        if sql.startswith('DELETE FROM "job"') and not retried:
            retried.append(sql)
            retry_job(actor=actor, job_id=job.id)
        return execute(sql, *rest)

    with connection.execute_wrapper(retry_first):
        assert list(OLD["jobs"].remove(actor, 1)) == []
    assert retried
    monkeypatch.setattr(expire, "_old_answers", then(expire._old_answers, use_again))
    assert expire._remove_answers(actor.tenant_id) == 0
    assert row(job).state not in FINAL
    assert Idempotency.objects.filter(tenant_id=actor.tenant_id).count() == 1
