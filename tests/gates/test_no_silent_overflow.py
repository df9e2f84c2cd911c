"""Gate: no silent overflow. What the engine estimates is never less than what a provider counts, so that nothing is refused
(frozen-prefix spec, The token estimator and Failure modes)."""

from __future__ import annotations

import json

import pytest

from ctxengine.providers.strict_local.clock import AdvancingClock
from ctxengine.providers.strict_local.exchange import Call as HttpCall
from ctxengine.providers.strict_local.provider import StrictProvider
from ctxengine.service.specs import PolicySpec
from tests.cast import Call, Runtime

pytestmark = [pytest.mark.gate, pytest.mark.django_db]

WINDOWS = {"anthropic": 9_000, "openai": 5_000, "openai-responses": 5_000}
RESERVE = 900
MARGIN = 0.05
"""By how much an estimate may fall short of the provider's count: the margin that plans leave free (spec, Tracked metrics)."""

HEADERS = {"authorization": "Bearer k", "x-api-key": "k", "anthropic-version": "2026-10-21"}
PATHS = {
    "anthropic": "/v1/messages",
    "openai": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
}
KINDS = (
    "The harbour master keeps a ledger of every boat that came in and left again. " * 14,
    "def fold(xs: list[int]) -> int:\n    return sum(x ** 2 for x in xs if x % 3)\n\n" * 14,
    json.dumps([{"id": n, "ok": n % 2 == 0, "path": f"/srv/a{n}"} for n in range(40)]),
    "Der Hafenmeister führt über jedes Boot Buch, das ein- und ausläuft. " * 14,
    "港の責任者は出入りするすべての船を記録している。" * 20,
    "2026-03-28T12:00:00Z 7f3a9c1e level=warn took=1832ms id=0x9c44\n" * 18,
)


@pytest.mark.parametrize("provider", list(PATHS))
def test_no_request_is_refused_as_too_long_and_none_outgrows_the_margin(
    provider: str,
) -> None:
    policy = PolicySpec(low_water=1.0, reserve=RESERVE, history_floor=1_000, compaction="none")
    window = WINDOWS[provider]
    runtime = Runtime(provider=provider, window=window, policy=policy)
    strict = StrictProvider(
        clock=AdvancingClock(lambda: 1_790_000_000.0), windows={runtime.model: window}
    )
    pressed = 0
    for turn in range(10):
        runtime.ask(f"Question {turn}: {KINDS[turn % len(KINDS)][:200]}")
        for step in range(2):
            built = runtime.assemble()
            pressed += bool(built.manifest["cut"]["left_out_units"])
            answer = strict.handle(HttpCall("POST", PATHS[provider], HEADERS, built.body))
            said = json.loads(answer.body)
            assert answer.status == 200, said
            usage = said["usage"]
            counted = sum(
                usage.get(name) or 0
                for name in (
                    "input_tokens",
                    "prompt_tokens",
                    "cache_read_input_tokens",
                    "cache_creation_input_tokens",
                )
            )
            assert counted <= built.budget["request"] * (1 + MARGIN)
            assert counted + RESERVE <= window
            if step == 0:
                runtime.say("", Call(f"c{turn}", "read", '{"path":"/srv/a"}'))
                runtime.results((f"c{turn}", KINDS[turn % len(KINDS)]))
        runtime.say(KINDS[turn % len(KINDS)][:400])
    assert pressed >= 3
