"""Windows of a provider's own that must not stand: ones that hold nothing, and ones that never read what came in meanwhile."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxengine.engine.events import EventType
from ctxengine.service.specs import Content, TakeInput
from ctxengine.service.take_input import take_input
from tests.cast import Call, Runtime, answer
from tests.service.boundary.talking import (
    Served,
    answer_all,
    assembled,
    send,
    session,
    strict_provider,
    unproven,
)

pytestmark = pytest.mark.django_db

PROVIDERS = ["anthropic", "openai-responses"]
HELD_IN = {"anthropic": "content", "openai-responses": "encrypted_content"}
EMPTY = [{}, {"held": None}, {"held": ""}, {"held": []}, {"held": 7}]


def window(provider: str, **held: Any) -> str:
    """A provider's compaction block, whatever it says it holds."""
    named = {HELD_IN[provider]: held["held"]} if held else {}
    return json.dumps({"type": "compaction", **named})


def opening_with(provider: str, blocks: list[str], text: str, *calls: Call) -> str:
    """An answer in whose front these blocks stand."""
    return answer(provider, text, calls, reasoning=blocks)


def two_turns(provider: str) -> Runtime:
    """A session whose next question is asked already."""
    runtime = session(provider, window=120_000, native_contract="inline", summarize_trigger=0.5)
    runtime.turn("The first fact is blue.", "Noted.")
    runtime.turn("The second fact is green.", "Noted.")
    runtime.ask("The third question.")
    runtime.assemble()
    return runtime


def shown(runtime: Runtime, strict: Served) -> str:
    """What the next request shows of the conversation; the provider takes it."""
    body = assembled(runtime).body
    assert send(runtime, strict, body)[0] == 200
    asked = json.loads(body)
    return json.dumps(asked.get("messages") or asked["input"])


@pytest.mark.parametrize("held", EMPTY, ids=["absent", "null", "empty", "list", "number"])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_compaction_that_failed_at_the_provider_replaces_nothing(
    provider: str, held: dict[str, Any], settings: Any
) -> None:
    with strict_provider(settings) as strict:
        runtime = two_turns(provider)
        block = window(provider, **held)
        runtime.hear(opening_with(provider, [block], "Looking.", Call("c1", "read")))
        runtime.results(("c1", "the notes"))
        inside = shown(runtime, strict)
        runtime.hear(opening_with(provider, [block], "The third answer."))
        runtime.ask("The fourth question.")
        behind = shown(runtime, strict)
    assert not runtime.events(EventType.COMPACTED)
    for text in (inside, behind):
        assert "second fact" in text and '"compaction"' not in text
    assert "The third answer." in behind
    assert not unproven(runtime)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_beside_one_that_failed_the_window_that_holds_something_is_taken(
    provider: str, settings: Any
) -> None:
    with strict_provider(settings):
        runtime = two_turns(provider)
        blocks = [window(provider, held="A summary."), window(provider, held=None)]
        runtime.hear(opening_with(provider, blocks, "The third answer."))
        runtime.ask("The fourth question.")
        (made,) = runtime.events(EventType.COMPACTED)
    assert (made.payload["inline"], made.payload["items"]) == (True, 1)


@pytest.mark.parametrize("calls", [(), (Call("c1", "read"),)], ids=["answers", "calls a tool"])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_no_window_hides_input_that_came_in_while_the_model_answered(
    provider: str, calls: tuple[Call, ...], settings: Any
) -> None:
    with strict_provider(settings) as strict:
        runtime = two_turns(provider)
        late = TakeInput(message=Content(raw="No: use red."))
        take_input(actor=runtime.actor, run_id=runtime.run, spec=late)
        block = window(provider, held="Blue and green are facts.")
        taken = runtime.hear(opening_with(provider, [block], "The third answer.", *calls))
        assert taken.next == ("tools" if calls else "redo")
        for call in calls:
            runtime.results((call.id, "the notes"))
        inside = shown(runtime, strict)
        answer_all(runtime, strict)
        runtime.ask("The fourth question.")
        behind = shown(runtime, strict)
    assert not runtime.events(EventType.COMPACTED)
    for text in (inside, behind):
        assert "No: use red." in text and "second fact" in text
        assert '"compaction"' not in text and "The third answer." in text
    assert not unproven(runtime)
