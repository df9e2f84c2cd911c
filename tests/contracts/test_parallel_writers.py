"""Writers that come at the same time: sequences stay unique, one run is open, nothing is lost (case dev-19)."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence

import pytest
from django.db import connections

from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.log.chain import first_damage
from ctxengine.engine.ports import StaleHead
from ctxengine.engine.trust.levels import Trust
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import RunRow
from ctxengine.service.specs import ServiceError
from tests.cast import AT, Runtime, postgres_log

pytestmark = pytest.mark.django_db(transaction=True)

WRITERS = 6
EACH = 5


def at_once(work: Sequence[Callable[[], str]]) -> list[str]:
    """Run all of it in threads that start together; gives what each came to."""
    gate = threading.Barrier(len(work))
    outcomes: list[str] = []

    def one(task: Callable[[], str]) -> None:
        gate.wait()
        try:
            outcomes.append(task())
        except ServiceError as error:
            outcomes.append(error.code)
        except StaleHead:
            outcomes.append("stale")
        finally:
            connections.close_all()

    threads = [threading.Thread(target=one, args=(task,)) for task in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def ended(name: str) -> EventDraft:
    return EventDraft(EventType.RUN_ENDED, Trust.PLATFORM, {"outcome": name})


def test_parallel_appends_never_share_a_sequence_and_keep_the_chain() -> None:
    log = postgres_log()

    def writer(name: str) -> Callable[[], str]:
        def write() -> str:
            mine = PostgresLog(log.tenant, log.session)
            for number in range(EACH):
                mine.append(
                    [ended(f"{name}.{number}a"), ended(f"{name}.{number}b")], expected=None, at=AT
                )
            return "written"

        return write

    assert at_once([writer(str(n)) for n in range(WRITERS)]) == ["written"] * WRITERS
    events = log.events()
    assert [event.sequence for event in events] == list(range(1, 2 * WRITERS * EACH + 1))
    assert first_damage(events, tenant=log.tenant, session=log.session) is None
    told = [str(event.payload["outcome"]) for event in events]
    assert len(set(told)) == len(told)
    # One append's events stay together, and each writer's stay in its own order.
    assert all(a[:-1] == b[:-1] for a, b in zip(told[::2], told[1::2], strict=True))
    for n in range(WRITERS):
        mine = [name for name in told if name.startswith(f"{n}.")]
        assert mine == sorted(mine)


def test_of_writers_that_saw_the_same_head_one_wins() -> None:
    log = postgres_log()

    def write() -> str:
        mine = PostgresLog(log.tenant, log.session)
        mine.append([ended("me")], expected=EventSeq(0), at=AT)
        return "written"

    assert Counter(at_once([write] * 4)) == {"written": 1, "stale": 3}
    assert log.head().sequence == 1


def test_two_runs_at_once_are_one_run_and_one_busy_answer() -> None:
    runtime = Runtime()

    def start() -> str:
        runtime.ask("Hello?")
        return "started"

    outcomes = at_once([start, start])
    assert sorted(outcomes) == ["run_open", "started"]
    assert RunRow.objects.filter(session_id=runtime.session).count() == 1
    assert len(runtime.events(EventType.USER_MESSAGE)) == 1
    assert runtime.row.runs == 1


def test_one_step_assembled_twice_at_once_is_one_request() -> None:
    runtime = Runtime()
    runtime.ask("Hello?")

    def build() -> str:
        return str(runtime.assemble().request_id)

    first, second = at_once([build, build])
    assert first == second
    assert len(runtime.requests) == 1
    assert len(runtime.events(EventType.REQUEST_STARTED)) == 1


def test_one_answer_reported_twice_at_once_is_taken_once() -> None:
    runtime = Runtime()
    runtime.ask("Hello?")
    runtime.assemble()

    def report() -> str:
        return runtime.say("Hi.").next

    outcomes = at_once([report, report])
    assert outcomes.count("finish") == 1
    assert set(outcomes) <= {"finish", "stale_request", "run_ended", "stale_head"}
    assert len(runtime.events(EventType.RESPONSE_COMPLETED)) == 1
    assert len(runtime.events(EventType.RUN_ENDED)) == 1
