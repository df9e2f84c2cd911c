"""Two writers on one session: what was decided on a plan, a scope or a head that is gone is never written (design 4 and 5).

Real transactions and threads; the second writer comes in just before the first one's append.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import pytest
from django.db import connections

from ctxengine.engine.events import EventType
from ctxengine.engine.plan.epochs import EpochReason
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import PlanRow, RunRow
from ctxengine.service import session_erasure
from ctxengine.service.configure_session import configure_session
from ctxengine.service.end_run import end_run
from ctxengine.service.end_session import end_session
from ctxengine.service.erase import erase_person
from ctxengine.service.plan_specs import Configure, SetAuthority
from ctxengine.service.revoke_tool import revoke_tool
from ctxengine.service.rotate_epoch import rotate_epoch
from ctxengine.service.set_authority import set_authority
from ctxengine.service.specs import (
    ChangeConstraints,
    EndRun,
    PolicySpec,
    PrincipalSpec,
    ServiceError,
)
from ctxengine.service.working_state import change_constraints
from tests.shrinking import Shrinker, body

pytestmark = pytest.mark.django_db(transaction=True)

Act = Callable[[Shrinker], Any]


@pytest.fixture
def runtime() -> Iterator[Shrinker]:
    made = Shrinker(
        principal=PrincipalSpec(id="mara", scopes=("a", "b")),
        policy=PolicySpec(offer_facts=True),
    )
    made.talk(3)
    yield made
    connections.close_all()


def in_another_thread(work: Callable[[], Any]) -> None:
    """Do something in a transaction of its own, and wait for it."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            failed.append(error)
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(timeout=20)
    assert not thread.is_alive(), "the second writer waits for a lock that is held while working"
    if failed:
        raise failed[0]


def with_rival(rival: Callable[[], Any], act: Callable[[], Any]) -> Any:
    """Do `act`; once, right after it has read the head, the rival writes first."""
    heads, came = PostgresLog.head, threading.Event()

    def head(log: PostgresLog) -> Any:
        found = heads(log)
        if not came.is_set():
            came.set()
            in_another_thread(rival)
        return found

    with patch.object(PostgresLog, "head", head):
        return act()


def rotate(runtime: Shrinker, *tools: str, **fields: Any) -> Any:
    reason = EpochReason.TOOL_REMOVED_FOR_SECURITY if tools else EpochReason.OPERATOR
    return rotate_epoch(
        actor=runtime.actor,
        session_id=runtime.session,
        reason=reason.value,
        note="x",
        tools=tools,
        **fields,
    )


def constrain(runtime: Shrinker, text: str = "Never on Sundays.") -> Any:
    spec = ChangeConstraints(add_constraints=(text,), principal="mara")
    return change_constraints(actor=runtime.actor, session_id=runtime.session, spec=spec)


def scoped(runtime: Shrinker, *scopes: str) -> Any:
    spec = SetAuthority(scopes=scopes)
    return set_authority(actor=runtime.actor, session_id=runtime.session, spec=spec)


ACTS: dict[str, Act] = {
    "compact": lambda r: r.shrink(),
    "pin": lambda r: r.mark(str(r.events(EventType.USER_MESSAGE)[0].sequence), "pinned"),
    "constraint": constrain,
    "authority": lambda r: scoped(r, "a"),
    "revoke": lambda r: revoke_tool(actor=r.actor, session_id=r.session, name="read", note="x"),
    "configure": lambda r: configure_session(
        actor=r.actor, session_id=r.session, spec=Configure(environment={"site": "x"})
    ),
    "end": lambda r: end_session(actor=r.actor, session_id=r.session),
    "erase": lambda r: erase_person(actor=r.actor, principal="mara", note="asked for it"),
}


@pytest.mark.parametrize("act", sorted(ACTS))
def test_an_act_sees_the_epoch_that_a_rival_rotated_in_between(act: str, runtime: Shrinker) -> None:
    used: list[int] = []
    from ctxengine.service import access

    read = access.plan_row_of

    def watched(session: Any, epoch: int | None = None) -> PlanRow:
        found = read(session, epoch)
        used.append(found.epoch)
        return found

    modules = ("compact", "pin", "working_state", "offer_facts", "revoke_tool", "set_authority")
    patches = [patch(f"ctxengine.service.{name}.plan_row_of", watched) for name in modules]
    for one in patches:
        one.start()
    try:
        with_rival(lambda: rotate(runtime), lambda: ACTS[act](runtime))
    finally:
        for one in patches:
            one.stop()
    assert not used or used[-1] == 2
    runtime.all_proven_but_erased()


@pytest.mark.parametrize("act", sorted(set(ACTS) - {"end", "erase"}))
def test_nothing_is_written_to_a_session_that_a_rival_ended(act: str, runtime: Shrinker) -> None:
    with pytest.raises(ServiceError) as refused:
        with_rival(
            lambda: end_session(actor=runtime.actor, session_id=runtime.session),
            lambda: ACTS[act](runtime),
        )
    assert refused.value.code == "session_ended"
    last = runtime.events()[-1]
    assert last.type == EventType.SESSION_ENDED.value


def test_two_rotations_at_once_keep_what_both_changed(runtime: Shrinker) -> None:
    with_rival(lambda: rotate(runtime, "read"), lambda: rotate(runtime, "web.fetch"))
    assert runtime.row.epoch == 3
    removed = [e.payload["removed_tool_names"] for e in runtime.events(EventType.EPOCH_ROTATED)]
    assert removed == [["read"], ["web.fetch"]]
    built = runtime.turn("And now?", "Fine.")
    tools = {tool["name"] for tool in body(built)["tools"]}
    assert not tools & {"read", "web_fetch"}


def test_a_rotation_that_names_its_epoch_is_refused_after_a_rival(runtime: Shrinker) -> None:
    with pytest.raises(ServiceError) as refused:
        with_rival(lambda: rotate(runtime), lambda: rotate(runtime, expected_epoch=1))
    assert (refused.value.code, refused.value.extra["epoch"]) == ("stale_epoch", 2)
    assert runtime.row.epoch == 2
    assert rotate(runtime, expected_epoch=2).epoch == 3


def test_two_constraints_at_once_both_stand(runtime: Shrinker) -> None:
    with_rival(lambda: constrain(runtime, "Only in English."), lambda: constrain(runtime))
    assert {c.text for c in runtime.state.constraints} == {"Only in English.", "Never on Sundays."}
    assert len({c.id for c in runtime.state.constraints}) == 2


def test_a_run_is_ended_once_whoever_ends_it(runtime: Shrinker) -> None:
    runtime.ask("One more.")

    def end() -> None:
        end_run(actor=runtime.actor, run_id=runtime.run, spec=EndRun(outcome="cancelled"))

    with_rival(lambda: end_session(actor=runtime.actor, session_id=runtime.session), end)
    *_, before, ended = runtime.events(EventType.RUN_ENDED)
    assert (before.payload["outcome"], ended.payload["outcome"]) == ("completed", "interrupted")


def test_a_reduction_binds_an_open_run_whatever_scopes_it_was_given(runtime: Shrinker) -> None:
    runtime.ask("One more.", scopes=("a", "c"))
    found = scoped(runtime, "a", "b")
    assert (found.granted, found.reduced) == ([], ["c"])

    def left() -> list[str]:
        scopes: list[str] = RunRow.objects.get(id=runtime.run).settings["scopes"]
        return scopes

    assert left() == ["a"]
    scoped(runtime, "b")
    assert left() == []
    scoped(runtime, "a", "b", "c")
    assert left() == []


def test_the_first_stated_authority_reduces_a_run_that_stated_more() -> None:
    runtime = Shrinker()
    runtime.ask("Go.", scopes=("a", "b"))
    assert scoped(runtime, "a").reduced == ["b"]
    assert RunRow.objects.get(id=runtime.run).settings["scopes"] == ["a"]


def test_an_erasure_that_breaks_off_goes_on_where_it_stopped() -> None:
    principal = PrincipalSpec(id="mara")
    first = Shrinker(principal=principal)
    second = Shrinker(actor=first.actor, principal=principal)
    for runtime in (first, second):
        runtime.talk(1)
    whole, seen = session_erasure._Erasure.blank, []

    def breaks(self: Any) -> None:
        seen.append(self.session.id)
        if len(seen) == 2:
            raise ConnectionError("the database went away")
        whole(self)

    with patch.object(session_erasure._Erasure, "blank", breaks), pytest.raises(ConnectionError):
        erase_person(actor=first.actor, principal="mara", note="asked for it")
    done = erase_person(actor=first.actor, principal="mara", note="asked for it")
    assert done.sessions == 1
    for runtime in (first, second):
        assert len(runtime.events(EventType.PERSON_ERASED)) == 1
        runtime.all_proven_but_erased()
    assert erase_person(actor=first.actor, principal="mara", note="again").sessions == 0
