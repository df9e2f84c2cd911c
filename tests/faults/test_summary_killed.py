"""Worker, broker and database are killed while a model writes a summary: the job ends done once, and one summary stands.

All brokers that the machine has go through each fault at the same time, each with a worker, a database and a model of its own.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import pytest
from django.conf import settings
from django.db import Error, connection

from ctxengine.engine.events import EventType
from ctxengine.ledger.models import Job, JobState, SideCallRow
from ctxengine.providers.adapters.secret import Secret
from ctxengine.providers.strict_local.provider import StrictProvider
from ctxengine.providers.strict_local.server import StrictServer
from ctxengine.service.jobs.presence import workers_present
from ctxengine.service.specs import Content, TakeInput
from ctxengine.service.take_input import take_input
from ctxengine.site.postgres.server import EmbeddedPostgres
from tests.faults.checks import chains_verify, counts_add_up, no_job_is_left, requests_are_proven
from tests.faults.page import Check, fault
from tests.faults.stage import Stage, available_brokers, eventually, kill_postgres, make_schema
from tests.shrinking import body, row_nine
from tests.summing import TOLD, Summing, told

pytestmark = pytest.mark.faults

LONGER_THAN_THE_TEST_S = 120.0
LONG_ENOUGH_FOR_A_FAULT_S = 5.0
PROMPT = "/v1/messages"
KEY = "key-of-a-test"
CHECKS = (Check.CHAIN, Check.COUNTS, Check.PROOF, Check.ONCE, Check.JOBS)


class WritingStage(Stage):
    """A stage with a model that its worker, and the test beside it, may ask for summaries."""

    model: StrictServer

    @contextmanager
    def on(self) -> Iterator[None]:
        """Speak to this stage's database, broker and model."""
        before = settings.CTX_PROVIDER_URLS, settings.CTX_PROVIDER_KEYS
        settings.CTX_PROVIDER_URLS = {"anthropic": self.model.url}
        settings.CTX_PROVIDER_KEYS = {"anthropic": Secret(KEY)}
        try:
            with super().on():
                yield
        finally:
            settings.CTX_PROVIDER_URLS, settings.CTX_PROVIDER_KEYS = before

    def prompts(self) -> int:
        """How often the model was asked for words: counts are another matter."""
        log = self.model.provider.log.entries()
        return sum(entry.method == "POST" and entry.path == PROMPT for entry in log)

    def begin(self, *stalls: float) -> Writing:
        """Let a summary be wanted of a model that answers its first callers that slowly; gives what is at work then."""
        asked = self.prompts()
        self.model.provider.script.clear()
        self.model.provider.script.add([told(stall_seconds=seconds) for seconds in (*stalls, 0.0)])
        with self.on():
            runtime = Summing()
            writing = Writing(self, runtime, runtime.press(), asked)
        eventually(lambda: self.prompts() > asked, "a question to the model", self.said)
        with self.on():
            assert writing.now().state == JobState.RUNNING
            assert not runtime.events(EventType.COMPACTED)
        return writing


class Writing:
    """A summary on its way: the runtime whose session it is of, and the job."""

    def __init__(self, stage: WritingStage, runtime: Summing, job: Job, asked: int) -> None:
        self.stage = stage
        self.runtime = runtime
        self.job = job
        self.asked = asked

    def now(self) -> Job:
        return Job.objects.get(id=self.job.id)

    def has_ended(self) -> bool:
        try:
            return self.now().finished_at is not None
        except Error:
            connection.close()
            return False

    def ends_once(self, *, attempts: int, prompts: int) -> None:
        """The job ends done; one summary stands, and it is in the next request."""
        with self.stage.on():
            what = f"the end of the job on {self.stage.broker.name}"
            eventually(self.has_ended, what, self.stage.said)
            done = self.now()
            assert (done.state, done.attempts) == (JobState.DONE, attempts), (done.error, done.log)
            assert self.stage.prompts() - self.asked == prompts
            (compacted,) = self.runtime.events(EventType.COMPACTED)
            assert compacted.payload["writer"]["job"] == str(self.job.id)
            assert not self.runtime.events(EventType.COMPACTION_REFUSED)
            outcomes = SideCallRow.objects.filter(job_id=self.job.id).values_list("outcome")
            assert list(outcomes) == [("completed",)]
            built = self.runtime.assemble()
            assert row_nine(body(built)).count(TOLD) == 1
            assert self.runtime.say("Understood.").next == "finish"
            Check.ONCE.passed()
            chains_verify()
            counts_add_up()
            requests_are_proven()
            no_job_is_left()

    def held_until(self) -> datetime:
        """When the lease of the worker at work runs out, if it says nothing more."""
        with self.stage.on():
            until = self.now().lease_until
        assert until is not None
        return until

    def was_taken_up_after(self, lease_until: datetime) -> None:
        """The next attempt waited for the lease of the lost worker to run out."""
        with self.stage.on():
            (lost,) = [line for line in self.now().log if "worker was lost" in line["text"]]
        taken = datetime.fromisoformat(lost["at"])
        assert taken >= lease_until, (self.stage.broker.name, taken - lease_until)


@pytest.fixture(scope="module")
def stages(
    server: EmbeddedPostgres, django_db_blocker: pytest.FixtureRequest
) -> Iterator[list[WritingStage]]:
    """A stage for each broker that this machine has."""
    with django_db_blocker.unblock():  # type: ignore[attr-defined]
        started: list[WritingStage] = []
        try:
            for name, kind in available_brokers().items():
                model = StrictServer(StrictProvider())
                model.__enter__()
                access = {"CTX_PROVIDER_URLS": f"anthropic={model.url}", "ANTHROPIC_API_KEY": KEY}
                folder = Path(tempfile.mkdtemp(dir=os.environ["CTX_TEST_RUN_FOLDER"]))
                stage = WritingStage(kind, folder / name, server, f"summary_{name}", access)
                stage.model = model
                started.append(stage)
                stage.broker.start()
            for stage in started:
                make_schema(server, stage.database)
                stage.worker.start()
            for stage in started:
                with stage.on():
                    eventually(workers_present, f"a worker on {stage.broker.name}", stage.said)
            yield started
        finally:
            for stage in started:
                stage.end()
                stage.model.__exit__(None, None, None)


@fault("kill -9 of the worker", "while a model writes a summary, on each broker", *CHECKS)
def test_a_summary_whose_writer_is_killed_is_written_and_installed_once(
    stages: list[WritingStage],
) -> None:
    at_work = [stage.begin(LONGER_THAN_THE_TEST_S) for stage in stages]
    for stage in stages:
        stage.worker.kill()
    held = [writing.held_until() for writing in at_work]
    for stage in stages:
        stage.worker.start()
    for writing, until in zip(at_work, held, strict=True):
        writing.ends_once(attempts=2, prompts=2)
        writing.was_taken_up_after(until)


@fault(
    "loss of all that the broker knew", "while a model writes a summary, on each broker", *CHECKS
)
def test_a_summary_whose_broker_loses_its_data_is_installed_once(
    stages: list[WritingStage],
) -> None:
    at_work = [stage.begin(LONG_ENOUGH_FOR_A_FAULT_S) for stage in stages]
    for stage in stages:
        stage.broker.lose_everything()
    for stage in stages:
        stage.broker.start()
    for writing in at_work:
        writing.ends_once(attempts=1, prompts=1)
        assert writing.stage.worker.lives(), (writing.stage.broker.name, writing.stage.said())


@fault("kill -9 of Postgres", "while a model writes a summary, on each broker", *CHECKS)
def test_a_summary_whose_database_restarts_is_installed_once(
    stages: list[WritingStage], server: EmbeddedPostgres
) -> None:
    at_work = [stage.begin(LONG_ENOUGH_FOR_A_FAULT_S) for stage in stages]
    kill_postgres(server)
    server.start()
    for writing in at_work:
        writing.ends_once(attempts=1, prompts=1)
        assert writing.stage.worker.lives(), (writing.stage.broker.name, writing.stage.said())


@fault(
    "a slow provider", "while it writes a summary, and the user goes on talking",
    Check.SERVES, *CHECKS,
)  # fmt: skip
def test_a_session_takes_messages_while_a_slow_model_sums_it_up(
    stages: list[WritingStage],
) -> None:
    writing = stages[0].begin(LONG_ENOUGH_FOR_A_FAULT_S)
    with writing.stage.on():
        runtime = writing.runtime
        meanwhile = TakeInput(message=Content(raw="Said in the meantime."))
        take_input(actor=runtime.actor, run_id=runtime.run, spec=meanwhile)
        assert writing.now().finished_at is None, "the session did not wait for the model"
        Check.SERVES.passed()
    writing.ends_once(attempts=1, prompts=1)
    with writing.stage.on():
        told = [
            event
            for event in runtime.events(EventType.INPUT_RECEIVED)
            if event.run_id == runtime.run
        ]
        assert len(told) == 1
