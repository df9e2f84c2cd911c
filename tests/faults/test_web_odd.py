"""Clocks that jump, a disk that is full, many callers at once: what the web process does when the world is odd."""

from __future__ import annotations

import errno
import json
import os
import secrets
import subprocess
import tempfile
import threading
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection

from ctxengine.engine.events import EventType
from ctxengine.ledger.models import Event, Job, RequestRow, SessionRow
from ctxengine.service.imports.start_import import start_import
from ctxengine.site.postgres.server import EmbeddedPostgres
from tests.cast import new_actor
from tests.faults.checks import all_is_whole, no_call_is_left_open
from tests.faults.page import Check, fault
from tests.faults.stage import make_schema, speaking_to
from tests.faults.web import Conversation, Heard, Web

pytestmark = pytest.mark.faults

DATABASE = "odd"
WHOLE = (Check.CHAIN, Check.COUNTS, Check.PROOF)
DAY_S = 24 * 3600
SENDERS = 8


@pytest.fixture(scope="module")
def web(server: EmbeddedPostgres, django_db_blocker: pytest.FixtureRequest) -> Iterator[Web]:
    """A web server on a database of its own, which the test speaks to as well."""
    with django_db_blocker.unblock():  # type: ignore[attr-defined]
        make_schema(server, DATABASE)
        folder = Path(tempfile.mkdtemp(dir=os.environ["CTX_TEST_RUN_FOLDER"]))
        made = Web(server, DATABASE, folder / "data")
        try:
            with speaking_to(server, DATABASE):
                made.start()
                yield made
        finally:
            made.process.kill()


@fault(
    "the clock jumps: over midnight, a day ahead, two days back, a quarter of an hour ahead",
    "before every write of the loop", Check.RETRY, Check.SAME, *WHOLE,
)  # fmt: skip
def test_a_conversation_is_the_same_whatever_the_clock_does(web: Web) -> None:
    straight = Conversation(web)
    for step in Conversation.STEPS:
        straight.one(step)
    jumping = Conversation(web)
    try:
        for place, step in enumerate(Conversation.STEPS):
            web.clock.write_text(str((0, DAY_S, -2 * DAY_S, 900, 11 * 3600)[place % 5]))
            once = uuid.uuid4().hex
            first = jumping.send(step, once)
            assert first.good, (step, first)
            again = jumping.send(step, once)
            assert (again.status, again.json) == (first.status, first.json), step
    finally:
        web.clock.unlink()
    assert jumping.types() == straight.types()
    requests = RequestRow.objects.filter(session_id=jumping.session)
    by_epoch = requests.values_list("epoch", "prefix_sha256").distinct()
    assert len({epoch for epoch, _ in by_epoch}) == by_epoch.count(), "one prefix in an epoch"
    Check.RETRY.passed()
    Check.SAME.passed()
    all_is_whole()


@fault(
    "the same write from eight senders at once, under one key",
    "every write of the loop", Check.RETRY, Check.SAME, *WHOLE,
)  # fmt: skip
def test_a_write_that_many_send_at_once_is_done_once(web: Web) -> None:
    straight = Conversation(web)
    for step in Conversation.STEPS:
        straight.one(step)
    crowded = Conversation(web)
    for step in Conversation.STEPS:
        once = uuid.uuid4().hex
        call = crowded.call(step)
        heard = at_once([lambda c=call, o=once: web.send(c.method, c.path, crowded.key, c.body, once=o)] * SENDERS)  # type: ignore[misc]  # fmt: skip
        codes = Counter((one.json or {}).get("code", one.status) for one in heard)
        assert any(one.good for one in heard), (step, codes)
        assert all(one.good or one.json["code"] == "idempotency_in_progress" for one in heard), (
            codes
        )
        crowded.repeated(step, once)
        told = {json.dumps(one.json, sort_keys=True) for one in heard if one.good}
        assert len(told) == 1, (step, told)
    assert crowded.types() == straight.types()
    Check.RETRY.passed()
    Check.SAME.passed()
    no_call_is_left_open()
    all_is_whole()


def at_once(work: list[Any]) -> list[Heard]:
    """Do all of it at the same time."""
    found: list[Heard] = []
    barrier = threading.Barrier(len(work))

    def one(do: Any) -> None:
        barrier.wait()
        found.append(do())

    threads = [threading.Thread(target=one, args=(do,)) for do in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@fault(
    "two runtimes on one session, in step and out of step",
    "through whole turns, with answers that are late or to another request", Check.ONCE, *WHOLE,
)  # fmt: skip
def test_two_runtimes_on_one_session_lose_and_double_nothing(web: Web) -> None:
    shared = Conversation(web)
    shared.one("open")
    taken: list[str] = []
    told: list[str] = []

    def lives(number: int) -> Heard:
        base = "/api/v1"
        for turn in range(4):
            ask = {"message": f"{number}.{turn}?"}
            asked = send(f"{base}/sessions/{shared.session}/runs", ask, EventType.USER_MESSAGE)
            if asked.good:
                shared.run = asked.json["id"]
            if not shared.run:
                continue
            run = f"{base}/runs/{shared.run}"
            send(f"{run}/assemble", {})
            call = {"type": "tool_use", "id": f"c{number}.{turn}", "name": "weather", "input": {}}
            wants = {"content": [call], "stop_reason": "tool_use"}
            send(f"{run}/responses", {"response": wants}, EventType.RESPONSE_COMPLETED)
            result = {"results": [{"call_id": call["id"], "content": f"Rain {number}.{turn}."}]}
            send(f"{run}/tool-results", result, EventType.TOOL_RESULT)
            send(f"{run}/assemble", {})
            said = {"content": [{"type": "text", "text": "Rain."}], "stop_reason": "end_turn"}
            send(f"{run}/responses", {"response": said}, EventType.RESPONSE_COMPLETED)
            if turn % 2:
                send(f"{run}/end", {})
        return Heard(200)

    def send(path: str, body: Any, writes: str = "") -> Heard:
        heard = web.send("POST", path, shared.key, body, once=uuid.uuid4().hex)
        assert heard.status in {200, 201, 409, 422}, (path, heard, web.said())
        told.append(f"{path.split('/')[-1]} {(heard.json or {}).get('code', heard.status)}")
        if heard.good:
            taken.append(writes)
        return heard

    at_once([lambda n=n: lives(n) for n in range(2)])  # type: ignore[misc]
    found = Counter(Event.objects.filter(session_id=shared.session).values_list("type", flat=True))
    for kind in (EventType.USER_MESSAGE, EventType.RESPONSE_COMPLETED, EventType.TOOL_RESULT):
        assert found[kind] == taken.count(kind) > 0, (kind, found, Counter(told))
    Check.ONCE.passed()
    all_is_whole()


@contextmanager
def small_disk(server: EmbeddedPostgres) -> Iterator[str]:
    """The bodies' table on a disk of 8 MB; gives the name of its tablespace."""
    if os.geteuid() != 0:
        pytest.skip("a small disk can be mounted by root alone")
    place = Path(tempfile.mkdtemp(prefix="ctxengine-small-"))
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(place)], capture_output=True, check=False
    )  # fmt: skip
    if mounted.returncode:
        place.rmdir()
        pytest.skip("this machine lets nobody mount a small disk")
    try:
        space = place / "space"
        space.mkdir(mode=0o700)
        assert server.account is not None
        place.chmod(0o711)
        os.chown(space, server.account.pw_uid, server.account.pw_gid)
        with connection.cursor() as cursor:
            cursor.execute(f"CREATE TABLESPACE tiny LOCATION '{space}'")
            cursor.execute("ALTER TABLE body SET TABLESPACE tiny")
        yield "tiny"
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE body SET TABLESPACE pg_default")
            cursor.execute("DROP TABLESPACE IF EXISTS tiny")
        subprocess.run(["umount", str(place)], check=True)
        place.rmdir()


@fault(
    "the database's disk is full",
    "while results are appended, until somebody makes room", Check.RETRY, Check.ONCE, Check.SERVES,
    *WHOLE,
)  # fmt: skip
def test_a_full_disk_refuses_a_write_and_takes_it_once_there_is_room(
    web: Web, server: EmbeddedPostgres
) -> None:
    conversation = Conversation(web)
    conversation.up_to("results")
    path = f"/api/v1/runs/{conversation.run}/input"
    sent: list[tuple[str, str]] = []
    with small_disk(server):
        refused = Heard(0)
        for _ in range(20):
            sent.append((secrets.token_hex(500_000), uuid.uuid4().hex))
            refused = web.send(
                "POST", path, conversation.key, {"message": sent[-1][0]}, once=sent[-1][1]
            )
            if not refused.good:
                break
        assert (refused.status, refused.json["code"]) == (503, "unavailable"), refused
        read = web.send("GET", f"/api/v1/sessions/{conversation.session}", conversation.key)
        assert read.good, "what needs no room is still served"
        Check.SERVES.passed()
    for text, once in sent:
        assert web.send("POST", path, conversation.key, {"message": text}, once=once).good
    Check.RETRY.passed()
    inputs = Event.objects.filter(session_id=conversation.session, body_length__gte=1_000_000)
    assert inputs.count() == len(sent) > 1
    Check.ONCE.passed()
    no_call_is_left_open()
    all_is_whole()


@fault("the data folder's disk is full", "in the middle of an upload", Check.NOTHING, Check.RETRY)
def test_an_upload_that_finds_no_room_leaves_no_file_and_no_job(
    web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "CTX_DATA_DIR", tmp_path)
    actor = new_actor()

    def broken() -> Iterator[bytes]:
        yield b'{"messages": ['
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(OSError, match="No space"):
        start_import(actor=actor, name="a.json", chunks=broken())
    assert not list((tmp_path / "uploads").iterdir())
    assert not Job.objects.filter(tenant_id=actor.tenant_id).exists()
    assert not SessionRow.objects.filter(tenant_id=actor.tenant_id).exists()
    Check.NOTHING.passed()
    start_import(actor=actor, name="a.json", chunks=[b"{}"])
    assert Job.objects.filter(tenant_id=actor.tenant_id).count() == 1
    Check.RETRY.passed()
