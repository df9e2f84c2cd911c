"""Locks are taken in one order, whatever is wrapped in one transaction: the person's fence, then the session."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from uuid import UUID

import pytest
from django.db import connection, transaction

from ctxengine.ledger.models import ClosedTurn, RequestRow, SessionRow
from ctxengine.service.access import session_of
from ctxengine.service.snapshots import fence
from ctxengine.service.specs import Actor
from ctxengine.service.wiring import log_of
from tests.api.door import Answer, Door, key_for, new_tenant

pytestmark = pytest.mark.django_db(transaction=True)

FINISHES = {"response": {"content": [{"type": "text", "text": "hi"}], "stop_reason": "end_turn"}}
ENDINGS = {
    "a response": ("runs/{run}/responses", FINISHES),
    "the end of a run": ("runs/{run}/end", {"outcome": "completed"}),
    "the end of a session": ("sessions/{session}/end", {}),
}


def someone_waits() -> bool:
    """Whether some connection waits for a lock."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return bool(cursor.fetchone()[0])


class Meanwhile:
    """A call on another connection, which comes to wait for a lock that the test holds."""

    def __init__(self, call: Callable[[], Answer]) -> None:
        self._call = call
        self._answers: list[Answer] = []
        self._thread = threading.Thread(target=self._work)
        self._thread.start()
        for _ in range(600):
            if someone_waits() or not self._thread.is_alive():
                break
            time.sleep(0.02)

    def _work(self) -> None:
        try:
            self._answers.append(self._call())
        finally:
            connection.close()

    def waiting(self) -> bool:
        """Whether it has not been answered yet."""
        return self._thread.is_alive() and not self._answers

    def answer(self) -> Answer:
        """What it was answered, once the lock is free."""
        self._thread.join(30)
        (answer,) = self._answers
        return answer


@pytest.mark.parametrize("what", ENDINGS)
@pytest.mark.parametrize("once", [None, "a-key"], ids=["plain", "repeatable"])
def test_who_waits_for_a_person_s_fence_holds_no_session(what: str, once: str | None) -> None:
    tenant = new_tenant("locks")
    door = Door(key_for(tenant))
    session = door.open(principal={"id": "ann"})
    run = door.run(session)
    door.assemble(run)
    path, body = ENDINGS[what]
    other = Door(door.key)
    address = path.format(run=run, session=session)
    with transaction.atomic():
        fence(tenant, "ann")
        meanwhile = Meanwhile(lambda: other.post(address, body, once=once))
        assert meanwhile.waiting()
        rows = SessionRow.objects.filter(tenant_id=tenant, id=session)
        # What an erasure does next; nobody who waits for the fence may stand in its way.
        assert rows.select_for_update(skip_locked=True).first()
    assert meanwhile.answer().status == 200


def test_an_error_that_is_told_after_the_answer_changes_nothing() -> None:
    tenant = new_tenant("late")
    door = Door(key_for(tenant))
    session = door.open()
    run = door.run(session)
    request = door.assemble(run)["request_id"]
    late = Door(door.key)
    error = {"error": {"status": 529, "body": "{}"}}
    with transaction.atomic():
        log_of(session_of(Actor(tenant, "x"), UUID(session))).lock()
        meanwhile = Meanwhile(lambda: late.post(f"runs/{run}/responses", error))
        assert meanwhile.waiting()
        door.calls(run, ("c1", "weather", {"city": "Oslo"}))
    assert meanwhile.answer().code == "stale_request"
    row = RequestRow.objects.get(id=request)
    assert (row.status, row.error) == ("answered", {})
    types = [event["type"] for event in door.events(session)]
    assert "response.failed" not in types


def test_a_turn_that_ends_in_a_repeatable_write_is_kept_for_recall() -> None:
    tenant = new_tenant("kept")
    door = Door(key_for(tenant))
    run = door.run(door.open(principal={"id": "ann"}))
    door.assemble(run)
    door.post(f"runs/{run}/responses", FINISHES, once="k").ok()
    assert ClosedTurn.objects.filter(tenant_id=tenant, run_id=run).count() == 1
