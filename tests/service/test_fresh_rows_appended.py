"""Fresh rows that stay where they were sent, on models that lose their reasoning when bytes before it change (design 7.12)."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import httpx2
import pytest

from ctxengine.engine.events import EventType
from ctxengine.engine.manifest import Reason
from ctxengine.providers.strict_local.provider import StrictProvider
from ctxengine.providers.strict_local.script import Reply, ScriptedCall
from ctxengine.providers.strict_local.server import StrictServer
from ctxengine.service.erase import erase_person
from ctxengine.service.prove import prove_all
from ctxengine.service.specs import MemoryLine, PolicySpec, PrincipalSpec, TakeInput
from ctxengine.service.take_input import take_input
from tests.cast import Call, Content, Runtime

pytestmark = pytest.mark.django_db

BOUND = "claude-opus-5-5"


def runtime_of(model: str = BOUND, provider: str = "anthropic") -> Runtime:
    return Runtime(model=model, provider=provider, principal=PrincipalSpec(id="ann"))


def messages(built: Any) -> list[Any]:
    """The messages of a request without their cache markers."""
    body = json.loads(built.body)
    found: list[Any] = json.loads(json.dumps(body.get("messages") or body["input"]))
    for message in found:
        for block in message["content"] if isinstance(message.get("content"), list) else []:
            block.pop("cache_control", None)
            block.pop("prompt_cache_breakpoint", None)
    return found


def line(text: str, id: str = "m1") -> MemoryLine:
    return MemoryLine(id=id, text=text)


def blocks(runtime: Runtime) -> list[Any]:
    return runtime.events(EventType.FRESH_SENT)


def verdicts(runtime: Runtime) -> set[str]:
    return {found.verdict for found in prove_all(session_id=runtime.session)}


def flat(built: Any) -> list[str]:
    """Every block of every message as text, in order, whatever message it is joined to."""
    return [
        json.dumps([message["role"], block])
        for message in messages(built)
        for block in message["content"]
    ]


def test_each_request_of_a_run_begins_with_all_of_the_one_before() -> None:
    runtime = runtime_of()
    runtime.ask("Look it up.")
    before: list[str] = []
    for number in range(4):
        built = runtime.assemble(recall=(line(f"fact {number}"),))
        now = flat(built)
        assert now[: len(before)] == before
        before = now
        runtime.look(f"c{number}", "found " * 40)
    assert verdicts(runtime) == {"identical"}


def test_a_step_adds_only_the_parts_that_changed() -> None:
    runtime = runtime_of()
    runtime.ask("Look it up.")
    same, other = line("the depot is closed"), line("the depot is open")
    for number, recall in enumerate((same, same, other, other)):
        runtime.assemble(recall=(recall,))
        runtime.say("", Call(f"c{number}", "read"))
        runtime.results((f"c{number}", "found"))
    added = [
        block.payload["content_sequence"]
        for block in blocks(runtime)
        if "recall" in block.payload["rows"]
    ]
    requests = [row.content_sequence for row in runtime.requests]
    assert added == [requests[0], requests[2]]
    assert verdicts(runtime) == {"identical"}


def test_what_no_longer_holds_is_taken_back_in_words() -> None:
    runtime = runtime_of()
    runtime.ask("Look it up.")
    runtime.assemble(recall=(line("the depot is closed"),))
    runtime.say("", Call("c1", "read"))
    runtime.results(("c1", "found"))
    built = runtime.assemble()
    assert (
        "No longer valid, with nothing in its place: recalled lines given above."
        in built.body.decode()
    )
    assert blocks(runtime)[-1].payload["rows"]["recall"] == ""


def test_a_late_input_stands_behind_the_block_that_was_sent_before_it() -> None:
    runtime = runtime_of()
    runtime.ask("Look it up.")
    runtime.assemble()
    runtime.say("", Call("c1", "read"))
    runtime.results(("c1", "found"))
    first = flat(runtime.assemble())
    spec = TakeInput(message=Content(raw="And hurry."))
    take_input(actor=runtime.actor, run_id=runtime.run, spec=spec)
    now = flat(runtime.assemble(recall=(line("he is in a hurry"),)))
    assert now[: len(first)] == first
    assert "And hurry." in now[-1]
    assert verdicts(runtime) == {"identical"}


def test_blocks_leave_with_the_run() -> None:
    runtime = runtime_of()
    runtime.ask("Look it up.")
    runtime.assemble(recall=(line("the depot is closed"),))
    runtime.say("", Call("c1", "read"))
    runtime.results(("c1", "found"))
    runtime.assemble(recall=(line("the depot is closed"),))
    runtime.say("It is closed.")
    runtime.ask("Thanks.")
    built = runtime.assemble()
    assert "the depot is closed" not in built.body.decode()
    assert verdicts(runtime) == {"identical"}


def test_the_manifest_counts_the_blocks_and_says_why_they_are_there() -> None:
    runtime = runtime_of()
    runtime.ask("Look it up.")
    runtime.assemble(recall=(line("the depot is closed"),))
    runtime.say("", Call("c1", "read"))
    runtime.results(("c1", "found"))
    built = runtime.assemble(recall=(line("the depot is closed"),))
    spans = [s for s in built.manifest["spans"] if s["reason"] == Reason.SENT_EARLIER.value]
    (span,) = spans
    assert span["tokens"] == blocks(runtime)[0].payload["tokens"] > 0
    recall = next(row for row in built.manifest["rows"] if row["row"] == 13)
    assert recall["tokens"] == 0
    rows = sum(row["tokens"] for row in built.manifest["rows"])
    assert built.budget["request"] == rows <= built.budget["usable"]


def test_erasing_the_person_blanks_the_blocks_and_leaves_the_requests_provable() -> None:
    runtime = runtime_of()
    runtime.ask("Look it up.")
    runtime.assemble(recall=(line("ann lives at the depot"),))
    runtime.say("", Call("c1", "read"))
    runtime.results(("c1", "found"))
    runtime.assemble(recall=(line("ann lives at the depot"),))
    block = blocks(runtime)[0]
    assert "ann lives at the depot" in (runtime.log.body(str(block.body_id)) or "")
    erase_person(actor=runtime.actor, principal="ann", note="asked")
    assert runtime.log.body(str(block.body_id)) is None
    assert verdicts(runtime) == {"identical_except"}


def tight(**fields: Any) -> Runtime:
    """A session in which every token of the fresh rows counts."""
    return Runtime(
        model=BOUND,
        principal=PrincipalSpec(id="ann"),
        window=14_000,
        max_output=1_000,
        policy=PolicySpec(reserve=1_000, history_floor=500, **fields),
    )


def test_parts_that_stand_already_are_paid_once() -> None:
    runtime = tight()
    runtime.ask("Look it up.")
    corrections = tuple(
        line(f"Correction {n}: " + "the depot is closed on the weekend. " * 40, f"m{n}")
        for n in range(14)
    )
    first = runtime.assemble(corrections=corrections)
    for number in range(3):
        runtime.say("", Call(f"c{number}", "read"))
        runtime.results((f"c{number}", "found"))
        again = runtime.assemble(corrections=corrections)
        assert again.budget["request"] - first.budget["request"] < 200 * (number + 1)
    assert verdicts(runtime) == {"identical"}


def test_what_stands_does_not_yield_and_is_never_called_invalid_for_want_of_room() -> None:
    runtime = tight()
    runtime.ask("Look it up.")
    passages = tuple(
        line(f"Passage {n}. " + "the depot opens at nine on most days. " * 60, f"k{n}")
        for n in range(3)
    )
    sizes = []
    for number in range(8):
        built = runtime.assemble(knowledge=passages)
        sizes.append(built.budget["request"])
        text = built.body.decode()
        assert text.count("Passage 0.") == 1
        assert "No longer valid" not in text
        runtime.say("", Call(f"c{number}", "read"))
        runtime.results((f"c{number}", "found it again " * 60))
    assert all(0 < later - earlier < 600 for earlier, later in pairwise(sizes))
    assert verdicts(runtime) == {"identical"}


def test_a_block_has_the_lowest_trust_of_what_it_holds_and_later_manifests_say_so() -> None:
    runtime = runtime_of()
    runtime.ask("Look it up.")
    runtime.assemble(recall=(line("the depot is closed"),))
    runtime.say("", Call("c1", "read"))
    runtime.results(("c1", "found"))
    built = runtime.assemble(recall=(line("the depot is closed"),))
    block = blocks(runtime)[0]
    assert block.trust == "MEMORY"
    assert set(block.payload["by_trust"]) == {"MEMORY", "PLATFORM"}
    (span,) = (s for s in built.manifest["spans"] if s["reason"] == Reason.SENT_EARLIER.value)
    assert span["trust"] == block.payload["by_trust"]
    assert span["numbers"] == {f"row_{row}": n for row, n in block.payload["by_row"].items()}


def test_a_second_unanswered_input_moves_nothing_that_was_sent() -> None:
    runtime = runtime_of()
    runtime.ask("Look it up.")
    before = flat(runtime.assemble())
    for number in range(2):
        spec = TakeInput(message=Content(raw=f"And this, {number}."))
        take_input(actor=runtime.actor, run_id=runtime.run, spec=spec)
        now = flat(runtime.assemble(recall=(line(f"fact {number}"),)))
        assert now[: len(before)] == before
        assert f"And this, {number}." in now[-1]
        before = now
    assert verdicts(runtime) == {"identical"}


@pytest.mark.parametrize("late", [False, True])
def test_input_that_comes_while_a_bound_model_answers_costs_that_answers_reasoning_and_no_refusal(
    late: bool,
) -> None:
    provider = StrictProvider(instance=f"late-{late}")
    runtime = runtime_of()
    runtime.ask("Look it up.")
    with StrictServer(provider) as server:
        for number in range(3):
            call = ScriptedCall("read", call_id=f"c{number}")
            provider.script.add([Reply(calls=(call,), thinking=f"about {number}")])
            answer = httpx2.post(
                f"{server.url}/v1/messages",
                content=runtime.assemble().body,
                headers={"x-api-key": "k", "anthropic-version": "2023-06-01"},
            )
            assert answer.status_code == 200, answer.text
            if late and number == 0:
                spec = TakeInput(message=Content(raw="And hurry."))
                take_input(actor=runtime.actor, run_id=runtime.run, spec=spec)
            runtime.hear(answer.text)
            runtime.results((f"c{number}", "found"))
    heard = runtime.events(EventType.RESPONSE_COMPLETED)
    assert [e.payload.get("reasoning_dropped", 0) for e in heard] == [int(late), 0, 0]
    assert verdicts(runtime) == {"identical"}


def test_asking_again_for_a_step_gives_the_same_bytes_and_no_second_block() -> None:
    runtime = runtime_of()
    runtime.ask("Look it up.")
    one, two = runtime.assemble(), runtime.assemble()
    assert one.body == two.body
    assert len(blocks(runtime)) == 1


@pytest.mark.parametrize(
    ("provider", "model", "mode"),
    [
        ("anthropic", BOUND, "appended"),
        ("anthropic", "claude-sonnet-4-6", "moving"),
        ("openai-responses", "gpt-5.6-sol", "appended"),
        ("openai-responses", "gpt-4.1", "moving"),
        ("openai", "gpt-5.6-sol", "moving"),
    ],
)
def test_only_models_that_would_lose_their_reasoning_pay_for_it(
    provider: str, model: str, mode: str
) -> None:
    runtime = runtime_of(model, provider)
    runtime.ask("Look it up.")
    runtime.assemble()
    assert bool(blocks(runtime)) is (mode == "appended")


def test_on_responses_no_reasoning_is_withheld_inside_a_run() -> None:
    provider = StrictProvider(instance="appended")
    runtime = runtime_of("gpt-5.6-sol", "openai-responses")
    runtime.ask("Look it up.")
    with StrictServer(provider) as server:
        for number in range(4):
            call = ScriptedCall("read", call_id=f"c{number}")
            provider.script.add([Reply(calls=(call,), thinking=f"about {number}")])
            built = runtime.assemble()
            answer = httpx2.post(
                f"{server.openai_url}/responses",
                content=built.body,
                headers={"authorization": "Bearer k", "content-type": "application/json"},
            )
            assert answer.status_code == 200, answer.text
            assert not answer.json().get("input_transformations"), number
            runtime.hear(answer.text)
            runtime.results((f"c{number}", "found"))
    assert verdicts(runtime) == {"identical"}
