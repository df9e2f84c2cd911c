"""Probes as jobs: tried again where the provider failed for a while, ended where nobody wants them, kept whole or not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db.models.functions import Now

from ctxengine.engine.capacity.profile import metadata_profile
from ctxengine.engine.tokens.usage import Usage
from ctxengine.ledger.models import CapacityRow, Job, JobState
from ctxengine.providers.adapters.contract import Completion, Prompt, ProviderError, Stop
from ctxengine.providers.strict_local.provider import StrictProvider
from ctxengine.providers.strict_local.script import Reply
from ctxengine.providers.strict_local.server import StrictServer
from ctxengine.service.jobs.cancel import cancel_job
from ctxengine.service.jobs.context import JobContext
from ctxengine.service.jobs.run import run_job
from ctxengine.service.probe.job import start_probe
from ctxengine.service.probe.ladder import Climb, World
from ctxengine.service.probe.run_probe import ProbeWanted
from ctxengine.service.specs import Actor
from ctxengine.service.wiring import counter_of
from tests.cast import new_actor

pytestmark = pytest.mark.django_db

WANTED = ProbeWanted(provider="ollama", model="strict/horizon-6000", largest=6_000)


@pytest.fixture
def provider(settings: Any) -> Iterator[StrictProvider]:
    with StrictServer(StrictProvider()) as server:
        settings.CTX_PROVIDER_URLS = {"ollama": server.url}
        yield server.provider


@pytest.fixture
def actor() -> Actor:
    return new_actor()


def run_now(job: Job) -> str:
    Job.objects.filter(id=job.id).update(not_before=Now())
    return run_job(job.tenant_id, job.id, "test", beats=False)


def row(job: Job) -> Job:
    return Job.objects.get(tenant_id=job.tenant_id, id=job.id)


def profiles(actor: Actor) -> int:
    return CapacityRow.objects.filter(tenant_id=actor.tenant_id).count()


def refused(*, retry_after: float, times: int = 3) -> list[Reply]:
    return [Reply(status=429, retry_after=retry_after)] * times


def test_a_failure_that_passes_is_tried_again_by_the_job(
    provider: StrictProvider, actor: Actor
) -> None:
    provider.script.add(refused(retry_after=0.01))
    job = start_probe(actor=actor, wanted=WANTED)
    assert run_now(job) == "again"
    assert (row(job).error["code"], profiles(actor)) == ("rate_limited", 0)
    assert run_now(job) == "done"
    assert (row(job).attempts, profiles(actor)) == (2, 1)


def test_a_failure_that_stays_ends_the_job_with_the_providers_code(
    provider: StrictProvider, actor: Actor
) -> None:
    provider.script.add([Reply(status=401)])
    job = start_probe(actor=actor, wanted=WANTED)
    assert run_now(job) == "failed"
    assert (row(job).error["code"], row(job).attempts) == ("auth", 1)


def test_no_worker_rests_past_the_time_box_and_the_job_waits_as_long_as_it_was_told(
    provider: StrictProvider, actor: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ctxengine.service.probe.run_probe.time.sleep", pytest.fail)
    provider.script.add(refused(retry_after=3_000))
    job = start_probe(actor=actor, wanted=WANTED)
    assert run_job(job.tenant_id, job.id, "test", beats=False) == "again"
    waits = row(job).not_before - row(job).created_at
    assert waits.total_seconds() >= 3_000


def test_a_rest_ends_when_nobody_wants_the_probe_any_more(
    provider: StrictProvider, actor: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    rests: list[float] = []

    def sleep(seconds: float) -> None:
        rests.append(seconds)
        cancel_job(actor=actor, job_id=job.id)

    monkeypatch.setattr("ctxengine.service.probe.run_probe.time.sleep", sleep)
    provider.script.add(refused(retry_after=300))
    job = start_probe(actor=actor, wanted=WANTED)
    assert run_now(job) == "cancelled"
    assert (len(rests), max(rests) < 1, profiles(actor)) == (1, True, 0)


def test_a_cancelled_probe_keeps_nothing(
    provider: StrictProvider, actor: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = JobContext.note

    def noting(context: JobContext, text: str) -> None:
        cancel_job(actor=actor, job_id=context.job.id)
        note(context, text)

    monkeypatch.setattr(JobContext, "note", noting)
    job = start_probe(actor=actor, wanted=WANTED)
    assert run_now(job) == "cancelled"
    assert (row(job).state, profiles(actor)) == (JobState.CANCELLED, 0)


@pytest.mark.parametrize(
    ("change", "ended"), [({"worker": "another"}, "lost"), ({"cancel_asked": True}, "cancelled")]
)
def test_a_profile_and_its_jobs_outcome_are_kept_together_or_not_at_all(
    provider: StrictProvider,
    actor: Actor,
    monkeypatch: pytest.MonkeyPatch,
    change: dict[str, Any],
    ended: str,
) -> None:
    """The ladder is climbed; then another takes the job over, or somebody ends it, before the profile is written."""
    conclude = JobContext.conclude

    def late(context: JobContext, result: dict[str, Any]) -> None:
        Job.objects.filter(id=context.job.id).update(**change)
        conclude(context, result)

    monkeypatch.setattr(JobContext, "conclude", late)
    job = start_probe(actor=actor, wanted=WANTED)
    assert run_now(job) == ended
    assert (row(job).result, profiles(actor)) == ({}, 0)


def test_what_was_seen_before_the_time_ran_out_is_found() -> None:
    sent: list[Prompt] = []

    def send(prompt: Prompt) -> Completion:
        sent.append(prompt)
        if len(sent) > 1:
            raise ProviderError("rate_limited", "later", retryable=True, retry_after_s=3_000)
        return Completion("", Stop.END, "stop", (), Usage(prompt_total=1_000), "tiny", "1", 5)

    climb = Climb(
        profile=metadata_profile(
            provider="ollama", model="tiny", declared_window=8_000, max_output=512
        ),
        counter=counter_of("ollama", "tiny"),
        world=World(
            send=send,
            nonce=lambda: "0123456789abcdef",
            elapsed_s=lambda: 1.0,
            now=lambda: "2026-01-01T00:00:00+00:00",
            wait=lambda _: pytest.fail("it rested"),
            cancelled=lambda: False,
        ),
        time_box_s=60.0,
    )
    found = climb.run()
    assert (found.provenance.stopped, len(found.provenance.observations)) == ("time", 1)
