"""Reading ahead gives what the reads themselves would have given, once, and nothing behind a write."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

from ctxengine.engine.events import EventType
from ctxengine.ledger.ahead import Read, fetch, read_ahead
from ctxengine.ledger.log import PostgresLog
from ctxengine.service.specs import PolicySpec
from tests.cast import Call, Runtime, tool

pytestmark = pytest.mark.django_db


def asked(work: Any) -> list[str]:
    found: list[str] = []

    def wrapper(execute: Any, sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
        found.append(sql)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(wrapper):
        work()
    return found


def test_rows_read_ahead_are_given_once_and_then_read_again() -> None:
    one, two = Read("SELECT %s::int", (1,)), Read("SELECT %s::text, %s::int", ("two", 2))
    with read_ahead(one, two):
        assert asked(lambda: (fetch(*two), fetch(*one))) == []
        assert len(asked(lambda: fetch(*one))) == 1
        with read_ahead(two):
            assert fetch(*two) == [("two", 2)]
    assert fetch(*one) == [(1,)] and fetch("SELECT %s::int", (3,)) == [(3,)]


def test_a_statement_is_prepared_once_for_a_connection_and_takes_hostile_values() -> None:
    sql = "SELECT %s::text, 'prepared here'"
    first = asked(lambda: fetch(sql, ("a",)))
    again = asked(lambda: fetch(sql, ("'; DROP TABLE session; --",)))
    assert [text.split()[0] for text in first] == ["PREPARE", "EXECUTE"]
    assert [text.split()[0] for text in again] == ["EXECUTE"]
    assert fetch(sql, ("'; %s $1",)) == [("'; %s $1", "prepared here")]


def test_what_was_read_ahead_of_a_write_is_not_given_behind_it() -> None:
    runtime = Runtime()
    newest = Read("SELECT last_sequence FROM session WHERE id = %s", (runtime.session,))
    with read_ahead(newest):
        runtime.ask("What is it?")
        ((sequence,),) = fetch(*newest)
    assert sequence == runtime.row.last_sequence


def test_the_newest_of_a_type_are_planned_for_the_session_that_is_asked_and_not_for_the_mean() -> (
    None
):
    runtime = Runtime()
    log = PostgresLog(runtime.actor.tenant_id, runtime.session)
    kinds = {EventType.TURN_CLOSED, EventType.WORKING_STATE_UPDATED}
    sent = asked(lambda: [log.latest(kinds, limit=96) for _ in range(8)])
    # Prepared, it would be planned once and for all after a few calls.
    assert len(sent) == 8 and all(sql.startswith("SELECT") for sql in sent)
    with read_ahead(log.asks_latest(kinds, limit=96)):
        assert asked(lambda: log.latest(kinds, limit=96)) == []


def test_the_newest_of_several_types_come_in_one_order() -> None:
    runtime = Runtime(tools=(tool("lookup"),))
    for n in range(3):
        runtime.turn(f"Question {n}?", "So.")
    log = PostgresLog(runtime.actor.tenant_id, runtime.session)
    kinds = [EventType.REQUEST_STARTED, EventType.RESPONSE_COMPLETED, EventType.USER_MESSAGE]
    every = [e.sequence for e in log.latest(kinds)]
    assert every == sorted(every, reverse=True) and len(every) > 5
    assert [e.sequence for e in log.latest(kinds, limit=3, skip=2)] == every[2:5]
    assert [e.sequence for e in log.latest(kinds, after=every[3])] == every[:3]


def test_a_step_of_the_loop_takes_few_round_trips() -> None:
    runtime = Runtime(tools=(tool("lookup"),))
    runtime.ask("What is it?")
    runtime.assemble()
    for number in range(3):
        runtime.say("", Call(f"c{number}", "lookup"))
        took = asked(lambda: (runtime.results((f"c{number}", "nothing")), runtime.assemble()))  # noqa: B023
    assert len(took) <= 12, took


def test_a_summary_that_a_step_has_made_is_not_read_by_the_next() -> None:
    runtime = Runtime(
        tools=(tool("lookup"),), window=6_000, max_output=500, policy=PolicySpec(history_floor=200)
    )
    number = 0
    while not runtime.events(EventType.COMPACTED):
        number += 1
        runtime.turn(f"Tell me about {number}. " + "It matters. " * 60, "It is so. " * 60)
    (*_, newest) = runtime.events(EventType.COMPACTED)
    seen: list[Any] = []

    def wrapper(execute: Any, sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
        seen.extend(params or ())
        return execute(sql, params, many, context)

    with connection.execute_wrapper(wrapper):
        runtime.ask("Go on.")
        assert "summary:" in runtime.assemble().body.decode()
    assert newest.body_id is not None and str(newest.body_id) not in map(str, seen)
