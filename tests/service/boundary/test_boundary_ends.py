"""Every way a compaction's attempt can end leaves an end in the log, and none of them lets requests storm the provider."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError

from ctxengine.engine.events import EventType
from ctxengine.ledger.models import Job, JobState
from ctxengine.providers.adapters.contract import ProviderError
from ctxengine.providers.strict_local.script import Reply
from ctxengine.service.boundary import ask, job, ports
from ctxengine.service.clock import utc_now
from ctxengine.service.compact import compact
from ctxengine.service.jobs.cancel import cancel_job
from ctxengine.service.jobs.run import run_job
from ctxengine.service.jobs.stops import LeaseLost
from ctxengine.service.specs import Compact, ServiceError
from ctxengine.service.summaries.ask import AnswerLater
from tests.cast import Runtime
from tests.service.boundary.talking import calls, strict_provider
from tests.service.boundary.test_boundary_changes import grown, outcomes
from tests.work_off import work_off

pytestmark = pytest.mark.django_db

KIND = "compaction.boundary"


def first_call(
    monkeypatch: pytest.MonkeyPatch,
    act: Callable[[], object],
    *,
    of: Any = ports,
    name: str = "compaction_call",
) -> None:
    """Do something right before a part of the attempt, the first time that it is reached."""
    real = getattr(of, name)
    done: list[bool] = []

    def replaced(*arguments: Any, **named: Any) -> Any:
        if not done:
            done.append(True)
            act()
        return real(*arguments, **named)

    monkeypatch.setattr(of, name, replaced)


def unended(runtime: Runtime) -> set[str]:
    """Operations that began and have no end."""
    started = {event.payload["operation"] for event in runtime.events(EventType.BOUNDARY_STARTED)}
    return started - {e.payload["operation"] for e in runtime.events(EventType.BOUNDARY_FINISHED)}


def raising(error: BaseException) -> Callable[[], object]:
    def act() -> object:
        raise error

    return act


def jobs_of_six_requests(runtime: Runtime) -> int:
    """How many jobs run while a runtime asks six times for the same request."""
    ran = 0
    for _ in range(6):
        ran += len(work_off(runtime.actor.tenant_id, kind=KIND))
        try:
            runtime.assemble()
        except AnswerLater:
            continue
        except ServiceError:
            continue
    return ran


PLACES = [(job, "look"), (ports, "compaction_call"), (job, "install"), (job, "make_window")]


@pytest.mark.parametrize(("module", "name"), PLACES, ids=[name for _, name in PLACES])
def test_a_defect_anywhere_is_an_end_and_bars_the_next_request(
    module: Any, name: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with strict_provider(settings):
        runtime = grown("anthropic")
        first_call(monkeypatch, raising(ZeroDivisionError("prompt text")), of=module, name=name)
        assert work_off(runtime.actor.tenant_id, kind=KIND) == [(KIND, "failed")]
        assert outcomes(runtime) == [("failed", "internal")]
        (ended,) = runtime.events(EventType.BOUNDARY_FINISHED)
        assert ended.payload["retryable"] is False and "prompt text" not in str(ended.payload)
        assert not unended(runtime)
        assert jobs_of_six_requests(runtime) == 0
        with pytest.raises(ServiceError) as caught:
            runtime.assemble()
        assert caught.value.extra["reason"] == "internal"
        assert caught.value.extra["retryable"] is False
        assert "by hand" in str(caught.value.extra["remedy"])


@pytest.mark.parametrize(
    "error", [OperationalError("gone"), SystemExit(1)], ids=["database", "exit"]
)
def test_what_may_pass_is_an_end_that_may_be_tried_again(
    error: BaseException, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with strict_provider(settings):
        runtime = grown("anthropic")
        first_call(monkeypatch, raising(error), of=job, name="install")
        if isinstance(error, SystemExit):
            with pytest.raises(SystemExit):
                work_off(runtime.actor.tenant_id, kind=KIND)
        else:
            assert work_off(runtime.actor.tenant_id, kind=KIND) == [(KIND, "again")]
        assert outcomes(runtime) == [("failed", "interrupted")]
        assert runtime.events(EventType.BOUNDARY_FINISHED)[0].payload["retryable"] is True
        assert not unended(runtime)


@pytest.mark.parametrize("name", ["compaction_call", "install"])
def test_a_cancel_at_any_moment_is_an_end(
    name: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with strict_provider(settings):
        runtime = grown("anthropic")
        row = Job.objects.get(kind=KIND)
        first_call(
            monkeypatch,
            lambda: cancel_job(actor=runtime.actor, job_id=row.id),
            of=job if name == "install" else ports,
            name=name,
        )
        assert work_off(runtime.actor.tenant_id, kind=KIND) == [(KIND, "cancelled")]
        assert outcomes(runtime) == [("cancelled", "cancelled")]
        assert not unended(runtime) and not runtime.events(EventType.COMPACTED)
        with pytest.raises(AnswerLater):
            runtime.assemble()


def expired(row: Job) -> None:
    """The lease of whoever runs the job has run out."""
    Job.objects.filter(id=row.id).update(lease_until=utc_now() - timedelta(minutes=1))


def taken_over(runtime: Runtime, row: Job) -> str:
    """Another worker runs the job whose first worker seems lost."""
    expired(row)
    return run_job(runtime.actor.tenant_id, row.id, "other", beats=False)


@pytest.mark.parametrize("then", [None, Reply(status=529), "defect"], ids=["well", "529", "defect"])
@pytest.mark.parametrize("name", ["compaction_call", "install"])
def test_a_worker_that_lost_its_lease_writes_nothing_more(
    name: str, then: Any, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with strict_provider(settings) as strict:
        runtime = grown("anthropic")
        row = Job.objects.get(kind=KIND)
        seen: list[Any] = []

        def act() -> None:
            seen.append(taken_over(runtime, row))
            seen.append(runtime.log.head())
            if isinstance(then, Reply):
                strict.provider.script.add([then])
            elif then:
                raise ZeroDivisionError

        first_call(monkeypatch, act, of=job if name == "install" else ports, name=name)
        assert run_job(runtime.actor.tenant_id, row.id, "first", beats=False) == "lost"
        assert seen[0] == "done"
        assert runtime.log.head() == seen[1], "the first worker wrote after it lost its lease"
        # Newest first or oldest first: the other worker ended what was begun, and completed its own.
        assert sorted(outcomes(runtime), key=str) == [
            ("completed", None),
            ("failed", "interrupted"),
        ]
        assert len(runtime.events(EventType.COMPACTED)) == 1 and not unended(runtime)
        runtime.assemble()


def test_what_a_dead_worker_began_is_ended_by_the_next_one(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with strict_provider(settings):
        runtime = grown("anthropic")
        row = Job.objects.get(kind=KIND)
        first_call(monkeypatch, raising(LeaseLost()))
        assert work_off(runtime.actor.tenant_id, kind=KIND) == [(KIND, "lost")]
        assert len(unended(runtime)) == 1 and not outcomes(runtime)
        assert taken_over(runtime, row) == "done"
        assert not unended(runtime)
        assert Job.objects.get(id=row.id).state == JobState.DONE


def test_a_count_that_fails_for_a_while_is_asked_for_again(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with strict_provider(settings):
        runtime = grown("anthropic")
    work_off(runtime.actor.tenant_id, kind=KIND)
    with pytest.raises(ServiceError) as caught:
        runtime.assemble()
    assert caught.value.extra["reason"] == "count_unavailable"
    assert caught.value.extra["retryable"] is True and caught.value.extra["retry_after_s"] > 0
    later = utc_now() + timedelta(hours=1)
    monkeypatch.setattr(ask, "utc_now", lambda: later)
    with strict_provider(settings):
        with pytest.raises(AnswerLater):
            runtime.assemble()
        assert work_off(runtime.actor.tenant_id, kind=KIND) == [(KIND, "done")]
        runtime.assemble()


def test_a_count_that_never_was_is_not_asked_for_again(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with strict_provider(settings):
        runtime = grown("anthropic")
        none = raising(ProviderError("count_unavailable", "It has no counting endpoint."))
        first_call(monkeypatch, none, name="exact_count_call")
        work_off(runtime.actor.tenant_id, kind=KIND)
        assert jobs_of_six_requests(runtime) == 0
        with pytest.raises(ServiceError) as caught:
            runtime.assemble()
        assert caught.value.extra["reason"] == "count_unavailable"
        assert caught.value.extra["retryable"] is False


def test_a_mended_key_is_tried_when_somebody_compacts_by_hand(settings: Any) -> None:
    with strict_provider(settings) as strict:
        runtime = grown("anthropic")
        strict.provider.script.add([Reply(status=401)])
        work_off(runtime.actor.tenant_id, kind=KIND)
        for _ in range(2):
            with pytest.raises(ServiceError) as caught:
                runtime.assemble()
            assert caught.value.extra["reason"] == "auth"
            assert "compact by hand" in str(caught.value.extra["remedy"])
        assert len(calls(runtime, "compaction")) == 1
        compact(actor=runtime.actor, session_id=runtime.session, spec=Compact())
        assert work_off(runtime.actor.tenant_id, kind=KIND) == [(KIND, "done")]
        runtime.assemble()
