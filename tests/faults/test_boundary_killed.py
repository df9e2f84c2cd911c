"""A worker is killed while a provider compacts, and while a model writes a note: each checkpoint is made once all the same."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.conf import settings

from ctxengine.engine.events import EventType
from ctxengine.ledger.models import Job, JobState
from ctxengine.providers.adapters.secret import Secret
from ctxengine.providers.strict_local.provider import StrictProvider
from ctxengine.providers.strict_local.script import Reply
from ctxengine.providers.strict_local.server import StrictServer
from ctxengine.service.end_run import end_run
from ctxengine.service.jobs.presence import workers_present
from ctxengine.service.specs import EndRun
from ctxengine.service.summaries.ask import AnswerLater
from ctxengine.site.postgres.server import EmbeddedPostgres
from tests.cast import Runtime
from tests.faults.checks import chains_verify, counts_add_up, no_job_is_left, requests_are_proven
from tests.faults.page import Check, fault
from tests.faults.stage import Embedded, Stage, eventually, make_schema
from tests.faults.test_jobs_killed import lease_is_over
from tests.service.boundary.staging import told
from tests.service.boundary.talking import session

pytestmark = pytest.mark.faults

LONGER_THAN_THE_TEST_S = 120.0
PROMPTS = {"anthropic": "/v1/messages", "openai": "/v1/chat/completions"}
"""Where a window is asked for, and where a note is."""
KEY = "key-of-a-test"
CHECKS = (Check.CHAIN, Check.COUNTS, Check.PROOF, Check.ONCE, Check.JOBS)


class CompactingStage(Stage):
    """A stage with providers that its worker, and the test beside it, may ask."""

    model: StrictServer

    @contextmanager
    def on(self) -> Iterator[None]:
        """Speak to this stage's database, broker and providers."""
        before = settings.CTX_PROVIDER_URLS, settings.CTX_PROVIDER_KEYS
        settings.CTX_PROVIDER_URLS = {
            "anthropic": self.model.url,
            "openai": self.model.openai_url,
        }
        settings.CTX_PROVIDER_KEYS = {name: Secret(KEY) for name in PROMPTS}
        try:
            with super().on():
                yield
        finally:
            settings.CTX_PROVIDER_URLS, settings.CTX_PROVIDER_KEYS = before

    def asked(self, provider: str) -> int:
        """How often the provider was asked for a window or a note."""
        log = self.model.provider.log.entries()
        return sum(entry.path == PROMPTS[provider] for entry in log)

    def begin(self, provider: str) -> tuple[Runtime, Job]:
        """A session whose compaction is under way at a provider that does not answer."""
        self.model.provider.script.add([Reply(text="Noted.", stall_seconds=LONGER_THAN_THE_TEST_S)])
        with self.on():
            runtime = session(provider, window=9_000)
            for number in range(6):
                runtime.ask(f"Remember item {number}: " + "it is as long as it is " * 130)
                end_run(actor=runtime.actor, run_id=runtime.run, spec=EndRun(outcome="completed"))
            runtime.ask("And now?")
            with pytest.raises(AnswerLater) as later:
                runtime.assemble()
        eventually(lambda: self.asked(provider) == 1, f"a question to {provider}", self.said)
        return runtime, later.value.job


@pytest.fixture(scope="module")
def stage(
    server: EmbeddedPostgres, django_db_blocker: pytest.FixtureRequest
) -> Iterator[CompactingStage]:
    """A stage on the broker that the product brings along."""
    folder = Path(tempfile.mkdtemp(dir=os.environ["CTX_TEST_RUN_FOLDER"]))
    with (
        django_db_blocker.unblock(),  # type: ignore[attr-defined]
        StrictServer(StrictProvider()) as model,
    ):
        access = {
            "CTX_PROVIDER_URLS": f"anthropic={model.url},openai={model.openai_url}",
            "ANTHROPIC_API_KEY": KEY,
            "OPENAI_API_KEY": KEY,
        }
        found = CompactingStage(Embedded, folder / "stage", server, "boundary", access)
        found.model = model
        try:
            found.broker.start()
            make_schema(server, found.database)
            found.worker.start()
            with found.on():
                eventually(workers_present, "a worker", found.said)
            yield found
        finally:
            found.end()


@fault("kill -9 of the worker", "while a provider compacts, or a model writes a note", *CHECKS)
def test_a_compaction_whose_worker_is_killed_is_installed_once(stage: CompactingStage) -> None:
    begun = [stage.begin(provider) for provider in PROMPTS]
    with stage.on():
        before = [told(runtime) for runtime, _ in begun]
        for runtime, job in begun:
            assert Job.objects.get(id=job.id).state == JobState.RUNNING
            assert len(runtime.events(EventType.BOUNDARY_STARTED)) == 1
    stage.worker.kill()
    with stage.on():
        assert not [e for runtime, _ in begun for e in runtime.events(EventType.BOUNDARY_FINISHED)]
    stage.worker.start()
    with stage.on():
        for (runtime, job), messages in zip(begun, before, strict=True):
            ends_once(stage, runtime, job)
            assert told(runtime)[: len(messages)] == messages
        Check.ONCE.passed()
        chains_verify()
        counts_add_up()
        requests_are_proven()
        no_job_is_left()


def ends_once(stage: CompactingStage, runtime: Runtime, job: Job) -> None:
    """The lost attempt has an end in the log, the next one made the checkpoint, and the next request stands on it."""

    def has_ended() -> bool:
        return Job.objects.get(id=job.id).finished_at is not None

    def taken_up() -> bool:
        lease_is_over(job, attempts=1)
        return Job.objects.get(id=job.id).attempts == 2

    eventually(taken_up, f"another attempt for {runtime.provider}", stage.said)
    eventually(has_ended, f"the end of the job of {runtime.provider}", stage.said)
    done = Job.objects.get(id=job.id)
    assert (done.state, done.attempts) == (JobState.DONE, 2), (done.error, done.log)
    started = [e.payload["operation"] for e in runtime.events(EventType.BOUNDARY_STARTED)]
    ended = [e.payload for e in runtime.events(EventType.BOUNDARY_FINISHED)]
    assert [(e["operation"], e["outcome"], e["code"]) for e in ended] == [
        (started[0], "failed", "interrupted"),
        (started[1], "completed", None),
    ]
    (made,) = runtime.events(EventType.COMPACTED)
    assert made.payload["kind"] == ("native" if runtime.provider == "anthropic" else "note")
    assert stage.asked(runtime.provider) == 2
    runtime.assemble()
    assert runtime.requests[-1].inputs["projection"] == made.sequence
    assert runtime.say("Understood.").next == "finish"
