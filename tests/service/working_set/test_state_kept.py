"""What closed turns that stand as sent say of the working state holds only as long as it does (design 7.12, 7.16)."""

from __future__ import annotations

import json

import pytest

from ctxengine.engine.standing import working_state_of
from ctxengine.service.specs import ChangeConstraints
from ctxengine.service.working_state import change_constraints
from tests.cast import Call, Runtime
from tests.service.working_set.test_loop import opened, plans, sent, verdicts

pytestmark = pytest.mark.django_db

NOTE = "No longer valid, with nothing in its place: working state given above."


def updates(runtime: Runtime, name: str, **wish: object) -> None:
    runtime.say("", Call(name, "context_update_working_state", json.dumps(wish)))


def asked(runtime: Runtime, text: str) -> str:
    runtime.ask(text)
    return runtime.assemble().body.decode()


def constrain(runtime: Runtime, *, add: tuple[str, ...] = (), remove: tuple[str, ...] = ()) -> None:
    spec = ChangeConstraints(add_constraints=add, remove_constraints=remove)
    change_constraints(actor=runtime.actor, session_id=runtime.session, spec=spec)


def constraints(runtime: Runtime) -> tuple[str, ...]:
    return tuple(entry.id for entry in working_state_of(runtime.log)[0].constraints)


def test_a_next_action_of_a_closed_run_is_taken_back_once() -> None:
    runtime = opened()
    asked(runtime, "Do it.")
    updates(runtime, "s1", next_action="DELETE the old branch")
    assert NOTE not in runtime.assemble().body.decode()
    runtime.say("All of it is done now, as you wished.")
    body = asked(runtime, "What is the weather like?")
    assert sent(plans(runtime)[-1]) == [1]
    assert body.index("next action: DELETE") < body.index(NOTE) < body.index("the weather")
    runtime.say("It is fine weather.")
    assert asked(runtime, "And tomorrow?").count(NOTE) == 1
    assert verdicts(runtime) == {"identical"}


@pytest.mark.parametrize("before_the_run", [True, False])
def test_a_constraint_that_was_lifted_is_taken_back(before_the_run: bool) -> None:
    runtime = opened()
    constrain(runtime, add=("never write to prod",))
    asked(runtime, "Hello there.")
    runtime.say("Hello to you as well.")
    if before_the_run:
        constrain(runtime, remove=constraints(runtime))
        runtime.ask("Now write to prod.")
    else:
        runtime.ask("Now write to prod.")
        constrain(runtime, remove=constraints(runtime))
    body = runtime.assemble().body.decode()
    assert body.index("never write to prod") < body.index(NOTE) < body.index("Now write to prod.")
    runtime.say("It is written.")
    assert verdicts(runtime) == {"identical"}


def test_what_changed_is_said_again_and_what_comes_back_holds() -> None:
    runtime = opened()
    constrain(runtime, add=("never write to prod",))
    asked(runtime, "Hello there.")
    runtime.say("Hello to you as well.")
    constrain(runtime, add=("answer in French",), remove=constraints(runtime))
    body = asked(runtime, "Go on.")
    last = body[body.rindex("[working state]") :]
    assert "answer in French" in last
    assert "never write" not in last
    runtime.say("I went on.")
    constrain(runtime, remove=constraints(runtime))
    assert NOTE in asked(runtime, "And now?")
    runtime.say("Now it is done.")
    constrain(runtime, add=("answer in Dutch",))
    body = asked(runtime, "Once more.")
    assert body.rindex(NOTE) < body.rindex("answer in Dutch")
    assert verdicts(runtime) == {"identical"}


def test_a_step_takes_back_what_a_closed_turn_says_where_the_state_is_emptied_inside_the_run() -> (
    None
):
    runtime = opened()
    constrain(runtime, add=("never write to prod",))
    asked(runtime, "Hello there.")
    runtime.say("Hello to you as well.")
    assert NOTE not in asked(runtime, "Look at it.")
    runtime.say("", Call("r1", "read"))
    runtime.results(("r1", "nothing there"))
    constrain(runtime, remove=constraints(runtime))
    assert NOTE in runtime.assemble().body.decode()
    assert verdicts(runtime) == {"identical"}
