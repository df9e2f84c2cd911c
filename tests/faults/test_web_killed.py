"""The web process dies, its connection drops, or its database dies, at every stage of every write of the loop.

Each write is sent, meets its fault at one place, and is sent again with its Idempotency-Key until it is done. What the log
holds afterwards is what it holds where nothing happened.
"""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctxengine.site.postgres.server import EmbeddedPostgres
from tests.faults import deaths
from tests.faults.checks import all_is_whole, no_call_is_left_open
from tests.faults.page import Check, fault
from tests.faults.stage import make_schema, pid_of, speaking_to
from tests.faults.web import Conversation, Undisturbed, Web, undisturbed_steps

pytestmark = pytest.mark.faults

DATABASE = "web"
EVERYWHERE = bool(os.environ.get("CTX_FAULTS_EVERYWHERE"))
"""Set by `make faults`: every commit of every write and places between statements; else the last commit of each."""
CHECKS = (Check.RETRY, Check.SAME, Check.CHAIN, Check.COUNTS, Check.PROOF)
STAGES = [("results", "before"), ("calls", "after")]
if EVERYWHERE:
    STAGES += [
        ("assemble", "before"),
        ("assemble", "after"),
        ("calls", "before"),
        ("results", "after"),
    ]


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


@pytest.fixture(scope="module")
def undisturbed(web: Web) -> dict[str, Undisturbed]:
    """What each step goes past and leaves where it meets no fault."""
    return undisturbed_steps(web)


def places(passed: dict[str, int]) -> list[tuple[str, str, int]]:
    """Where a write may be hit: before and after each commit, and between its statements; the heart of it comes first."""
    commits, statements = passed["commit"], passed["statement"]
    found = [("commit", "before", commits), ("commit", "after", commits)]
    if EVERYWHERE:
        found += [
            ("commit", when, nth) for nth in range(1, commits) for when in ("before", "after")
        ]
        found += [("statement", "before", nth) for nth in sorted({1, statements // 2, statements})]
    return found


def met_at_each_place(web: Web, undisturbed: dict[str, Undisturbed], act: deaths.Act) -> None:
    """Let the write of each step meet a fault at each of its places, repeat it, and look at what it left."""
    for step, expected in undisturbed.items():
        for place, when, nth in places(expected.passed):
            conversation = Conversation(web)
            conversation.up_to(step)
            once = uuid.uuid4().hex
            deaths.arm(web.death, place, when, nth, act)
            first = conversation.send(step, once)
            where = (step, place, when, nth, first.status)
            assert not web.death.exists(), ("the fault was not met", where)
            assert first.status == 0 if act == "die" else first.good or first.status == 503, where
            conversation.repeated(step, once)
            assert conversation.types() == expected.types, where
        conversation.after(step)
        assert conversation.types() == undisturbed[Conversation.STEPS[-1]].types, step
    Check.RETRY.passed()
    Check.SAME.passed()
    no_call_is_left_open()
    all_is_whole()


EVERY_WRITE = "before and after the commits of every write of the loop, from `open` to `erase`"


@fault("kill -9 of the web process", EVERY_WRITE, *CHECKS)
def test_a_write_whose_process_is_killed_is_done_once_when_it_is_repeated(
    web: Web, undisturbed: dict[str, Undisturbed]
) -> None:
    met_at_each_place(web, undisturbed, "die")


@fault("the database drops the connection", EVERY_WRITE, *CHECKS)
def test_a_write_whose_connection_drops_is_refused_or_done_and_its_repeat_completes(
    web: Web, undisturbed: dict[str, Undisturbed]
) -> None:
    met_at_each_place(web, undisturbed, "drop")


@fault(
    "kill -9 of Postgres", "before and after the commit of a request, a response and a result", *CHECKS
)  # fmt: skip
@pytest.mark.parametrize(("step", "when"), STAGES)
def test_a_write_whose_database_is_killed_is_done_once_when_it_is_repeated(
    web: Web, server: EmbeddedPostgres, undisturbed: dict[str, Undisturbed], step: str, when: str
) -> None:
    conversation = Conversation(web)
    conversation.up_to(step)
    once = uuid.uuid4().hex
    last = undisturbed[step].passed["commit"]
    deaths.arm(web.death, "commit", when, last, "kill_postgres", pid=pid_of(server))
    first = conversation.send(step, once)
    assert first.good or first.status == 503, first
    server.start()
    with speaking_to(server, DATABASE):
        conversation.repeated(step, once)
        conversation.after(step)
        assert conversation.types() == undisturbed[Conversation.STEPS[-1]].types
        no_call_is_left_open()
        Check.RETRY.passed()
        Check.SAME.passed()
        all_is_whole()
