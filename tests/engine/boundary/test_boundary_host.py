"""What a library's host may get wrong: marks that mean nothing, ports that raise, saved states that are not what was saved."""

from __future__ import annotations

import copy
import json
import traceback
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from ctxengine.engine.boundary.context import BoundaryContext
from ctxengine.engine.boundary.failures import CompactionError
from ctxengine.engine.boundary.note import NoteAnswer
from ctxengine.engine.boundary.saved import BoundaryStateError
from ctxengine.providers.strict_local.provider import StrictProvider
from tests.engine.boundary.hosting import MODEL, AnthropicPort, Clock, Notes, host, plan_for

WORDS = "what the user wants of this piece of work and why "
SECRET = "sk-secret and a prompt"


def talk(context: BoundaryContext, words: int = 60) -> None:
    """Turns until a compaction is due."""
    number = 0
    context.append({"role": "user", "content": "0: begin"})
    while not context.due:
        number += 1
        context.append({"role": "assistant", "content": WORDS * words})
        context.append({"role": "user", "content": f"{number}: and then?"})


def native(port: AnthropicPort | None = None, **ports: Any) -> BoundaryContext:
    plan = plan_for("anthropic", MODEL, window=9_000, retained_turns=1)
    return host(plan, Clock(), port or AnthropicPort(StrictProvider()), **ports)


# --- marks ---


@pytest.mark.parametrize("retain", ["objective", "reminder", "hook", "operation"])
@pytest.mark.parametrize("opens", [True, False], ids=["opens a turn", "inside a turn"])
def test_a_marked_user_message_stays_whole_wherever_it_stands(retain: str, opens: bool) -> None:
    context = native()
    answer = {"role": "assistant", "content": "Yes."}
    marked = {"role": "user", "content": "Mind the gap.", "retain": retain}
    first = {"role": "user", "content": "0: begin"}
    context.append(first, *((answer, marked) if opens else (marked, answer)))
    context.append({"role": "assistant", "content": "Ok."})
    talk(context)
    body = context.prepare().body
    assert context.checkpoint is not None
    assert 1 + [m["content"] for m in context.get_messages()].index("Mind the gap.") in (
        context.checkpoint.shown
    )
    assert body.index(b'"compaction"') < body.index(b"Mind the gap.")


MEANINGLESS = [
    {"role": "assistant", "content": "a", "retain": "reminder"},
    {"role": "assistant", "content": "a", "operation_id": "o"},
    {"role": "assistant", "content": "a", "call_id": "c"},
    {"role": "assistant", "content": "a", "is_error": True},
    {"role": "user", "content": "a", "operation_id": "o"},
    {"role": "user", "content": "a", "call_id": "c"},
    {"role": "user", "content": "a", "is_error": True},
    {"role": "user", "content": "a", "calls": [{"id": "c", "name": "read"}]},
    {"role": "tool", "content": "a", "call_id": "c", "calls": [{"id": "c", "name": "read"}]},
]


@pytest.mark.parametrize("message", MEANINGLESS, ids=lambda m: f"{m['role']}-{sorted(m)}")
def test_a_field_that_means_nothing_for_its_role_is_refused(message: dict[str, Any]) -> None:
    context = native()
    context.append({"role": "user", "content": "0: begin"})
    before = context.get_messages()
    with pytest.raises(ValidationError, match="means nothing on a message of the role"):
        context.append(message)
    assert context.get_messages() == before


def test_a_result_keeps_its_operation_until_a_plain_one_closes_it() -> None:
    def result(call: str, text: str, **more: Any) -> tuple[dict[str, Any], ...]:
        return (
            {"role": "assistant", "calls": [{"id": call, "name": "read"}]},
            {"role": "tool", "call_id": call, "content": text, **more},
        )

    context = native()
    context.append(
        {"role": "user", "content": "0: begin"},
        *result("c1", "job one runs", retain="operation", operation_id="one"),
        *result("c2", "job two runs", retain="operation", operation_id="two"),
        *result("c3", "job one is done", operation_id="one"),
        {"role": "assistant", "content": "Ok."},
    )
    talk(context)
    body = context.prepare().body.decode()
    assert context.checkpoint is not None
    assert "job two runs" in body and "job one runs" not in body


# --- counts ---


def test_a_request_near_its_limit_is_counted_every_time() -> None:
    port = AnthropicPort(StrictProvider())
    counts: list[int] = []
    real = port.count

    def counting(body: bytes) -> int:
        counts.append(real(body))
        return counts[-1]

    port.count = counting  # type: ignore[method-assign]
    plan = plan_for("anthropic", MODEL, window=9_000, retained_turns=1, summarize_trigger=0.97)
    context = host(plan, Clock(), port)
    talk(context)
    context.prepare()
    seen = {True: 0, False: 0}
    while True:
        context.append({"role": "assistant", "content": WORDS * 8})
        context.append({"role": "user", "content": "more?"})
        if context.due:
            break
        before = len(counts)
        request = context.prepare()
        near = request.budget.request > 0.9 * request.budget.usable
        assert len(counts) - before == int(near)
        seen[near] += 1
    assert all(seen.values()), "both sides of the limit were tried"


# --- ports ---


def failing(port: AnthropicPort, name: str, times: int = 1) -> list[str]:
    """Let a port's method raise what an SDK would, so many times; gives the list of its calls."""
    asked: list[str] = []
    real = getattr(port, name)

    def replaced(body: bytes) -> Any:
        asked.append(name)
        if len(asked) <= times:
            raise RuntimeError(SECRET)
        return real(body)

    setattr(port, name, replaced)
    return asked


@pytest.mark.parametrize("name", ["compact", "count"])
def test_a_native_port_that_raises_anything_is_a_typed_end(name: str) -> None:
    port, told = AnthropicPort(StrictProvider()), list[tuple[str, Any]]()
    asked = failing(port, name)
    context = native(port, emit=lambda event, facts: told.append((event, facts.get("code"))))
    talk(context)
    ended_safely(context, told, lambda: len(asked))


def test_a_writer_that_raises_anything_is_a_typed_end() -> None:
    asked: list[str] = []
    told: list[tuple[str, Any]] = []

    class Failing(Notes):
        def write(self, lines: str) -> NoteAnswer:
            asked.append(lines)
            if len(asked) == 1:
                raise RuntimeError(SECRET)
            return super().write(lines)

    context = host(
        plan_for("openai", "gpt-5.4", window=9_000, retained_turns=1),
        Clock(),
        None,
        notes=lambda work: Failing(work, []),
        emit=lambda event, facts: told.append((event, facts.get("code"))),
    )
    talk(context)
    ended_safely(context, told, lambda: len(asked))


def ended_safely(
    context: BoundaryContext, told: list[tuple[str, Any]], asked: Callable[[], int]
) -> None:
    """A typed end without the foreign text; no second call; and after the host mended it, a checkpoint."""
    before = context.get_messages()
    with pytest.raises(CompactionError) as caught:
        context.prepare()
    assert (caught.value.reason, caught.value.retryable) == ("internal", False)
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert told == [("started", None), ("finished", "internal")]
    assert context.get_messages() == before and context.checkpoint is None
    calls = asked()
    with pytest.raises(CompactionError) as again:
        context.prepare()
    assert (again.value.reason, again.value.retryable) == ("internal", False)
    assert asked() == calls, "an unchanged prefix is not tried again"
    context.forget_failures()
    context.prepare()
    assert context.checkpoint is not None
    assert told[-1] == ("finished", None)


def test_a_caller_that_stops_cancels_its_operation_and_rests_for_nothing() -> None:
    port, told = AnthropicPort(StrictProvider()), list[tuple[str, Any]]()
    context = native(port, emit=lambda event, facts: told.append((event, facts.get("code"))))
    talk(context)

    def stop() -> None:
        raise KeyboardInterrupt

    port.before = stop
    with pytest.raises(KeyboardInterrupt):
        context.prepare()
    assert told == [("started", None), ("finished", "cancelled")]
    assert context.save()["finished"][0]["payload"]["outcome"] == "cancelled"
    port.before = lambda: None
    context.prepare()
    assert context.checkpoint is not None


def test_the_count_before_dispatch_raises_nothing_foreign() -> None:
    port = AnthropicPort(StrictProvider())
    context = native(port)
    talk(context)
    context.prepare()
    state = json.loads(json.dumps(context.save()))
    later = native(port)
    later.set_messages(context.get_messages())
    assert later.restore(state) == 1
    failing(port, "count")
    with pytest.raises(CompactionError) as caught:
        later.prepare()
    assert caught.value.reason == "internal"
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    later.prepare()


def test_a_mended_policy_lifts_what_an_earlier_failure_barred() -> None:
    answers = [NoteAnswer("half a note", "output_limit")]
    context = host(
        plan_for("openai", "gpt-5.4", window=9_000, retained_turns=1),
        Clock(),
        None,
        notes=lambda work: Notes(work, answers),
    )
    talk(context)
    for _ in range(2):
        with pytest.raises(CompactionError) as caught:
            context.prepare()
        assert caught.value.reason == "summary_output_limit"
    mended = plan_for(
        "openai", "gpt-5.4", window=9_000, retained_turns=1, summary_max_output_tokens=16_000
    )
    context.use_plan(mended, counter=context._counter, renderer=context._renderer)
    context.prepare()
    assert context.checkpoint is not None


# --- saved states ---


@pytest.fixture(scope="module")
def kept() -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Messages with a window and a failure, and their state as a host's file holds it."""
    port = AnthropicPort(StrictProvider())
    asked = failing(port, "compact")
    context = native(port)
    talk(context)
    with pytest.raises(CompactionError):
        context.prepare()
    state = context.save()["finished"]
    context.forget_failures()
    context.prepare()
    assert len(asked) == 2
    saved = context.save()
    saved["finished"] += state
    return context.get_messages(), json.loads(json.dumps(saved))


def restored(messages: list[dict[str, Any]]) -> BoundaryContext:
    context = native()
    context.set_messages(messages)
    return context


def test_a_saved_state_comes_back_as_it_was(kept: tuple[list[Any], dict[str, Any]]) -> None:
    messages, state = kept
    context = restored(messages)
    assert context.restore(state) == 1
    assert json.loads(json.dumps(context.save())) == state


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every member of every object in it."""
    found: list[tuple[Any, ...]] = []
    if isinstance(value, dict):
        for name, held in value.items():
            found += [(*path, name), *places(held, (*path, name))]
    elif isinstance(value, list):
        for place, held in enumerate(value):
            found += places(held, (*path, place))
    return found


def test_a_state_that_misses_any_part_is_refused_and_changes_nothing(
    kept: tuple[list[Any], dict[str, Any]],
) -> None:
    messages, state = kept
    context = restored(messages)
    for path in places(state):
        if path == ("version",):
            continue
        for damage in ("missing", object()):
            damaged = copy.deepcopy(state)
            holder = damaged
            for step in path[:-1]:
                holder = holder[step]
            if damage == "missing":
                del holder[path[-1]]
            elif path[-1] in {"window_sha256", "text", "sequence", "cut", "ranges", "operation"}:
                holder[path[-1]] = damage
            else:
                continue
            with pytest.raises(BoundaryStateError):
                context.restore(damaged)
    assert context.checkpoint is None and context.save()["finished"] == []
    assert context.restore({"version": "boundary-state@0"}) == 0


@pytest.mark.parametrize("text", ["garbage", '{"items":[]}', "", None])
def test_a_window_that_is_not_the_saved_one_is_refused(
    text: Any, kept: tuple[list[Any], dict[str, Any]]
) -> None:
    messages, state = kept
    context = restored(messages)
    damaged = copy.deepcopy(state)
    damaged["checkpoints"][0]["text"] = text
    with pytest.raises(BoundaryStateError) as caught:
        context.restore(damaged)
    assert caught.value.code == "boundary_state_invalid"
    assert context.checkpoint is None
