"""`verify_ledger` and the append-only trigger: what was written stays, and what was tampered with is named."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection, transaction

from ctxengine.ledger.models import Body, Event, SessionRow
from tests.cast import Call, Runtime

pytestmark = pytest.mark.django_db


@contextmanager
def without_trigger() -> Iterator[None]:
    """Tampering needs a superuser who switches the trigger off; a test is one."""
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE event DISABLE TRIGGER event_append_only")
        yield
        cursor.execute("ALTER TABLE event ENABLE TRIGGER event_append_only")


def verified(*arguments: str) -> dict[str, Any]:
    out = StringIO()
    try:
        call_command("verify_ledger", "--json", *arguments, stdout=out)
        failed = False
    except SystemExit as end:
        failed = end.code == 1
    report: dict[str, Any] = json.loads(out.getvalue())
    assert failed == bool(report["damaged"])
    return report


def found(runtime: Runtime) -> tuple[int, str]:
    (damage,) = verified()["damaged"]
    assert damage["session"] == str(runtime.session)
    return damage["sequence"], damage["problem"]


@pytest.fixture
def runtime() -> Runtime:
    other = Runtime()
    other.turn("Unharmed?", "Yes.")
    made = Runtime(actor=other.actor)
    made.ask("Look.")
    made.look("c1", "found")
    made.assemble()
    made.say("There it is.")
    return made


def rows(runtime: Runtime, sequence: int) -> Any:
    return Event.objects.filter(session_id=runtime.session, sequence=sequence)


def test_an_untouched_ledger_verifies(runtime: Runtime) -> None:
    report = verified()
    assert report["sessions"] == 2
    assert report["events"] == Event.objects.count()
    assert report["damaged"] == []
    assert verified("--session", str(runtime.session))["sessions"] == 1


@pytest.mark.parametrize("field", ["payload", "trust", "type", "tokens", "recorded_at", "run_id"])
def test_a_changed_field_is_named_with_its_event(runtime: Runtime, field: str) -> None:
    event = rows(runtime, 3).get()
    other: dict[str, Any] = {
        "payload": event.payload | {"run_number": 7},
        "trust": "PLATFORM",
        "type": "run.input.received",
        "tokens": event.tokens + 1,
        "recorded_at": event.recorded_at.replace(year=2020),
        "run_id": None,
    }
    with without_trigger():
        rows(runtime, 3).update(**{field: other[field]})
    assert found(runtime) == (3, "was changed after it was written")


def test_a_missing_event_is_named(runtime: Runtime) -> None:
    with without_trigger():
        rows(runtime, 4).delete()
    assert found(runtime) == (4, "event 4 is missing")


def test_a_cut_off_end_is_seen(runtime: Runtime) -> None:
    last = runtime.row.last_sequence
    with without_trigger():
        rows(runtime, last).delete()
    sequence, problem = found(runtime)
    assert sequence == last
    assert f"the session says {last}" in problem


def test_two_swapped_bodies_are_seen(runtime: Runtime) -> None:
    result = next(e for e in runtime.events() if e.type == "tool.result.received")
    asked = next(e for e in runtime.events() if e.type == "user.message.created")
    bodies = Body.objects.filter(session_id=runtime.session)
    one, two = bodies.get(id=str(result.body_id)), bodies.get(id=str(asked.body_id))
    bodies.filter(id=one.id).update(data=two.data, length=two.length)
    assert found(runtime) == (result.sequence, "its content is not what it committed to")


def test_a_body_that_is_gone_without_an_erasure_is_seen(runtime: Runtime) -> None:
    asked = next(e for e in runtime.events() if e.type == "user.message.created")
    Body.objects.filter(session_id=runtime.session, id=str(asked.body_id)).delete()
    assert found(runtime) == (asked.sequence, "its content is not what it committed to")


def test_a_rehashed_event_breaks_the_chain_behind_it(runtime: Runtime) -> None:
    with without_trigger():
        rows(runtime, 3).update(hash="f" * 64)
    sequence, _ = found(runtime)
    assert sequence == 3


def test_a_forged_head_is_seen(runtime: Runtime) -> None:
    SessionRow.objects.filter(id=runtime.session).update(last_hash="e" * 64)
    sequence, problem = found(runtime)
    assert sequence == runtime.row.last_sequence + 1
    assert "the chain ends at" in problem


def test_a_blanked_body_leaves_the_chain_whole(runtime: Runtime) -> None:
    asked = next(e for e in runtime.events() if e.type == "user.message.created")
    Body.objects.filter(session_id=runtime.session, id=str(asked.body_id)).update(
        data=b"", salt=b"", erased_at=asked.recorded_at
    )
    assert verified()["damaged"] == []


def test_an_unknown_session_is_told() -> None:
    with pytest.raises(CommandError, match="There is no session"):
        call_command(
            "verify_ledger", "--session", "00000000-0000-4000-8000-000000000009", stdout=StringIO()
        )


def test_the_plain_report_names_session_event_and_problem(runtime: Runtime) -> None:
    with without_trigger():
        rows(runtime, 3).update(tokens=999)
    out = StringIO()
    with pytest.raises(SystemExit):
        call_command("verify_ledger", stdout=out)
    assert f"session {runtime.session}: event 3 was changed" in out.getvalue()
    assert "1 damaged" in out.getvalue()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE event SET trust = 'PLATFORM'",
        "DELETE FROM event",
        "UPDATE audit_entry SET reason = ''",
        "DELETE FROM audit_entry",
    ],
)
def test_events_and_audit_entries_cannot_be_changed(runtime: Runtime, statement: str) -> None:
    from ctxengine.service.rotate_epoch import rotate_epoch

    rotate_epoch(actor=runtime.actor, session_id=runtime.session, reason="operator", note="x")
    before = Event.objects.count()
    with (
        pytest.raises(IntegrityError, match="append-only"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)
    assert Event.objects.count() == before


def test_bodies_hold_every_byte_and_events_hold_none(runtime: Runtime) -> None:
    runtime.ask("secret-of-the-user")
    runtime.assemble()
    runtime.say("secret-of-the-model", Call("c9", "read", '{"q":"secret-argument"}'))
    runtime.results(("c9", "secret-result"))
    told = json.dumps([event.payload for event in runtime.events()])
    for text in ("secret-of-the-user", "secret-of-the-model", "secret-argument", "secret-result"):
        assert text not in told
    for event in runtime.events():
        if event.body_id:
            body = Body.objects.get(session_id=runtime.session, id=str(event.body_id))
            assert body.length == event.body_length == len(bytes(body.data))
            assert len(bytes(body.salt)) == 16
