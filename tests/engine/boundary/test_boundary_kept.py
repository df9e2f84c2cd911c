"""What is shown again behind a checkpoint, and for how long: operations while they are alive, the rest for good."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxengine.engine.boundary.checkpoint import Checkpoint
from ctxengine.engine.boundary.context import BoundaryContext
from ctxengine.engine.boundary.settled import covered_until
from ctxengine.engine.compaction.acts import Marks
from ctxengine.engine.ids import EventSeq
from ctxengine.providers.strict_local.provider import StrictProvider
from tests.cast import Scribe, memory_log
from tests.engine.boundary.hosting import MODEL, AnthropicPort, Clock, Notes, host, plan_for

WORDS = "what the user wants of this piece of work and why "


def opened(model: tuple[str, str]) -> BoundaryContext:
    """A context that compacts in the way of that model."""
    port = AnthropicPort(StrictProvider())
    plan = plan_for(*model, window=9_000, retained_turns=1)
    return host(plan, Clock(), port, notes=lambda work: Notes(work, []))


def step(call: str, content: str, **marks: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """A call and its result."""
    return (
        {"role": "assistant", "calls": [{"id": call, "name": "read"}]},
        {"role": "tool", "call_id": call, "content": content, **marks},
    )


def turn(context: BoundaryContext, *steps: dict[str, Any]) -> None:
    """A whole turn with its request."""
    context.append({"role": "user", "content": WORDS * 20}, *steps)
    context.prepare()
    context.append({"role": "assistant", "content": WORDS * 60})


def next_checkpoint(context: BoundaryContext) -> Checkpoint:
    """Turns until another checkpoint stands."""
    before = context.checkpoint
    while context.checkpoint == before:
        turn(context)
    assert context.checkpoint is not None
    return context.checkpoint


MODELS = pytest.mark.parametrize(
    "model", [("anthropic", MODEL), ("openai", "gpt-5.4")], ids=["window", "note"]
)


@MODELS
def test_an_operation_is_shown_behind_every_checkpoint_until_a_later_result_closes_it(
    model: tuple[str, str],
) -> None:
    context = opened(model)
    turn(context, *step("c1", "one is queued", retain="operation", operation_id="one"))
    turn(context, *step("c2", "two is queued", retain="operation", operation_id="two"))
    for _ in range(3):
        next_checkpoint(context)
        body = context.build().body.decode()
        assert "one is queued" in body and "two is queued" in body
    turn(context, *step("c3", "one runs", retain="operation", operation_id="one"))
    turn(context, *step("c4", "two is done", operation_id="two"))
    for _ in range(3):
        point = next_checkpoint(context)
    assert [name for name, _ in point.operations] == ["one"]
    body = context.build().body.decode()
    assert "one runs" in body
    assert not any(text in body for text in ("one is queued", "two is queued", "two is done"))


@MODELS
def test_operations_that_are_alive_go_through_a_restart(model: tuple[str, str]) -> None:
    context = opened(model)
    turn(context, *step("c1", "one is queued", retain="operation", operation_id="one"))
    point = next_checkpoint(context)
    later = opened(model)
    later.set_messages(context.get_messages())
    assert later.restore(json.loads(json.dumps(context.save()))) == 1
    assert later.checkpoint == point
    turn(later, *step("c2", "one is done", operation_id="one"))
    next_checkpoint(later)
    assert next_checkpoint(later).operations == ()
    assert "one is queued" not in later.build().body.decode()


def test_what_is_kept_for_another_cause_outlives_its_operation() -> None:
    context = opened(("anthropic", MODEL))
    context.append({"role": "user", "content": "0: begin"})
    context.append(
        {
            "role": "assistant",
            "calls": [{"id": "a", "name": "read"}, {"id": "b", "name": "read"}],
        },
        {
            "role": "tool",
            "call_id": "a",
            "content": "one is queued",
            "retain": "operation",
            "operation_id": "one",
        },
        {"role": "tool", "call_id": "b", "content": "the goal", "retain": "objective"},
        {"role": "assistant", "content": "Ok."},
    )
    next_checkpoint(context)
    turn(context, *step("c", "one is done", operation_id="one"))
    next_checkpoint(context)
    assert next_checkpoint(context).operations == ()
    assert "the goal" in context.build().body.decode()


def test_a_pin_is_shown_while_it_stands_and_is_no_part_of_a_checkpoint() -> None:
    scribe = Scribe(log := memory_log())
    for number in range(3):
        scribe.user(f"question {number}", run=str(number))
        scribe.answers(f"answer {number}", run=str(number))
    below = EventSeq(log.head().sequence + 1)
    units = log.units(EventSeq(1), below)
    pinned = int(units[2].sequence)
    found = {
        marks: covered_until(log, units, base=None, marks=marks, cut=below)
        for marks in (Marks(), Marks(pinned=(pinned,)))
    }
    without, with_pin = found.values()
    assert without is not None and with_pin is not None
    assert without.kept == with_pin.kept and without.source == with_pin.source
    assert set(with_pin.shown) - set(without.shown) == {pinned}
