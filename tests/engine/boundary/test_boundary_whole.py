"""All or nothing: messages that cannot be taken leave nothing behind, and a counted request fits or is not sent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxengine.engine.boundary.context import BoundaryContext
from ctxengine.engine.boundary.failures import CompactionError, ContextLengthError
from ctxengine.engine.boundary.saved import BoundaryStateError
from ctxengine.engine.content.errors import ContentError
from ctxengine.engine.errors import OrphanPair
from ctxengine.engine.tokens.counter import counter_for
from ctxengine.engine.wire.registry import renderer_for
from ctxengine.providers.strict_local.provider import StrictProvider
from tests.engine.boundary.hosting import MODEL, AnthropicPort, Clock, host, plan_for
from tests.engine.boundary.test_boundary_context import fill

WINDOW = 9_000


def opened(port: AnthropicPort | None = None, **ports: Any) -> BoundaryContext:
    plan = plan_for("anthropic", MODEL, window=WINDOW, retained_turns=1)
    return host(plan, Clock(), port or AnthropicPort(StrictProvider()), **ports)


# --- messages ---

USER = {"role": "user", "content": "0: begin"}
CALLS = {
    "role": "assistant",
    "calls": [{"id": "c1", "name": "read"}, {"id": "c2", "name": "read"}],
}
FIRST = {"role": "tool", "call_id": "c1", "content": "the first result"}
SECOND = {"role": "tool", "call_id": "c2", "content": "the second result"}
BROKEN = {"role": "assistant", "calls": [{"id": "c3", "name": "read", "arguments": "{broken"}]}
NOBODYS = {"role": "tool", "call_id": "nope", "content": "x"}
UNNAMED = {"role": "tool", "content": "x"}

REFUSED = [
    ([FIRST, BROKEN], ContentError),
    ([FIRST, NOBODYS], OrphanPair),
    ([FIRST, UNNAMED], OrphanPair),
    ([FIRST, FIRST], OrphanPair),
    ([FIRST, SECOND, {"role": "assistant", "content": "Ok."}, SECOND], OrphanPair),
]


@pytest.mark.parametrize("replaces", [False, True], ids=["appended", "set over others"])
@pytest.mark.parametrize(
    ("refused", "error"),
    REFUSED,
    ids=["not readable", "of no call", "unnamed", "twice", "late again"],
)
def test_messages_of_which_one_cannot_be_taken_leave_nothing_behind(
    refused: list[dict[str, Any]], error: type[Exception], replaces: bool
) -> None:
    context = opened()
    context.append(USER, CALLS)
    before = context.get_messages()
    given = [{**USER, "content": "another"} if replaces else USER, CALLS, *refused]
    with pytest.raises(error):
        context.set_messages(given)
    assert context.get_messages() == before
    # What stands goes on as if nothing had been tried: the same calls are open, and each result is there once.
    context.append(SECOND, FIRST)
    twin = opened()
    twin.append(USER, CALLS, SECOND, FIRST)
    body = context.build().body
    assert body == twin.build().body
    assert body.count(b"the first result") == body.count(b"the second result") == 1


class Failing:
    """A counter that fails at one text."""

    def __init__(self) -> None:
        self.real = counter_for("anthropic", MODEL)

    def parts(self, parts: Any) -> int:
        if "no good" in str(parts):
            raise RuntimeError("counter")
        return self.real.parts(parts)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


def test_a_plan_whose_counter_fails_is_not_taken_by_half() -> None:
    context = opened()
    context.append(USER, {"role": "assistant", "content": "no good"}, {**USER, "content": "1"})
    before = context.build().body
    plan = plan_for("anthropic", "claude-opus-5", window=WINDOW, retained_turns=1)
    failing: Any = Failing()
    with pytest.raises(RuntimeError):
        context.use_plan(plan, counter=failing, renderer=renderer_for("anthropic"))
    assert context.build().body == before


# --- counts ---


def compacted(port: AnthropicPort, **ports: Any) -> BoundaryContext:
    """A context under a window, which was counted already."""
    context = opened(port, **ports)
    fill(context)
    context.prepare()
    context.append({"role": "assistant", "content": "Yes."}, {"role": "user", "content": "more?"})
    # Another process counts a window anew.
    later = opened(port, **ports)
    later.set_messages(context.get_messages())
    assert later.restore(json.loads(json.dumps(context.save()))) == 1
    return later


def test_output_yields_to_a_counted_overflow_as_to_an_estimated_one() -> None:
    asked: list[tuple[int, int]] = []

    def smaller(missing: int, reserve: int) -> int:
        asked.append((missing, reserve))
        # Too little at first: it is asked again, and nothing is counted in between.
        return reserve - missing if len(asked) > 1 else reserve - 1

    port = AnthropicPort(StrictProvider())
    context = compacted(port, fit_output=smaller)
    counted: list[int] = []

    def count(body: bytes) -> int:
        counted.append(json.loads(body)["max_tokens"])
        return WINDOW - 400

    port.count = count  # type: ignore[method-assign]
    request = context.prepare()
    assert asked == [(100, 500), (99, 499)]
    assert counted == [500, 400], "what is sent is what was counted"
    assert (request.budget.reserve, json.loads(request.body)["max_tokens"]) == (400, 400)


@pytest.mark.parametrize("gives", [None, 0, 500, 900], ids=["none", "zero", "the same", "more"])
def test_a_counted_overflow_without_output_to_give_is_not_sent(gives: int | None) -> None:
    port = AnthropicPort(StrictProvider())
    fit = None if gives is None else (lambda missing, reserve: gives)
    context = compacted(port, fit_output=fit)
    port.count = lambda body: WINDOW - 400  # type: ignore[method-assign]
    for _ in range(2):
        with pytest.raises(ContextLengthError) as caught:
            context.prepare()
        assert (caught.value.needed, caught.value.available) == (WINDOW - 400, WINDOW - 500)
        assert caught.value.numbers["source"] == "counted"


@pytest.mark.parametrize("beyond", [0, 1])
def test_a_window_is_made_for_the_bound_that_admits_its_request(beyond: int) -> None:
    port = AnthropicPort(StrictProvider())
    context = opened(port)
    fill(context)
    bound = WINDOW - 500 + beyond
    others = [1_000, bound - 800]

    def count(body: bytes) -> int:
        # The request that stands on the window; before it, what is to be compacted, and that request without the window.
        return bound if b'"signature"' in body else others.pop(0)

    port.count = count  # type: ignore[method-assign]
    if beyond:
        with pytest.raises(CompactionError):
            context.prepare()
        assert context.checkpoint is None
    else:
        context.prepare()
        assert context.checkpoint is not None


# --- saved states ---


@pytest.mark.parametrize("state", [[], "x", None, 7, [{}]], ids=repr)
def test_a_saved_state_that_is_no_object_is_refused(state: Any) -> None:
    context = opened()
    context.append(USER)
    with pytest.raises(BoundaryStateError):
        context.restore(state)
    assert context.save()["checkpoints"] == []
