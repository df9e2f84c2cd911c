"""A job's life: asked for once, run once, tried again, cancelled, taken over. What a lost lease wrote counts for nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import OperationalError, connection, transaction
from django.db.models.functions import Now

from ctxengine.ledger.models import AuditEntry, Idempotency, Job, JobState
from ctxengine.providers.adapters.contract import ProviderError
from ctxengine.service.expire import ask_for_upkeep
from ctxengine.service.jobs import kinds, messages
from ctxengine.service.jobs.cancel import cancel_job
from ctxengine.service.jobs.context import JobContext
from ctxengine.service.jobs.enqueue import enqueue
from ctxengine.service.jobs.kinds import QUEUES, UnknownKind
from ctxengine.service.jobs.lease import LOG_LINES, take_lease
from ctxengine.service.jobs.retry import retry_job
from ctxengine.service.jobs.run import run_job
from ctxengine.service.jobs.stops import JobDelayed, JobFailed, LeaseLost
from ctxengine.service.jobs.sweep import sweep
from ctxengine.service.jobs.wait_for import wait_for
from ctxengine.service.specs import Actor, ServiceError
from tests.cast import AT, new_actor
from tests.work_off import work_off

pytestmark = pytest.mark.django_db

Work = Callable[[JobContext], dict[str, Any]]
_work: list[Work] = []


def run(context: JobContext) -> dict[str, Any]:
    """Stands for a kind's function; each test says what it does."""
    return _work[-1](context)


@pytest.fixture
def does(monkeypatch: pytest.MonkeyPatch) -> Callable[[Work], None]:
    """Let jobs of the kind `plan.measure` do something else."""
    kind = kinds.kind_of("plan.measure")._replace(run=f"{__name__}:run")
    monkeypatch.setitem(kinds._BY_NAME, kind.name, kind)
    monkeypatch.setattr(kinds, "import_module", lambda _: type("M", (), {"run": run}))
    return _work.append


def asked(actor: Actor, **more: Any) -> Job:
    return enqueue(actor=actor, kind="plan.measure", arguments={"n": 1}, **more)


def again(job: Job) -> Job:
    return Job.objects.get(tenant_id=job.tenant_id, id=job.id)


def run_now(job: Job) -> str:
    return run_job(job.tenant_id, job.id, "test", beats=False)


def let_the_lease_run_out(job: Job) -> None:
    Job.objects.filter(tenant_id=job.tenant_id, id=job.id).update(
        lease_until=Now() - timedelta(seconds=1)
    )


def nothing_waits(queue: str) -> int:
    assert queue in QUEUES
    return 0


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What went to the broker."""
    found: list[object] = []

    def deliver(tenant_id: object, job_id: object, queue: str) -> bool:
        found.append(job_id)
        return True

    monkeypatch.setattr(messages, "deliver", deliver)
    monkeypatch.setattr("ctxengine.service.jobs.sweep.deliver", deliver)
    return found


def test_every_kind_names_a_function_a_queue_and_bounds() -> None:
    for kind in kinds.KINDS:
        assert kind.queue in QUEUES
        assert 1 <= kind.max_attempts <= 10
        assert 10 <= kind.lease_s <= 15
        assert callable(kind.load())


def test_a_job_is_done_once_however_often_its_message_comes(does: Callable[[Work], None]) -> None:
    actor, calls = new_actor(), []

    def work(context: JobContext) -> dict[str, Any]:
        calls.append(context.arguments)
        context.progress("half way", 50)
        context.note("counted")
        return {"tokens": 7}

    does(work)
    job = asked(actor, subject="plan 1", cause="opened")
    assert [run_now(job), run_now(job)] == ["done", "not_due"]
    row = again(job)
    assert (row.state, row.result, row.percent, row.phase) == (
        "done",
        {"tokens": 7},
        100,
        "half way",
    )
    assert (row.attempts, row.error, row.lease_until) == (1, {}, None)
    assert [line["text"] for line in row.log] == ["Asked for by system.", "counted", "Done."]
    assert calls == [{"n": 1}]


def test_a_message_for_a_job_that_is_not_there_does_nothing() -> None:
    assert run_job(uuid4(), uuid4(), "test", beats=False) == "not_due"


def test_single_flight_gives_the_unfinished_job_until_it_has_ended(
    does: Callable[[Work], None],
) -> None:
    actor, other = new_actor(), new_actor()
    does(lambda _: {})
    first = asked(actor, single_flight="plan:1")
    assert asked(actor, single_flight="plan:1").id == first.id
    assert asked(other, single_flight="plan:1").id != first.id
    assert asked(actor).id != asked(actor).id
    run_now(first)
    assert asked(actor, single_flight="plan:1").id != first.id


def test_a_kind_that_nobody_knows_is_refused_and_one_left_by_another_version_fails() -> None:
    actor = new_actor()
    with pytest.raises(UnknownKind, match=r"tea\.make"):
        enqueue(actor=actor, kind="tea.make", arguments={})
    job = asked(actor)
    Job.objects.filter(id=job.id).update(kind="tea.make")
    assert run_now(job) == "failed"
    assert again(job).error["code"] == "unknown_kind"


@pytest.mark.parametrize(
    ("error", "state", "code"),
    [
        (ProviderError("transient", "529", retryable=True), "queued", "transient"),
        (ProviderError("rate_limited", "429", retryable=True, retry_after_s=90), "queued", "rate_limited"),
        (ProviderError("auth", "no such key"), "failed", "auth"),
        (ProviderError("invalid_request", "no"), "failed", "invalid_request"),
        (ServiceError("stale_head", 409, "raced"), "queued", "stale_head"),
        (ServiceError("no_progress", 409, "no"), "failed", "no_progress"),
        (JobDelayed("busy", "later"), "queued", "busy"),
        (JobFailed("hopeless", "never"), "failed", "hopeless"),
        (OperationalError("gone"), "queued", "database_unavailable"),
        (TimeoutError(), "queued", "transient"),
        (KeyError("a person's words"), "failed", "internal_error"),
    ],
    ids=lambda value: getattr(value, "code", None) or str(value)[:20],
)  # fmt: skip
def test_errors_are_judged_by_class_and_their_foreign_words_are_not_kept(
    does: Callable[[Work], None], error: Exception, state: str, code: str
) -> None:
    def work(_: JobContext) -> dict[str, Any]:
        raise error

    does(work)
    job = asked(new_actor())
    run_now(job)
    row = again(job)
    assert (row.state, row.error["code"]) == (state, code)
    assert "person" not in str(row.error) + str(row.log)
    if state == "queued":
        assert row.sent_at is None
        waits = (row.not_before - row.created_at).total_seconds()
        assert waits >= (90 if code == "rate_limited" else 1)


def test_attempts_are_bounded_and_a_retry_by_hand_counts_on(does: Callable[[Work], None]) -> None:
    actor = new_actor()

    def work(_: JobContext) -> dict[str, Any]:
        raise JobDelayed("busy", "later")

    does(work)
    job = asked(actor)
    for _ in range(job.max_attempts):
        Job.objects.filter(id=job.id).update(not_before=Now())
        run_now(job)
    assert (again(job).state, again(job).attempts) == ("failed", job.max_attempts)
    does(lambda _: {"at": "last"})
    assert retry_job(actor=actor, job_id=job.id, note="the key was renewed").state == "queued"
    assert work_off(actor.tenant_id) == [("plan.measure", "done")]
    assert again(job).attempts == job.max_attempts + 1
    entry = AuditEntry.objects.get(tenant_id=actor.tenant_id, action="job.retried")
    assert (entry.reason, entry.target) == ("the key was renewed", str(job.id))


def test_a_waiting_job_is_cancelled_at_once_and_a_running_one_at_its_next_look(
    does: Callable[[Work], None],
) -> None:
    actor = new_actor()
    waiting = asked(actor)
    assert cancel_job(actor=actor, job_id=waiting.id).state == "cancelled"
    assert run_now(waiting) == "not_due"
    with pytest.raises(ServiceError, match="ended already") as refused:
        cancel_job(actor=actor, job_id=waiting.id)
    assert refused.value.code == "job_ended"

    def work(context: JobContext) -> dict[str, Any]:
        assert not context.cancelled()
        cancel_job(actor=actor, job_id=context.job.id)
        cancel_job(actor=actor, job_id=context.job.id)
        assert context.cancelled()
        context.check()
        return {"never": True}

    does(work)
    running = asked(actor)
    assert run_now(running) == "cancelled"
    assert (again(running).state, again(running).result) == ("cancelled", {})
    assert AuditEntry.objects.filter(tenant_id=actor.tenant_id, action="job.cancelled").count() == 2


def test_only_ended_jobs_are_retried_and_never_beside_another_that_does_the_same(
    does: Callable[[Work], None],
) -> None:
    actor = new_actor()
    does(lambda _: {})
    job = asked(actor, single_flight="one")
    codes = [_refusal(actor, job)]
    cancel_job(actor=actor, job_id=job.id)
    other = asked(actor, single_flight="one")
    codes.append(_refusal(actor, job))
    run_now(other)
    codes += [_refusal(actor, other), _refusal(new_actor(), other)]
    assert codes == ["job_not_ended", "job_in_flight", "job_done", "not_found"]
    assert retry_job(actor=actor, job_id=job.id).state == "queued"


def _refusal(actor: Actor, job: Job) -> str:
    with pytest.raises(ServiceError) as refused:
        retry_job(actor=actor, job_id=job.id)
    return refused.value.code


def test_a_holder_whose_lease_ran_out_can_no_longer_write(does: Callable[[Work], None]) -> None:
    actor = new_actor()
    ends: list[str] = []

    def work(context: JobContext) -> dict[str, Any]:
        if context.lease.attempt == 1:
            let_the_lease_run_out(context.job)
            ends.append(run_now(context.job))
            with pytest.raises(LeaseLost), transaction.atomic():
                context.hold()
            with pytest.raises(LeaseLost):
                context.check()
            return {"by": "the first"}
        return {"by": "the second"}

    does(work)
    job = asked(actor)
    ends.append(run_now(job))
    assert ends == ["done", "lost"]
    assert (again(job).result, again(job).attempts) == ({"by": "the second"}, 2)


def test_a_lease_is_taken_by_one_and_not_before_it_has_run_out() -> None:
    job = asked(new_actor())
    taken = take_lease(tenant_id=job.tenant_id, job_id=job.id, worker="a")
    assert taken is not None
    assert take_lease(tenant_id=job.tenant_id, job_id=job.id, worker="a") is None
    let_the_lease_run_out(job)
    second = take_lease(tenant_id=job.tenant_id, job_id=job.id, worker="a")
    assert second is not None
    assert taken[1].renew() is None
    assert second[1].renew() is False
    lost = [line["text"] for line in again(job).log if "worker was lost" in line["text"]]
    assert len(lost) == 1


def test_the_sweeper_sends_what_was_never_sent_lost_or_left_and_nothing_twice(
    sent: list[object],
) -> None:
    actor = new_actor()
    never, lost, left, fresh, later = (asked(actor) for _ in range(5))
    rows = Job.objects.filter(tenant_id=actor.tenant_id)
    rows.filter(id=lost.id).update(sent_at=Now() - timedelta(seconds=30))
    rows.filter(id=fresh.id).update(sent_at=Now())
    rows.filter(id=later.id).update(not_before=Now() + timedelta(hours=1))
    take_lease(tenant_id=actor.tenant_id, job_id=left.id, worker="dead")
    rows.filter(id=left.id).update(sent_at=Now() - timedelta(seconds=40))
    let_the_lease_run_out(left)
    sweep(waiting=nothing_waits)
    assert set(sent) == {never.id, lost.id, left.id}
    sent.clear()
    sweep(waiting=nothing_waits)
    assert sent == []


def test_an_old_message_is_not_sent_again_while_its_queue_is_long(sent: list[object]) -> None:
    job = asked(new_actor())
    Job.objects.filter(id=job.id).update(sent_at=Now() - timedelta(seconds=30))
    sweep(waiting=lambda _: 12)
    assert job.id not in sent


def test_the_sweeper_ends_what_has_had_all_its_attempts_and_what_was_to_be_cancelled() -> None:
    actor = new_actor()
    poison, unwanted = asked(actor), asked(actor)
    for job in (poison, unwanted):
        take_lease(tenant_id=actor.tenant_id, job_id=job.id, worker="dead")
        let_the_lease_run_out(job)
    Job.objects.filter(id=poison.id).update(attempts=poison.max_attempts)
    Job.objects.filter(id=unwanted.id).update(cancel_asked=True)
    sweep(waiting=nothing_waits)
    assert (again(poison).state, again(poison).error["code"]) == ("failed", "worker_lost")
    assert again(unwanted).state == "cancelled"


def test_a_broker_that_is_down_fails_nobody_and_the_sweeper_sends_later(
    settings: Any, django_capture_on_commit_callbacks: Any
) -> None:
    settings.CTX_JOB_SENDER = f"{__name__}.no_broker"
    with django_capture_on_commit_callbacks(execute=True):
        job = asked(new_actor())
    assert again(job).sent_at is None
    sweep(waiting=nothing_waits)
    assert again(job).sent_at is None


def no_broker(*_: object) -> None:
    raise ConnectionRefusedError


def test_the_log_keeps_the_newest_lines(does: Callable[[Work], None]) -> None:
    def work(context: JobContext) -> dict[str, Any]:
        for number in range(LOG_LINES + 20):
            context.note(f"line {number} " + "x" * 500)
        return {}

    does(work)
    job = asked(new_actor())
    run_now(job)
    lines = again(job).log
    assert len(lines) == LOG_LINES
    assert lines[-1]["text"] == "Done."
    assert max(len(line["text"]) for line in lines) == 300


def test_waiting_gives_the_row_once_it_has_ended_or_as_it_stands(
    does: Callable[[Work], None],
) -> None:
    does(lambda _: {})
    job = asked(new_actor())
    assert wait_for(job, 0.1).state == "queued"
    run_now(job)
    assert wait_for(job, 60).state == "done"


def test_upkeep_removes_what_has_passed_its_keeping_time() -> None:
    actor = new_actor()
    for name, created in (("old", AT), ("new", None)):
        row = Idempotency.objects.create(
            tenant_id=actor.tenant_id, key=name, operation="x", body_sha256="", created_at=AT
        )
        if created is None:
            Idempotency.objects.filter(tenant_id=actor.tenant_id, key=row.key).update(
                created_at=Now() - timedelta(hours=23)
            )
    old = asked(actor)
    Job.objects.filter(id=old.id).update(state=JobState.DONE, finished_at=AT)
    ask_for_upkeep()
    ask_for_upkeep()
    for kind in ("upkeep.expire", "upkeep.retain"):
        assert work_off(actor.tenant_id, kind=kind) == [(kind, "done")]
    left = Idempotency.objects.filter(tenant_id=actor.tenant_id)
    assert [row.key for row in left] == ["new"]
    assert not Job.objects.filter(id=old.id).exists()


@pytest.mark.django_db(transaction=True)
def test_a_heartbeat_keeps_the_lease_and_shows_progress_from_inside_a_transaction(
    does: Callable[[Work], None],
) -> None:
    seen: list[tuple[str, int]] = []
    shown = threading.Event()

    def look(job: Job) -> None:
        try:
            while not shown.is_set():
                row = again(job)
                if row.phase == "deep":
                    seen.append((row.phase, row.percent))
                    shown.set()
                shown.wait(0.05)
        finally:
            connection.close()

    def work(context: JobContext) -> dict[str, Any]:
        with transaction.atomic():
            context.progress("deep", 30)
            assert shown.wait(30)
            context.hold()
        context.check()
        return {}

    does(work)
    job = asked(new_actor())
    watcher = threading.Thread(target=look, args=(job,))
    watcher.start()
    assert run_job(job.tenant_id, job.id, "test") == "done"
    watcher.join()
    assert seen == [("deep", 30)]
