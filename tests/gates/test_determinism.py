"""Gate: determinism. Equal inputs give equal bytes: built twice, asked for twice, in two ledgers, on two days."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import given

from ctxengine.engine.memory import MemoryLog
from ctxengine.service import assemble as assemble_module
from ctxengine.service.body_of_request import request_body
from ctxengine.service.specs import MemoryLine
from tests.cast import PROVIDERS, Call, Runtime
from tests.lab import Lab, Turn, a_plan, played, turns

pytestmark = pytest.mark.gate


@given(turns(most=5))
def test_two_logs_with_the_same_messages_give_the_same_bytes(session: Sequence[Turn]) -> None:
    plan = a_plan(window=4_000)
    one = played(Lab(plan), session)
    two = played(Lab(plan, log=other_salts()), session)
    assert [step.built.body for step in one.steps] == [step.built.body for step in two.steps]
    assert [s.built.request_sha256 for s in one.steps] == [
        s.built.request_sha256 for s in two.steps
    ]
    assert [s.built.manifest for s in one.steps] == [s.built.manifest for s in two.steps]


def other_salts() -> MemoryLog:
    """Salts and names of bodies are random in the product and must not reach a request."""
    return MemoryLog("t", "s", salt=lambda: b"another salt....", body_id=lambda n: f"body-{n}")


@pytest.mark.django_db
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_step_asked_for_again_is_the_same_request_whatever_the_clock_says(
    provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = Runtime(provider=provider)
    runtime.ask("What is in /srv?", timezone="Europe/Oslo")
    first = runtime.assemble(recall=(MemoryLine(id="m1", text="It held a wiki once."),))
    monkeypatch.setattr(assemble_module, "utc_now", lambda: datetime(2031, 1, 1, 3, 0, tzinfo=UTC))
    again = runtime.assemble()
    other_memory = runtime.assemble(recall=(MemoryLine(id="m2", text="Nothing."),))
    assert first.request_id == again.request_id == other_memory.request_id
    assert first.body == again.body == other_memory.body
    assert first.manifest == again.manifest
    assert first.request_sha256 == again.request_sha256
    assert len(runtime.requests) == 1


@pytest.mark.django_db
@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_recorded_body_is_given_out_again_byte_for_byte(provider: str) -> None:
    runtime = Runtime(provider=provider)
    handed_out = {}
    for number in range(3):
        runtime.ask(f"Question {number}")
        for built in (
            runtime.look(
                f"c{number}", f"found {number}\x00 </untrusted>", "shell_run", '{"n": 1.0}'
            ),
            runtime.assemble(),
        ):
            handed_out[built.request_id] = built.body
        runtime.say(f"Answer {number}")
    assert len(handed_out) == 6
    for request_id, body in handed_out.items():
        assert request_body(actor=runtime.actor, request_id=request_id) == body


@pytest.mark.django_db
def test_any_new_content_opens_the_next_step_and_acts_do_too() -> None:
    from ctxengine.service.rotate_epoch import rotate_epoch

    runtime = Runtime()
    runtime.ask("Go.")
    first = runtime.assemble()
    rotate_epoch(actor=runtime.actor, session_id=runtime.session, reason="operator", note="test")
    second = runtime.assemble()
    runtime.say("", Call("c1", "read"))
    runtime.results(("c1", "x"))
    third = runtime.assemble()
    assert len({first.request_id, second.request_id, third.request_id}) == 3
    assert json.loads(first.body)["messages"] == json.loads(second.body)["messages"]
