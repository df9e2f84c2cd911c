"""Gate: across turns of a `working_set` session the provider reads at least the prefix from its cache (capacity spec 10).

Against the strict provider, which keeps a real prefix cache, over raw HTTP on three APIs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from ctxengine.providers.strict_local.provider import StrictProvider
from ctxengine.providers.strict_local.script import Reply
from ctxengine.providers.strict_local.server import StrictServer
from tests.cast import PROVIDERS, Runtime
from tests.service.working_set.test_loop import verdicts

pytestmark = [pytest.mark.gate, pytest.mark.django_db]

PATHS = {
    "anthropic": "/v1/messages",
    "openai": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
}
HEADERS = {"x-api-key": "k", "anthropic-version": "2023-06-01", "authorization": "Bearer k"}
INSTRUCTIONS = "You look things up and answer shortly. " + "Mind the house rules closely. " * 500
BLOCK = 128
"""Tokens: where a cache counts whole blocks alone, what is read ends at one."""


@pytest.fixture
def strict() -> Iterator[StrictServer]:
    with StrictServer(StrictProvider(instance="turns")) as server:
        yield server


def usage_of(strict: StrictServer, runtime: Runtime, said: str) -> dict[str, Any]:
    """Send the run's request, report the answer; gives the usage."""
    strict.provider.script.add([Reply(text=said, plain=True)])
    answer = httpx2.post(
        strict.url + PATHS[runtime.provider], content=runtime.assemble().body, headers=HEADERS
    )
    assert answer.status_code == 200, answer.text
    runtime.hear(answer.text)
    usage: dict[str, Any] = answer.json()["usage"]
    return usage


def cached(usage: dict[str, Any]) -> int:
    """Tokens read from the cache."""
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details") or {}
    return int(usage.get("cache_read_input_tokens", details.get("cached_tokens", 0)))


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_first_request_of_a_later_turn_reads_at_least_the_prefix(
    strict: StrictServer, provider: str
) -> None:
    runtime = Runtime(provider=provider, instructions=INSTRUCTIONS, extra={"engine": "working_set"})
    for number in range(4):
        runtime.ask(f"What of depot {number}?")
        usage = usage_of(strict, runtime, f"Depot {number} is open.")
        if number:
            prefix = runtime.opened.plan.prefix_tokens
            total = int(usage.get("prompt_tokens", usage.get("input_tokens", 0)))
            assert cached(usage) >= prefix - BLOCK, (number, total)
    rows = runtime.requests
    assert len({row.wire_prefix_sha256 for row in rows}) == 1
    assert {row.verdict["class"] for row in rows[1:]} == {"agrees"}
    assert verdicts(runtime) == {"identical"}
