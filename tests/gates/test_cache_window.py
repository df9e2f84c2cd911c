"""Gate: the cache window. Whatever shape a step has, its request reads what the one before it wrote (design 7.18)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxengine.engine.build import remarked
from ctxengine.engine.cache.markers import MAX_MARKERS
from ctxengine.engine.cache.predict import Entry, Prediction, marked_places, predict
from ctxengine.engine.cache.reach import INTERMEDIATE, within_reach
from ctxengine.engine.cache.rules import CacheRules, cache_rules
from ctxengine.engine.cache.trail import trail_of
from ctxengine.engine.plan.plan import PinnedTool
from ctxengine.engine.request import ModelRequest
from ctxengine.engine.wire.registry import renderer_for
from ctxengine.providers.strict_local.clock import AdvancingClock
from ctxengine.providers.strict_local.exchange import Call
from ctxengine.providers.strict_local.provider import StrictProvider
from tests.lab import READ, Lab, a_plan

pytestmark = pytest.mark.gate

NOW = 1_790_000_000.0
WORDY: tuple[PinnedTool, ...] = (
    READ.model_copy(update={"description": "It reads what lies there, word by word. " * 400}),
)
PATHS = {
    "anthropic": "/v1/messages",
    "openai": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
}
MODELS = {
    "anthropic": "claude-sonnet-4-6",
    "openai": "gpt-5.6-sol",
    "openai-responses": "gpt-5.6-sol",
}
providers = pytest.mark.parametrize("provider", list(MODELS))


class Burst(NamedTuple):
    """What is appended between two requests: steps of the run, or a whole run and the question behind it."""

    steps: tuple[int, ...]
    """Calls of each step."""
    runs: int
    """Runs that end before the next request."""


bursts = st.lists(
    st.builds(
        Burst, st.lists(st.integers(1, 4), min_size=1, max_size=14).map(tuple), st.integers(0, 1)
    ),
    min_size=2,
    max_size=5,
)


@dataclass
class Window:
    """One session on a provider that really caches."""

    provider: str
    reaching: bool = True
    entries: Sequence[Entry] = ()
    sent: list[ModelRequest] = field(default_factory=list)

    def __post_init__(self) -> None:
        model = MODELS[self.provider]
        plan = a_plan(provider=self.provider, window=400_000, tools=WORDY)
        self.lab = Lab(plan.model_copy(update={"model": model}))
        self.strict = StrictProvider(clock=AdvancingClock(lambda: NOW), windows={model: 400_000})
        self.rules: CacheRules = cache_rules(renderer_for(self.provider).api, self.provider, model)

    def live(self, burst: Burst) -> None:
        """Append what lies between two requests."""
        for _ in range(burst.runs):
            self.lab.reply(20)
            self.lab.ask(20)
        for calls in burst.steps:
            self.lab.act(*([30] * calls))

    def step(self) -> tuple[Prediction, dict[str, Any]]:
        """Build, mark, predict, send; gives what was expected and what the provider says."""
        built = self.lab.build().built
        trail = trail_of(built)
        if self.reaching:
            marks = within_reach(built, trail, self.entries, rules=self.rules, now=NOW)
            built = remarked(built, marks)
        self.sent.append(built)
        expected = predict(
            trail, marked_places(built, trail, self.rules), self.entries, rules=self.rules, now=NOW
        )
        self.entries = expected.entries
        headers = {
            "authorization": "Bearer k",
            "x-api-key": "k",
            "anthropic-version": "2026-10-21",
        }
        answer = self.strict.handle(Call("POST", PATHS[self.provider], headers, built.body))
        self.strict.begin(answer)
        said = json.loads(answer.body)
        assert answer.status == 200, said
        return expected, said["usage"]


def read_and_written(provider: str, usage: dict[str, Any]) -> tuple[int, int]:
    if provider == "anthropic":
        return usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"]
    details = usage.get("prompt_tokens_details") or usage["input_tokens_details"]
    return details["cached_tokens"], details["cache_write_tokens"]


@providers
@given(session=bursts)
@settings(max_examples=25)
def test_each_request_reads_all_that_the_one_before_wrote(
    provider: str, session: list[Burst]
) -> None:
    window = Window(provider)
    window.lab.ask(20)
    left = 0
    for burst in session:
        window.live(burst)
        expected, usage = window.step()
        read, written = read_and_written(provider, usage)
        assert read == left
        assert (expected.read > 0) == (read > 0)
        left = read + written
        assert left > 0
        assert len(window.sent[-1].markers) <= MAX_MARKERS


def test_a_long_step_gives_up_the_marker_behind_the_tools_for_one_within_reach() -> None:
    window = Window("anthropic")
    window.lab.ask(20)
    window.step()
    window.lab.reply(20)
    window.lab.ask(20)
    window.live(Burst((1,) * 3, 0))
    window.step()
    assert [m.name for m in window.sent[-1].markers] == [
        "after_tools",
        "after_system",
        "carried_history",
        "run",
    ]
    window.live(Burst((1,) * 12, 0))
    _, usage = window.step()
    assert [marker.name for marker in window.sent[-1].markers] == [
        "after_system",
        "carried_history",
        "run",
        INTERMEDIATE,
    ]
    assert usage["cache_read_input_tokens"] > 0


def test_without_it_the_carried_history_would_be_paid_for_again() -> None:
    """The property above rests on the marker: without one the same session reads its prefix alone."""
    found = {}
    for reaching in (True, False):
        window = Window("anthropic", reaching=reaching)
        window.lab.ask(20)
        window.live(Burst((1,) * 3, 0))
        window.step()
        window.live(Burst((1,) * 14, 0))
        found[reaching] = read_and_written("anthropic", window.step()[1])[0]
    assert found[False] < found[True]


def test_parallel_calls_and_their_results_count_as_one_position_each() -> None:
    window = Window("anthropic")
    window.lab.ask(20)
    window.live(Burst((1,), 0))
    window.step()
    window.live(Burst((30, 30), 0))
    expected, usage = window.step()
    assert INTERMEDIATE not in [marker.name for marker in window.sent[-1].markers]
    assert expected.why == "hit"
    assert usage["cache_read_input_tokens"] > 0


def test_the_hashes_do_not_know_of_markers() -> None:
    window = Window("anthropic")
    window.lab.ask(20)
    window.live(Burst((1,), 0))
    window.step()
    built = window.sent[-1]
    bare = remarked(built, ())
    assert bare.request_sha256 == built.request_sha256
    assert bare.body != built.body
    assert len(bare.body) < len(built.body)


@pytest.mark.parametrize("provider", ["openai", "openai-responses"])
def test_no_breakpoint_of_a_gpt_stands_on_an_answer_or_on_a_fresh_row(provider: str) -> None:
    """A history marker settles on the latest input or result; what moves every step stays behind it (7.13)."""
    window = Window(provider)
    window.lab.ask(20)
    window.lab.reply(20)
    window.lab.ask(20)
    window.live(Burst((2,), 0))
    window.step()
    body = json.loads(window.sent[-1].body)
    items = body.get("input") or body["messages"]
    marked = [item for item in items if "prompt_cache_breakpoint" in json.dumps(item)]
    assert body["prompt_cache_options"] == {"mode": "explicit"}
    assert marked
    for item in marked:
        assert item.get("role") != "assistant"
        assert "[runtime]" not in json.dumps(item)
