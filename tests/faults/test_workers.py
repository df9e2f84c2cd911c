"""What dies comes back: worker, broker and database are killed in the middle of jobs, and each job ends done once.

The jobs erase people: one event in each session, which is counted. All brokers that the machine has go through each fault
at the same time, since most of it is waiting for a lease to run out.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import Error, connection

from ctxengine.engine.events import EventType
from ctxengine.ledger.models import Event, Job, JobState, SessionRow, Tenant
from ctxengine.service.erase_job import erase_later
from ctxengine.service.jobs.presence import workers_present
from ctxengine.service.specs import Actor, PrincipalSpec
from ctxengine.site.postgres.server import EmbeddedPostgres
from tests.cast import Runtime, new_actor
from tests.faults.checks import chains_verify, counts_add_up, no_job_is_left
from tests.faults.page import Check, fault
from tests.faults.stage import (
    Stage,
    available_brokers,
    eventually,
    kill_postgres,
    make_database,
    make_schema,
    speaking_to,
)
from tests.faults.test_jobs_killed import lease_is_over

pytestmark = pytest.mark.faults

PEOPLE = {"killed": 15, "waiting": 2, "unsent": 2, "at_work": 15, "afterwards": 2, "restarted": 15}
"""How many sessions each person is in: enough that a fault finds the job at work."""
_BASE = "base"
WHOLE = (Check.CHAIN, Check.COUNTS, Check.JOBS)


@pytest.fixture(scope="module")
def stages(
    server: EmbeddedPostgres, django_db_blocker: pytest.FixtureRequest
) -> Iterator[list[Stage]]:
    """A stage for each broker that this machine has, with the same people in each database."""
    with django_db_blocker.unblock():  # type: ignore[attr-defined]
        started = []
        for name, kind in available_brokers().items():
            folder = Path(tempfile.mkdtemp(dir=os.environ["CTX_TEST_RUN_FOLDER"]))
            started.append(Stage(kind, folder / name, server, name))
        try:
            # Brokers need no database: they wake up while one is filled.
            for stage in started:
                stage.broker.start()
            make_schema(server, _BASE)
            with speaking_to(server, _BASE):
                fill()
            for stage in started:
                make_database(server, stage.database, template=_BASE)
                stage.worker.start()
            for stage in started:
                with stage.on():
                    eventually(workers_present, f"a worker on {stage.broker.name}", stage.said)
            yield started
        finally:
            for stage in started:
                stage.end()


def fill() -> None:
    actor = new_actor()
    for person, sessions in PEOPLE.items():
        for _ in range(sessions):
            Runtime(actor=actor, principal=PrincipalSpec(id=person)).ask("Look at the harbour.")


def tenant_actor() -> Actor:
    return Actor(Tenant.objects.get().id, "system")


def ask_for(stage: Stage, person: str) -> None:
    with stage.on():
        erase_later(actor=tenant_actor(), principal=person, note="asked for")


def job_of(person: str) -> Job:
    return Job.objects.get(subject=person)


def in_the_middle(stage: Stage, person: str) -> bool:
    """Whether the job has erased from some sessions and not from all."""
    with stage.on():
        return job_of(person).state == JobState.RUNNING and len(erasures(person)) > 1


def erasures(person: str) -> list[object]:
    """The sessions of a person with an erasure, once for each."""
    sessions = SessionRow.objects.filter(principal=person).values("id")
    rows = Event.objects.filter(type=EventType.PERSON_ERASED, session_id__in=sessions)
    return list(rows.values_list("session_id", flat=True))


def ends(stages: list[Stage], *people: str) -> None:
    """Each of these jobs ends done, and has done its work once."""
    for stage in stages:
        with stage.on():
            for person in people:
                what = f"the end of the job for {person} on {stage.broker.name}"
                eventually(lambda person=person: has_ended(person), what)  # type: ignore[misc]
                job = job_of(person)
                assert job.state == JobState.DONE, (stage.broker.name, job.log, stage.said())
                found = erasures(person)
                assert len(found) == len(set(found)) == PEOPLE[person], stage.broker.name
            chains_verify()
            counts_add_up()
            no_job_is_left()
    Check.ONCE.passed()


def has_ended(person: str) -> bool:
    try:
        return job_of(person).finished_at is not None
    except Error:
        connection.close()
        return False


@fault("kill -9 of the worker", "while it erases a person, on each broker", Check.ONCE, *WHOLE)
def test_a_job_whose_worker_is_killed_is_done_once_by_the_next_one(stages: list[Stage]) -> None:
    for stage in stages:
        ask_for(stage, "killed")
        eventually(lambda stage=stage: in_the_middle(stage, "killed"), "a job at work")  # type: ignore[misc]
        stage.worker.kill()
        # How long the next one waits for a lease, tests/faults/test_summary_killed.py sees.
        with stage.on():
            lease_is_over(job_of("killed"), attempts=1)
    for stage in stages:
        stage.worker.start()
    ends(stages, "killed")
    for stage in stages:
        with stage.on():
            assert job_of("killed").attempts == 2


@fault(
    "loss of all that the broker knew",
    "while nobody listens, before a message is sent, and while a worker erases a person, on each broker",
    Check.ONCE, Check.SERVES, *WHOLE,
)  # fmt: skip
def test_jobs_outlive_all_that_their_broker_knew(stages: list[Stage]) -> None:
    """A message lost while nobody listened, one that could not be sent, and a broker that dies while a worker works."""
    for stage in stages:
        stage.worker.kill()
        ask_for(stage, "waiting")
        stage.broker.lose_everything()
        ask_for(stage, "unsent")
        with stage.on():
            assert job_of("waiting").sent_at is not None
            assert job_of("unsent").sent_at is None
        stage.broker.start()
        stage.worker.start()
    ends(stages, "waiting", "unsent")
    for stage in stages:
        ask_for(stage, "at_work")
        eventually(lambda stage=stage: in_the_middle(stage, "at_work"), "a job at work")  # type: ignore[misc]
        stage.broker.lose_everything()
    for stage in stages:
        stage.broker.start()
    ends(stages, "at_work")
    for stage in stages:
        assert stage.worker.lives(), (stage.broker.name, stage.said())
        ask_for(stage, "afterwards")
    ends(stages, "afterwards")
    Check.SERVES.passed()


@fault(
    "kill -9 of Postgres", "while workers erase a person, on each broker",
    Check.ONCE, Check.SERVES, *WHOLE,
)  # fmt: skip
def test_a_restart_of_postgres_in_the_middle_costs_nothing(
    stages: list[Stage], server: EmbeddedPostgres
) -> None:
    for stage in stages:
        ask_for(stage, "restarted")
    eventually(lambda: in_the_middle(stages[-1], "restarted"), "a job at work")
    kill_postgres(server)
    server.start()
    ends(stages, "restarted")
    for stage in stages:
        assert stage.worker.lives(), (stage.broker.name, stage.said())
    Check.SERVES.passed()


def test_every_broker_of_the_promise_was_tried(stages: list[Stage]) -> None:
    missing = {"embedded", "redis", "rabbitmq"} - {stage.broker.name for stage in stages}
    if missing:
        pytest.skip(f"not installed here: {', '.join(sorted(missing))}; the others were tried")
    assert len(stages) == 3
