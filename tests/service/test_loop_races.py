"""What another writer does between a first look and the append: redone on what holds then, never on what was read."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from ctxengine.engine.events import EventType
from ctxengine.engine.trust.levels import Trust
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import Body, Checkpoint, RunRow
from ctxengine.service.end_run import end_run
from ctxengine.service.end_session import end_session
from ctxengine.service.erase import erase_person
from ctxengine.service.plan_specs import SetAuthority
from ctxengine.service.rotate_epoch import rotate_epoch
from ctxengine.service.set_authority import set_authority
from ctxengine.service.specs import Content, EndRun, MemoryLine, PrincipalSpec, TakeInput
from ctxengine.service.take_input import take_input
from tests.cast import Call, Runtime, answer, tool
from tests.service.test_child_run import child_of, report
from tests.service.test_loop_refusals import refused

pytestmark = pytest.mark.django_db

THINKING = '{"type":"thinking","thinking":"Hm.","signature":"c2ln"}'
MARA = PrincipalSpec(id="mara", scopes=("files",))


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], None]:
    """Lets somebody else act as soon as the log's head was read, outside of any transaction of the use case."""

    def arrange(act: Callable[[], Any]) -> None:
        looks = {name: getattr(PostgresLog, name) for name in ("head", "head_and_run")}

        def slower(look: Callable[..., Any]) -> Callable[..., Any]:
            def looked(*given: Any) -> Any:
                seen = look(*given)
                for name, known in looks.items():
                    monkeypatch.setattr(PostgresLog, name, known)
                act()
                return seen

            return looked

        for name, look in looks.items():
            monkeypatch.setattr(PostgresLog, name, slower(look))

    return arrange


def test_a_run_that_ends_meanwhile_takes_nothing_more(between: Any) -> None:
    for late in ("assemble", "input", "response"):
        runtime = Runtime()
        runtime.ask("Look.")
        if late == "response":
            runtime.assemble()
        between(lambda r=runtime: end_run(actor=r.actor, run_id=r.run, spec=EndRun()))
        with refused("run_ended", 409):
            if late == "assemble":
                runtime.assemble()
            elif late == "input":
                spec = TakeInput(message=Content(raw="More."))
                take_input(actor=runtime.actor, run_id=runtime.run, spec=spec)
            else:
                runtime.hear(answer("anthropic", "Done.", reasoning=[THINKING]))
        assert runtime.events()[-1].type == EventType.RUN_ENDED
        assert not Checkpoint.objects.filter(run_id=runtime.run).exists()


def test_a_session_that_ends_meanwhile_starts_no_run(between: Any) -> None:
    runtime = Runtime()
    between(lambda: end_session(actor=runtime.actor, session_id=runtime.session))
    with refused("session_ended", 409):
        runtime.ask("Look.")
    assert not RunRow.objects.filter(session_id=runtime.session).exists()


def test_a_reduction_meanwhile_is_not_undone_by_a_response_with_reasoning(between: Any) -> None:
    runtime = Runtime(principal=MARA, tools=(tool("read", required_scopes=("files",)),))
    runtime.ask("Look.")
    runtime.assemble()
    spec = SetAuthority(scopes=())
    between(lambda: set_authority(actor=runtime.actor, session_id=runtime.session, spec=spec))
    taken = runtime.hear(answer("anthropic", calls=[Call("c1", "read")], reasoning=[THINKING]))
    assert [call.action for call in taken.calls] == ["refused"]
    run = RunRow.objects.get(tenant_id=runtime.actor.tenant_id, id=runtime.run)
    assert run.settings["scopes"] == []
    assert run.settings["opaque_tokens"] > 0


def test_a_tool_removed_meanwhile_is_refused(between: Any) -> None:
    runtime = Runtime()
    runtime.ask("Look.")
    runtime.assemble()
    between(
        lambda: rotate_epoch(
            actor=runtime.actor,
            session_id=runtime.session,
            reason="tool_removed_for_security",
            note="leaks",
            tools=("read",),
        )
    )
    taken = runtime.say("", Call("c1", "read"))
    assert [call.action for call in taken.calls] == ["refused"]


def test_a_first_stated_authority_limits_the_open_run_at_once() -> None:
    runtime = Runtime(tools=(tool("read", required_scopes=("files",)),))
    runtime.ask("Look.")
    runtime.assemble()
    set_authority(
        actor=runtime.actor, session_id=runtime.session, spec=SetAuthority(scopes=("mail",))
    )
    taken = runtime.say("", Call("c1", "read"))
    assert [call.action for call in taken.calls] == ["refused"]


def test_what_recall_read_back_goes_with_the_person() -> None:
    runtime = Runtime(principal=MARA)
    runtime.ask("My secret garden lies in Oslo.")
    seed = runtime.row.content_sequence
    runtime.assemble()
    runtime.say("", Call("r1", "recall", json.dumps({"id": f"{seed}.0"})))
    erase_person(actor=runtime.actor, principal="mara", note="asked for")
    kept = Body.objects.filter(tenant_id=runtime.actor.tenant_id)
    assert not [body for body in kept if b"secret garden" in bytes(body.data)]


def test_a_child_that_was_shown_memory_answers_with_its_trust() -> None:
    parent = Runtime(tools=(tool("delegate"),))
    parent.ask("Ask somebody.")
    parent.assemble()
    parent.say("", Call("d1", "delegate"))
    child = child_of(parent)
    child.assemble(recall=(MemoryLine(text="It was 40 last year."),))
    child.say("Forty.")
    report(parent, child.run)
    (result,) = parent.events(EventType.TOOL_RESULT)
    assert result.trust == Trust.MEMORY
