"""What bars another try, and what does not: a key that comes and goes lifts nothing, adds nothing and is told once."""

from __future__ import annotations

import threading
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections

from ctxengine.engine.events import EventType
from ctxengine.ledger.models import Job
from ctxengine.providers.strict_local.script import Reply
from ctxengine.service.boundary import ask
from ctxengine.service.clock import utc_now
from ctxengine.service.compact import compact
from ctxengine.service.specs import Compact, ServiceError
from ctxengine.service.summaries.ask import AnswerLater
from tests.service.boundary.staging import KIND, Stage, provided
from tests.work_off import work_off

pytestmark = pytest.mark.django_db


def without_a_key(stage: Stage) -> None:
    """A request that nobody can be asked to compact for; then the key is there again."""
    keys, stage.settings.CTX_PROVIDER_KEYS = stage.settings.CTX_PROVIDER_KEYS, {}
    assert stage.refusal().extra["reason"] == "missing_configuration"
    stage.settings.CTX_PROVIDER_KEYS = keys


def ended(stage: Stage) -> list[str]:
    return [event.payload["code"] for event in stage.runtime.events(EventType.BOUNDARY_FINISHED)]


@pytest.mark.parametrize("status", [401, 301])
def test_what_is_barred_for_good_stays_barred_while_a_key_comes_and_goes(
    status: int, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with provided(settings, monkeypatch) as stage:
        stage.due("anthropic")
        stage.strict.provider.script.add([Reply(status=status)])
        stage.work_off()
        barred = stage.refusal().extra
        without_a_key(stage)
        assert stage.refusal().extra == barred
        without_a_key(stage)
    assert ended(stage) == [barred["reason"], "missing_configuration"], "told once"
    assert Job.objects.filter(kind=KIND).count() == 1


def test_a_key_that_comes_and_goes_shortens_no_rest_and_counts_as_no_failure(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with provided(settings, monkeypatch) as stage:
        stage.due("anthropic")
        for attempt in range(2):
            stage.strict.provider.script.add([Reply(status=529)])
            stage.work_off()
            monkeypatch.setattr(ask, "utc_now", utc_now)
            without_a_key(stage)
            resting = stage.refusal().extra
            assert resting["reason"] == "compaction_unavailable"
            rest = 30 * 2**attempt
            assert rest - 20 < resting["retry_after_s"] <= rest, "only failures of a call double it"
            later = utc_now() + timedelta(hours=attempt + 1)
            monkeypatch.setattr(ask, "utc_now", lambda later=later: later)
        stage.work_off()
        assert len(stage.runtime.events(EventType.COMPACTED)) == 1
        stage.runtime.assemble()


@pytest.mark.parametrize("preview", [False, True])
@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_by_hand_without_a_key_is_refused_before_anything_is_queued(
    provider: str, preview: bool, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with provided(settings, monkeypatch) as stage:
        stage.due(provider)
        settings.CTX_PROVIDER_KEYS = {}
        with pytest.raises(ServiceError) as caught:
            compact(
                actor=stage.runtime.actor,
                session_id=stage.runtime.session,
                spec=Compact(preview=preview),
            )
        assert (caught.value.code, caught.value.status) == ("compaction_failed", 409)
        assert caught.value.extra["reason"] == "missing_configuration"
        assert not Job.objects.filter(kind=KIND).exists() and not ended(stage)


@pytest.mark.django_db(transaction=True)
def test_requests_at_one_moment_tell_one_failure_once(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with provided(settings, monkeypatch) as stage:
        stage.due("anthropic")
        settings.CTX_PROVIDER_KEYS = {}
        gate = threading.Barrier(2)
        opened, told = ask.log_of, list[str]()

        def log_of(session: Any) -> Any:
            """The log, whose writers meet if they can: one that holds the lock waits in vain."""
            log = opened(session)
            written = log.append

            def meet(*given: Any, **named: Any) -> Any:
                with suppress(threading.BrokenBarrierError):
                    gate.wait(0.4)
                return written(*given, **named)

            log.append = meet
            return log

        monkeypatch.setattr(ask, "log_of", log_of)

        def assemble() -> None:
            try:
                stage.runtime.assemble()
            except ServiceError as error:
                told.append(str(error.extra["reason"]))
            finally:
                connections.close_all()

        threads = [threading.Thread(target=assemble) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert told == ["missing_configuration"] * 2
        assert ended(stage) == ["missing_configuration"]


def test_a_worker_that_got_its_key_is_asked_by_hand(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with provided(settings, monkeypatch) as stage:
        stage.due("anthropic")
        keys = settings.CTX_PROVIDER_KEYS
        with pytest.raises(AnswerLater):
            stage.runtime.assemble()
        settings.CTX_PROVIDER_KEYS = {}
        work_off(stage.runtime.actor.tenant_id, kind=KIND)
        settings.CTX_PROVIDER_KEYS = keys
        assert stage.refusal().extra["reason"] == "worker_unconfigured"
        compact(actor=stage.runtime.actor, session_id=stage.runtime.session, spec=Compact())
        work_off(stage.runtime.actor.tenant_id, kind=KIND)
        stage.runtime.assemble()
