"""Models that bind their reasoning to all that stands before it: rewrites drop it, and nothing is refused (design 7.12).

The strict local provider holds every signature against the bytes before it, as the real one does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest

from ctxengine.engine.cache.bound_reasoning import binds_reasoning
from ctxengine.engine.events import EventType
from ctxengine.providers.strict_local.provider import StrictProvider
from ctxengine.providers.strict_local.script import Reply, ScriptedCall
from ctxengine.providers.strict_local.server import StrictServer
from ctxengine.service.rotate_epoch import rotate_epoch
from ctxengine.service.specs import PolicySpec
from tests.shrinking import PROSE, Shrinker

pytestmark = pytest.mark.django_db

MODEL = "claude-opus-5-5"


@pytest.fixture
def provider() -> StrictProvider:
    return StrictProvider(instance="bound")


@pytest.fixture
def url(provider: StrictProvider) -> Iterator[str]:
    with StrictServer(provider) as server:
        yield f"{server.url}/v1/messages"


class Thinker:
    """A session whose every step is sent to the strict provider, whose every answer thinks."""

    def __init__(self, provider: StrictProvider, url: str, **fields: Any) -> None:
        self.provider = provider
        self.url = url
        self.runtime = Shrinker(model=MODEL, **fields)

    def turns(self, count: int, words: str = PROSE * 12) -> None:
        """Closed turns to shrink, without a provider."""
        for number in range(count):
            self.runtime.turn(f"Question {number}: {words}", f"Answer {number}: {words}")

    def step(self, *, call: str = "", text: str = "", result: str = "") -> dict[str, Any]:
        """One step: what the engine built goes out, what comes back goes in, its call is answered."""
        calls = (ScriptedCall("read", call_id=call),) if call else ()
        self.provider.script.add(
            [Reply(text=text or None, calls=calls, thinking=f"about {call or text}")]
        )
        built = self.runtime.assemble()
        answer = httpx2.post(
            self.url,
            content=built.body,
            headers={"anthropic-version": "2023-06-01", "x-api-key": "k"},
        )
        assert answer.status_code == 200, answer.text
        self.runtime.hear(answer.text)
        if call:
            self.runtime.results((json.loads(answer.text)["content"][-1]["id"], result or "found"))
        sent: dict[str, Any] = json.loads(built.body)
        return sent


def thoughts(request: dict[str, Any]) -> int:
    """Thinking blocks in a request."""
    blocks = [b for m in request["messages"] if m["role"] == "assistant" for b in m["content"]]
    return sum(block["type"] == "thinking" for block in blocks)


def dropped(runtime: Shrinker, *types: EventType) -> list[int]:
    """What events of these types count as dropped."""
    found = [event.payload.get("reasoning_dropped", 0) for event in runtime.events(*types)]
    return [count for count in found if count]


def proven(runtime: Shrinker) -> bool:
    from ctxengine.service.prove import prove_all

    return all(found.verdict != "different" for found in prove_all(session_id=runtime.session))


@pytest.mark.parametrize(
    ("model", "binds"),
    [
        ("claude-opus-5-5", True),
        ("claude-fable-5-1", True),
        ("claude-mythos-5.2-20261101", True),
        ("anthropic/claude-haiku-5-5", True),
        ("claude-opus-5", False),
        ("claude-opus-5-20260101", False),
        ("claude-fable-5", False),
        ("claude-sonnet-4-6", False),
        ("claude-3-5-haiku", False),
        ("gpt-5.6", False),
    ],
)
def test_the_models_that_bind_their_reasoning_are_known_by_name(model: str, binds: bool) -> None:
    assert binds_reasoning(model) is binds


def test_inside_a_run_all_of_its_reasoning_goes_out_again_and_is_never_refused(
    provider: StrictProvider, url: str
) -> None:
    thinker = Thinker(provider, url)
    thinker.turns(2)
    thinker.runtime.ask("Look it up.")
    thinker.step(call="c1")
    thinker.step(call="c2")
    assert thoughts(thinker.step(text="Done.")) == 2
    assert proven(thinker.runtime)


def test_the_next_run_starts_without_the_reasoning_of_the_one_before(
    provider: StrictProvider, url: str
) -> None:
    thinker = Thinker(provider, url)
    thinker.runtime.ask("Look it up.")
    thinker.step(call="c1")
    thinker.step(text="Done.")
    thinker.runtime.ask("And now?")
    assert thoughts(thinker.step(call="c2")) == 0
    assert thoughts(thinker.step(text="Done.")) == 1
    assert proven(thinker.runtime)


def first_unit(runtime: Shrinker) -> int:
    """Sequence of the session's first message."""
    return runtime.events(EventType.USER_MESSAGE)[0].sequence


def third_turn(runtime: Shrinker) -> int:
    """Sequence of the third message."""
    return runtime.events(EventType.USER_MESSAGE)[2].sequence


ACTS: dict[str, Callable[[Shrinker], Any]] = {
    "compacted": lambda runtime: runtime.shrink(through=third_turn(runtime) - 1),
    "folded": lambda runtime: runtime.mark(str(first_unit(runtime)), "folded"),
    "pinned": lambda runtime: runtime.mark(str(first_unit(runtime)), "pinned"),
    "excluded": lambda runtime: runtime.mark(f"{first_unit(runtime)}.0", "excluded", scope="item"),
}


@pytest.mark.parametrize("act", sorted(ACTS))
def test_an_act_on_history_inside_a_run_drops_its_reasoning_once(
    act: str, provider: StrictProvider, url: str
) -> None:
    thinker = Thinker(provider, url)
    thinker.turns(4)
    runtime = thinker.runtime
    runtime.ask("Look it up.")
    thinker.step(call="c1")
    thinker.step(call="c2")
    ACTS[act](runtime)
    assert thoughts(thinker.step(call="c3")) == 0
    assert thoughts(thinker.step(call="c4")) == 1
    assert thoughts(thinker.step(text="Done.")) == 2
    kinds = (EventType.YIELD_APPLIED, EventType.COMPACTED, EventType.PRESENTATION_SET)
    assert len(dropped(runtime, *kinds)) == 1
    assert proven(runtime)


def test_an_undoing_inside_a_run_drops_its_reasoning_once(
    provider: StrictProvider, url: str
) -> None:
    thinker = Thinker(provider, url)
    thinker.turns(4)
    runtime = thinker.runtime
    done = runtime.shrink(through=third_turn(runtime) - 1)
    runtime.ask("Look it up.")
    thinker.step(call="c1")
    runtime.undo(done.event)
    assert thoughts(thinker.step(call="c2")) == 0
    thinker.step(text="Done.")
    assert dropped(runtime, EventType.COMPACTION_UNDONE) == [1]
    assert proven(runtime)


def test_a_rotation_inside_a_run_drops_its_reasoning_once(
    provider: StrictProvider, url: str
) -> None:
    thinker = Thinker(provider, url)
    runtime = thinker.runtime
    runtime.ask("Look it up.")
    thinker.step(call="c1")
    rotate_epoch(
        actor=runtime.actor,
        session_id=runtime.session,
        reason="tool_removed_for_security",
        note="x",
        tools=("web.fetch",),
    )
    assert thoughts(thinker.step(call="c2")) == 0
    thinker.step(text="Done.")
    assert proven(runtime)


def test_a_cut_under_pressure_drops_the_reasoning_with_its_own_build(
    provider: StrictProvider, url: str
) -> None:
    thinker = Thinker(
        provider,
        url,
        window=24_000,
        max_output=1_000,
        policy=PolicySpec(history_floor=1_000, inline_maximum_bytes=None),
    )
    thinker.turns(5, PROSE * 16)
    runtime = thinker.runtime
    runtime.ask("Look it up.")
    seen = [thoughts(thinker.step(call=f"c{place}", result=PROSE * 50)) for place in range(7)]
    thinker.step(text="Done.")
    cuts = runtime.events(EventType.YIELD_APPLIED)
    assert cuts and dropped(runtime, EventType.YIELD_APPLIED), seen
    assert all(event.payload["verdict"]["forced_by"] == "budget" for event in cuts)
    assert all(event.payload["verdict"]["cost_model"] for event in cuts)
    assert proven(runtime)


def test_room_is_made_before_a_run_rather_than_inside_it(
    provider: StrictProvider, url: str
) -> None:
    thinker = Thinker(
        provider,
        url,
        window=24_000,
        max_output=1_000,
        policy=PolicySpec(history_floor=1_000, expected_steps=500),
    )
    runtime = thinker.runtime
    thinker.turns(9, PROSE * 15)
    runtime.ask("Look it up.")
    before = len(runtime.events(EventType.COMPACTED))
    thinker.step(call="c1")
    (made,) = runtime.events(EventType.COMPACTED)[before:]
    assert made.payload["reason"] == "history was near its limit when the run began"
    assert made.payload["verdict"]["pays"] and not made.payload["verdict"]["forced_by"]
    thinker.step(call="c2")
    assert runtime.events(EventType.COMPACTED)[-1].sequence == made.sequence
    assert proven(runtime)
