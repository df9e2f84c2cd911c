"""Against the strict provider with a set horizon: found within one rung, ten times out of ten (issue 7, capacity spec 1).

Real requests over HTTP; no database, since the ladder needs none. Each climb has a horizon and nonces of its own.
"""

from __future__ import annotations

from itertools import count
from random import Random
from typing import Any

from ctxengine.engine.capacity.ladder import EDGE_WIDTH, MIN_EDGE
from ctxengine.engine.capacity.profile import CapacityProfile, Grade, Observation, metadata_profile
from ctxengine.providers.adapters.registry import adapter_for
from ctxengine.providers.adapters.secret import Secret
from ctxengine.providers.strict_local.server import StrictServer
from ctxengine.service.probe.ladder import Climb, World
from ctxengine.service.wiring import counter_of

TIMES = 10
PROVIDER = "openai"


def climbed(horizon: int, seed: int) -> CapacityProfile:
    """One climb against a model that follows instructions up to so many tokens."""
    model = f"strict/horizon-{horizon}"
    adapter, random, ticks = adapter_for(PROVIDER), Random(seed), count()
    world = World(
        send=lambda prompt: adapter.send(adapter.render(prompt), timeout_s=30.0),
        nonce=lambda: f"{random.getrandbits(64):016x}",
        elapsed_s=lambda: next(ticks) / 1_000,
        now=lambda: "2026-01-01T00:00:00+00:00",
        wait=lambda _: None,
        cancelled=lambda: False,
    )
    known = metadata_profile(
        provider=PROVIDER, model=model, declared_window=9_000, max_output=1_000
    )
    climb = Climb(known, counter_of(PROVIDER, model), world, largest=8_000)
    return climb.run()


def _size(seen: Observation) -> tuple[int, int]:
    """A rung's size; of its samples, which differ by their nonces, the smallest is what counts."""
    return seen.tokens, -seen.actual_tokens


def edge(found: CapacityProfile) -> tuple[Observation, Observation]:
    """The largest rung that was followed, and the smallest that was not."""
    seen = found.provenance.observations
    passed = max((o for o in seen if o.grade is not Grade.FAIL), key=_size)
    failed = min((o for o in seen if o.grade is Grade.FAIL), key=_size)
    return passed, failed


def test_a_set_horizon_is_found_within_one_rung_ten_times_out_of_ten(settings: Any) -> None:
    random, right = Random(7), set()
    with StrictServer() as strict:
        settings.CTX_PROVIDER_URLS = {PROVIDER: strict.openai_url}
        settings.CTX_PROVIDER_KEYS = {PROVIDER: Secret("k" * 20)}
        for seed in range(TIMES):
            horizon = random.randrange(4_200, 7_200)
            found = climbed(horizon, seed)
            low, high = edge(found)
            # Prompts are made of whole turns, so the provider's count of a rung is the one to go by.
            assert low.actual_tokens == found.horizon.tokens <= horizon < high.actual_tokens
            assert high.tokens - low.tokens <= max(MIN_EDGE, low.tokens * EDGE_WIDTH)
            right.add(horizon)
    assert len(right) == TIMES
