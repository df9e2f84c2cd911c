"""The Anthropic cache agrees with the simulator that judges policies, on any sequence of requests."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxengine.providers.strict_local.cache_anthropic import AnthropicCache
from ctxengine.providers.strict_local.segments import Segment, chain_of

MINIMUM = 60

steps = st.lists(
    st.tuples(
        st.integers(0, 30),  # how much of the history is sent
        st.sampled_from(["", "x"]),  # whether its first block was rewritten
        st.sets(st.integers(0, 30), max_size=4),  # where markers stand
        st.integers(0, 4),  # how many of them are long-lived
        st.sampled_from([0, 100, 299, 301, 3_599, 3_601]),  # seconds until the next request
    ),
    min_size=1,
    max_size=12,
)


@pytest.fixture(scope="module")
def referee(bench_folder: Path) -> Any:
    sys.path.insert(0, str(bench_folder))
    try:
        return importlib.import_module("cachesim")
    finally:
        sys.path.remove(str(bench_folder))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sent=steps)
def test_reads_and_writes_are_those_of_the_referee(referee: Any, sent: list[Any]) -> None:
    ours, theirs = AnthropicCache(), referee.Anthropic(minimum=MINIMUM)
    usage = referee.Usage()
    now = 1_000.0
    for length, change, places, long, pause in sent:
        texts = [f"{change if n == 0 else ''}block {n} " * 3 for n in range(length + 1)]
        marks = sorted(place for place in places if place <= length)
        lives = {place: "1h" if order < long else "5m" for order, place in enumerate(marks)}
        chain = chain_of(
            [
                Segment("messages", text, referee.ntok(text), position=n, marker=lives.get(n))
                for n, text in enumerate(texts)
            ],
            (("messages", ""),),
        )
        found = ours.look_up(chain, MINIMUM, now)
        ours.commit(found, now)
        read, write = usage.read, usage.write
        theirs.request([(text, lives.get(n)) for n, text in enumerate(texts)], now, usage)
        assert found.usage.read == usage.read - read
        assert found.usage.written == usage.write - write
        assert sum(found.usage) == chain.tokens
        now += pause
