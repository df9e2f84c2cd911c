"""A worker dies at each stage of a job, messages come twice or make no sense, a job kills whoever touches it."""

from __future__ import annotations

import json
import os
import tempfile
import uuid
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db.models.functions import Now
from kombu import Connection

from ctxengine.engine.events import EventType
from ctxengine.ledger.models import Event, ImportRow, Job, JobState, SessionRow
from ctxengine.providers.strict_local.provider import StrictProvider
from ctxengine.providers.strict_local.server import StrictServer
from ctxengine.service.erase_job import erase_later
from ctxengine.service.imports.start_import import start_import
from ctxengine.service.jobs.presence import workers_present
from ctxengine.service.specs import Actor, PrincipalSpec
from ctxengine.site.postgres.server import EmbeddedPostgres
from tests.cast import Runtime, new_actor
from tests.faults import deaths
from tests.faults.checks import chains_verify, counts_add_up, no_job_is_left, requests_are_proven
from tests.faults.page import Check, fault
from tests.faults.stage import Embedded, Stage, eventually, make_schema, send_job
from tests.faults.web import Conversation, Web
from workers.app import app, queue_on_broker, transport_options
from workers.tasks import RUN_JOB

pytestmark = pytest.mark.faults

DATABASE = "jobs"
SESSIONS_OF_A_PERSON = 3
WHOLE = (Check.CHAIN, Check.COUNTS, Check.JOBS)
STAGES_OF_A_JOB = [
    ("ctxengine.service.jobs.run:take_lease", "before", 1),
    ("ctxengine.service.jobs.run:take_lease", "after", 1),
    ("statement", "before", 12),
    ("commit", "before", 1),
    ("commit", "after", 1),
    ("ctxengine.service.jobs.run:_end", "before", 1),
    ("ctxengine.service.jobs.run:_end", "after", 1),
]
"""Before and after the lease, in the work, around the commit of the work, before and after the outcome stands."""


@pytest.fixture(scope="module")
def model() -> Iterator[StrictServer]:
    """A model that counts."""
    with StrictServer(StrictProvider()) as running:
        yield running


@pytest.fixture(scope="module")
def stage(
    server: EmbeddedPostgres, model: StrictServer, django_db_blocker: pytest.FixtureRequest
) -> Iterator[Stage]:
    """One worker, on the embedded broker, which dies where a test wants it."""
    with django_db_blocker.unblock():  # type: ignore[attr-defined]
        make_schema(server, DATABASE)
        folder = Path(tempfile.mkdtemp(dir=os.environ["CTX_TEST_RUN_FOLDER"]))
        made = Stage(
            Embedded, folder / DATABASE, server, DATABASE, calling(model),
            application="tests.faults.worker_that_dies",
        )  # fmt: skip
        before = settings.CTX_DATA_DIR
        try:
            made.broker.start()
            made.worker.start()
            settings.CTX_DATA_DIR = made.folder
            with made.on():
                eventually(workers_present, "a worker", made.said)
                yield made
        finally:
            settings.CTX_DATA_DIR = before
            made.end()


def calling(model: StrictServer) -> dict[str, str]:
    return {"CTX_PROVIDER_URLS": f"anthropic={model.url}", "ANTHROPIC_API_KEY": "key-of-a-test"}


def person() -> Actor:
    """A tenant with a person in some sessions."""
    actor = new_actor()
    for _ in range(SESSIONS_OF_A_PERSON):
        Runtime(actor=actor, principal=PrincipalSpec(id="p")).turn("Which port?", "5432.")
    return actor


def transcript(actor: Actor) -> bytes:
    """A foreign conversation, another for each tenant."""
    messages: list[Any] = []
    for number in range(40):
        messages.append({"role": "user", "content": f"Question {number} of {actor.tenant_id}?"})
        messages.append({"role": "assistant", "content": f"Answer {number}. " * 20})
    return json.dumps({"messages": messages}).encode()


def job_of(actor: Actor, kind: str) -> Job:
    return Job.objects.get(tenant_id=actor.tenant_id, kind=kind)


def lease_is_over(job: Job, **held: int) -> None:
    """Spend the wait for the lease of a worker that is gone; `held` says which, since another may have taken over meanwhile."""
    rows = Job.objects.filter(tenant_id=job.tenant_id, id=job.id, state=JobState.RUNNING)
    rows.filter(**held).update(lease_until=Now() - timedelta(seconds=1))


def dies_once_and_is_done(stage: Stage, actor: Actor, kind: str) -> Job:
    """The armed fault is met, and the job ends done all the same."""
    eventually(lambda: not stage.death.exists(), "the worker's death", stage.said)
    job = job_of(actor, kind)

    def ended() -> bool:
        # Its holder is dead; whoever lives renews a lease long before its end.
        lease_is_over(job, attempts=1)
        return job_of(actor, kind).finished_at is not None

    eventually(ended, f"the end of the {kind}", stage.said)
    found = job_of(actor, kind)
    assert found.state == JobState.DONE, (found.error, found.log)
    return found


@fault(
    "kill -9 of the process that works on a job",
    "at each stage of an erasure: around the lease, in the work, around its commits and its outcome",
    Check.ONCE, *WHOLE,
)  # fmt: skip
def test_an_erasure_is_done_once_at_whatever_stage_its_worker_dies(stage: Stage) -> None:
    for place, when, nth in STAGES_OF_A_JOB:
        actor = person()
        deaths.arm(stage.death, place, when, nth, tenant=str(actor.tenant_id))
        erase_later(actor=actor, principal="p", note="asked for")
        job = dies_once_and_is_done(stage, actor, "people.erase")
        assert job.attempts <= 2, (place, when, job.log)
        erased = Event.objects.filter(tenant_id=actor.tenant_id, type=EventType.PERSON_ERASED)
        sessions = list(erased.values_list("session_id", flat=True))
        assert len(sessions) == len(set(sessions)) == SESSIONS_OF_A_PERSON, (place, when)
    Check.ONCE.passed()
    chains_verify()
    counts_add_up()
    no_job_is_left()


@fault(
    "kill -9 of the process that works on a job",
    "at each stage of an import: around the lease, in the middle, around its commit and its outcome",
    Check.ONCE, Check.PROOF, *WHOLE,
)  # fmt: skip
def test_an_import_is_there_once_at_whatever_stage_its_worker_dies(stage: Stage) -> None:
    for place, when, nth in STAGES_OF_A_JOB:
        actor = new_actor()
        deaths.arm(stage.death, place, when, nth, tenant=str(actor.tenant_id))
        start_import(actor=actor, name="a.json", chunks=[transcript(actor)])
        dies_once_and_is_done(stage, actor, "transcript.import")
        assert ImportRow.objects.filter(tenant_id=actor.tenant_id).count() == 1
        (session,) = SessionRow.objects.filter(tenant_id=actor.tenant_id)
        assert session.turns == 40
    Check.ONCE.passed()
    chains_verify()
    counts_add_up()
    requests_are_proven()
    no_job_is_left()


@fault(
    "kill -9 of the web process",
    "between the commit of a write with a job and the job's message",
    Check.RETRY, Check.ONCE, *WHOLE,
)  # fmt: skip
def test_a_job_whose_message_was_never_sent_is_found_and_done(
    stage: Stage, server: EmbeddedPostgres, model: StrictServer
) -> None:
    web = Web(
        server, DATABASE, stage.folder / "web",
        {**calling(model), "CELERY_BROKER_URL": stage.broker.url},
    )  # fmt: skip
    try:
        web.start()
        conversation = Conversation(web)
        once = uuid.uuid4().hex
        deaths.arm(web.death, "ctxengine.service.jobs.messages:deliver", "before")
        assert conversation.send("open", once).status == 0
        assert not web.death.exists()
        actor = Actor(conversation.tenant, "system")
        eventually(
            lambda: job_of(actor, "plan.measure").finished_at, "the end of the job", stage.said
        )
        job = job_of(actor, "plan.measure")
        assert (job.state, job.attempts) == (JobState.DONE, 1), (job.error, job.log)
        conversation.repeated("open", once)
        assert SessionRow.objects.filter(tenant_id=conversation.tenant).count() == 1
        Check.RETRY.passed()
        Check.ONCE.passed()
        chains_verify()
        counts_add_up()
        no_job_is_left()
    finally:
        web.process.kill()


@fault(
    "messages that come many times, too late, out of order, or make no sense",
    "while a worker serves", Check.ONCE, Check.SERVES, *WHOLE,
)  # fmt: skip
def test_a_worker_does_each_job_once_whatever_messages_come(stage: Stage) -> None:
    actors = [person() for _ in range(3)]
    jobs = [erase_later(actor=actor, principal="p", note="asked for") for actor in actors]
    for _ in range(5):
        for job in reversed(jobs):
            send_job(job.tenant_id, job.id, job.queue)
    nonsense(stage)
    for job, actor in zip(jobs, actors, strict=True):
        # Another tenant's name with this job's number, and this tenant's with another's.
        send_job(actors[0].tenant_id, jobs[-1].id, job.queue)
        eventually(lambda a=actor: job_of(a, "people.erase").finished_at, "the end", stage.said)  # type: ignore[misc]
    for job in jobs:
        send_job(job.tenant_id, job.id, job.queue)
    afterwards = person()
    erase_later(actor=afterwards, principal="p", note="asked for")
    eventually(lambda: job_of(afterwards, "people.erase").finished_at, "a later job", stage.said)
    for actor in (*actors, afterwards):
        job = job_of(actor, "people.erase")
        assert (job.state, job.attempts) == (JobState.DONE, 1), job.log
        erased = Event.objects.filter(tenant_id=actor.tenant_id, type=EventType.PERSON_ERASED)
        assert erased.count() == SESSIONS_OF_A_PERSON
    Check.ONCE.passed()
    assert stage.worker.lives(), stage.said()
    Check.SERVES.passed()
    chains_verify()
    counts_add_up()
    no_job_is_left()


def nonsense(stage: Stage) -> None:
    """Messages that name no job, no task, or are no message of ours."""
    queue = queue_on_broker("upkeep")
    options = transport_options(stage.broker.url)
    with Connection(stage.broker.url, transport_options=options) as broker:
        for arguments in ((str(uuid.uuid4()), str(uuid.uuid4())), ("x", "y"), (), (1, 2, 3)):
            app.send_task(RUN_JOB, arguments, queue=queue, connection=broker, retry=False)
        app.send_task("nobody.knows.this", (), queue=queue, connection=broker, retry=False)
        with broker.Producer() as producer:
            producer.publish({"hello": 1}, routing_key=queue, exchange=queue)
            producer.publish(b"\xff\0", routing_key=queue, exchange=queue, content_type="x/y")


@fault(
    "a job that kills every process that takes it, and one that meets a defect",
    "beside jobs of others", Check.SERVES, *WHOLE,
)  # fmt: skip
def test_a_poisoned_job_ends_failed_and_holds_up_nobody(stage: Stage) -> None:
    poisoned, other = person(), person()
    try:
        deaths.arm(
            stage.death, "statement", "before", 8, tenant=str(poisoned.tenant_id), always=True
        )
        job = erase_later(actor=poisoned, principal="p", note="asked for")
        eventually(lambda: job_of(poisoned, "people.erase").attempts, "an attempt", stage.said)
        erase_later(actor=other, principal="p", note="asked for")
        eventually(lambda: job_of(other, "people.erase").finished_at, "the other job", stage.said)
        assert job_of(other, "people.erase").state == JobState.DONE

        def ended() -> bool:
            lease_is_over(job)
            return job_of(poisoned, "people.erase").finished_at is not None

        eventually(ended, "the end of the poisoned job", stage.said)
        found = job_of(poisoned, "people.erase")
        assert (found.state, found.error["code"]) == (JobState.FAILED, "worker_lost"), found.log
        assert found.attempts == found.max_attempts
    finally:
        stage.death.unlink(missing_ok=True)
    crashing = person()
    deaths.arm(stage.death, "statement", "before", 8, "crash", tenant=str(crashing.tenant_id))
    erase_later(actor=crashing, principal="p", note="asked for")
    eventually(lambda: job_of(crashing, "people.erase").finished_at, "its end", stage.said)
    crashed = job_of(crashing, "people.erase")
    assert (crashed.state, crashed.error["code"]) == (JobState.FAILED, "internal_error")
    assert "that a test has put here" not in str(crashed.log)
    assert stage.worker.lives(), stage.said()
    Check.SERVES.passed()
    chains_verify()
    counts_add_up()
    no_job_is_left()
