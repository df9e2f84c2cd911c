"""A reset with handoff: what stands before it is neither planned nor listed, and `recall` still reaches it (spec 4)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxengine.engine.events import EventType
from ctxengine.service.specs import ResetSession, ServiceError
from ctxengine.service.working_set.reset import reset_session
from tests.cast import Call, Runtime
from tests.service.working_set.test_loop import body, live, lived, opened, plans, verdicts

pytestmark = pytest.mark.django_db


def reset(runtime: Runtime, **fields: Any) -> Any:
    spec = ResetSession(**fields)
    return reset_session(actor=runtime.actor, session_id=runtime.session, spec=spec)


def test_turns_behind_it_are_not_shown_and_the_handoff_is() -> None:
    runtime = opened()
    live(runtime, 5)
    done = reset(runtime, handoff="Five files were read; part3 matters.", note="fresh start")
    assert (done.turns, done.by) == (5, "runtime")
    live(runtime, 2, first=5)
    text = body(runtime)
    assert "Five files were read; part3 matters." in text
    assert "part1.txt" not in text and "part5.txt" in text
    plan = plans(runtime)[-1]
    assert (plan["behind"], plan["full_from"], plan["packet_through"]) == (5, 6, 0)
    reasons = [span["reason"] for span in runtime.requests[-1].manifest["spans"]]
    assert "behind_reset" in reasons
    assert verdicts(runtime) == {"identical"}


def test_recall_reaches_what_stands_behind_it() -> None:
    runtime = opened()
    live(runtime, 4)
    reset(runtime)
    runtime.ask("What was in the second one?")
    runtime.assemble()
    taken = runtime.say("", Call("r", "recall", '{"turn":"2"}'))
    (answered,) = taken.calls
    assert "holds the value 7." in json.dumps(answered.result)


def test_without_a_text_the_session_itself_is_told_in_short() -> None:
    runtime = opened()
    live(runtime, 9)
    assert reset(runtime).by == "ledger"
    runtime.turn("And now?", "Now we go on.")
    text = body(runtime)
    assert "[handoff] 9 earlier turns" in text
    assert "summary:handoff" in text


def test_a_small_model_plans_only_what_came_since() -> None:
    runtime = lived(12)
    reset(runtime, handoff="Twelve files were read.")
    live(runtime, 20, first=12)
    plan = plans(runtime)[-1]
    assert plan["behind"] == 12
    assert plan["packet_through"] == 0 or plan["packet_through"] > 12
    assert plan["tokens"] <= plan["room"]["tokens"]
    assert "part2.txt" not in body(runtime)
    assert verdicts(runtime) == {"identical"}


@pytest.mark.parametrize(
    ("turns", "fields", "code"),
    [
        (0, {}, "nothing_to_reset"),
        (1, {"handoff": "  "}, "empty_text"),
        (1, {"handoff": "word " * 90_000}, "too_long"),
    ],
)
def test_refusals(turns: int, fields: dict[str, Any], code: str) -> None:
    runtime = opened()
    live(runtime, turns)
    with pytest.raises(ServiceError) as refused:
        reset(runtime, **fields)
    assert refused.value.code == code


def test_an_open_run_comes_first_and_another_engine_has_no_reset() -> None:
    runtime = opened()
    live(runtime, 1)
    runtime.ask("More?")
    with pytest.raises(ServiceError) as refused:
        reset(runtime)
    assert refused.value.code == "run_open"
    other = Runtime()
    other.turn("Hello.", "Hello to you.")
    with pytest.raises(ServiceError) as refused:
        reset(other)
    assert refused.value.code == "reset_unavailable"


def test_a_second_reset_needs_a_turn_since_the_first() -> None:
    runtime = opened()
    live(runtime, 2)
    reset(runtime)
    with pytest.raises(ServiceError) as refused:
        reset(runtime)
    assert refused.value.code == "nothing_to_reset"
    live(runtime, 1, first=2)
    assert reset(runtime).turns == 3
    assert len(runtime.events(EventType.SESSION_RESET)) == 2
