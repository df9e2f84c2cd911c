"""Repeated blocks are proven whatever was left out or erased since, for the own model and for legs (design 4)."""

from __future__ import annotations

import pytest

from ctxengine.service.erase import erase_person
from ctxengine.service.prove import prove_all
from ctxengine.service.specs import ModelRef, PrincipalSpec
from tests.cast import Call, Runtime
from tests.service.working_set.test_left_out import (
    CANARY,
    holding,
    leave_out,
    small,
    with_canary_in_packet_and_thread,
)
from tests.service.working_set.test_loop import live, opened

pytestmark = pytest.mark.django_db

OTHER_API = ModelRef(provider="openai", name="gpt-5.4")
SAME_API = ModelRef(provider="anthropic", name="claude-haiku-4-5", window=200_000)


def proven(runtime: Runtime) -> bool:
    found = {found.verdict for found in prove_all(session_id=runtime.session)}
    return found <= {"identical", "identical_except"}


def leave_the_canary_out_inside_the_run(runtime: Runtime) -> None:
    runtime.say("", Call("r0", "read"))
    for event in holding(runtime):
        leave_out(runtime, event)
    runtime.results(("r0", "nothing there"))


@pytest.mark.parametrize("leg", [OTHER_API, SAME_API], ids=["other API", "same API"])
def test_a_leg_is_proven_after_what_it_repeats_was_erased(leg: ModelRef) -> None:
    runtime = opened(principal=PrincipalSpec(id="mara"))
    live(runtime, 2)
    runtime.ask("And now?")
    runtime.assemble(legs=(leg,))
    assert proven(runtime)
    erase_person(actor=runtime.actor, principal="mara", note="asked for it")
    assert proven(runtime)


def test_a_leg_holds_nothing_that_was_left_out_and_is_proven() -> None:
    runtime = small()
    with_canary_in_packet_and_thread(runtime)
    runtime.assemble(legs=(SAME_API,))
    leave_the_canary_out_inside_the_run(runtime)
    built = runtime.assemble()
    assert CANARY not in built.body.decode()
    assert CANARY not in built.legs[0].body.decode()
    assert proven(runtime)


@pytest.mark.parametrize("legs", [(), (OTHER_API,)], ids=["alone", "with a leg"])
def test_what_was_left_out_and_then_erased_is_still_proven(legs: tuple[ModelRef, ...]) -> None:
    runtime = small(principal=PrincipalSpec(id="mara"))
    with_canary_in_packet_and_thread(runtime)
    if legs:
        runtime.assemble(legs=legs)
    leave_the_canary_out_inside_the_run(runtime)
    runtime.assemble()
    assert proven(runtime)
    erase_person(actor=runtime.actor, principal="mara", note="asked for it")
    assert proven(runtime)
