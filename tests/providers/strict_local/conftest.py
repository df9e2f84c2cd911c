"""A strict provider on a free port, the official SDKs on it, and a clock that only tests move."""

from __future__ import annotations

from collections.abc import Iterator

import anthropic
import httpx2
import openai
import pytest

from ctxengine.providers.strict_local.clock import AdvancingClock
from ctxengine.providers.strict_local.provider import StrictProvider
from ctxengine.providers.strict_local.server import StrictServer

START = 1_790_000_000.0
WINDOWS = {"strict/small": 2_000, "claude-sonnet-4": 2_000, "gpt-4.1-nano": 2_000}


@pytest.fixture
def clock() -> AdvancingClock:
    return AdvancingClock(lambda: START)


@pytest.fixture
def provider(clock: AdvancingClock) -> StrictProvider:
    return StrictProvider(clock=clock, instance="t", windows=WINDOWS)


@pytest.fixture
def server(provider: StrictProvider) -> Iterator[StrictServer]:
    with StrictServer(provider) as running:
        yield running


@pytest.fixture(scope="session")
def plain_http() -> Iterator[httpx2.Client]:
    """One connection pool for all SDK clients: reading the machine's certificates takes longest."""
    with httpx2.Client(verify=False, timeout=10) as client:
        yield client


def claude_at(server: StrictServer, http: httpx2.Client) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=server.url, api_key="test", max_retries=0, http_client=http)


def gpt_at(server: StrictServer, http: httpx2.Client) -> openai.OpenAI:
    return openai.OpenAI(
        base_url=server.openai_url, api_key="test", max_retries=0, http_client=http
    )


@pytest.fixture
def claude(server: StrictServer, plain_http: httpx2.Client) -> anthropic.Anthropic:
    return claude_at(server, plain_http)


@pytest.fixture
def gpt(server: StrictServer, plain_http: httpx2.Client) -> openai.OpenAI:
    return gpt_at(server, plain_http)


@pytest.fixture(scope="module")
def shared_server() -> Iterator[StrictServer]:
    """For tests that leave nothing behind."""
    with StrictServer(StrictProvider(windows=WINDOWS)) as running:
        yield running


@pytest.fixture(scope="module")
def shared_claude(shared_server: StrictServer, plain_http: httpx2.Client) -> anthropic.Anthropic:
    return claude_at(shared_server, plain_http)


@pytest.fixture(scope="module")
def shared_gpt(shared_server: StrictServer, plain_http: httpx2.Client) -> openai.OpenAI:
    return gpt_at(shared_server, plain_http)
