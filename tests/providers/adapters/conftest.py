"""Adapters pointed at servers of the test's own, by the settings that an operator would use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from ctxengine.providers.adapters.contract import Adapter, Prompt, PromptMessage, PromptTool
from ctxengine.providers.adapters.registry import adapter_for
from ctxengine.providers.adapters.secret import Secret
from ctxengine.providers.strict_local.provider import StrictProvider
from ctxengine.providers.strict_local.server import StrictServer

MODELS = {
    "anthropic": "claude-sonnet-4-6",
    "openai": "gpt-5.4",
    "openai-responses": "gpt-5.4",
    "openrouter": "openai/gpt-5.4",
    "openrouter-responses": "openai/gpt-5.4",
    "compatible": "gpt-4.1",
    "ollama": "strict/horizon-16k",
}
SMALL = {
    "anthropic": "claude-sonnet-4",
    "openai": "gpt-4.1-nano",
    "openai-responses": "gpt-4.1-nano",
    "openrouter": "gpt-4.1-nano",
    "openrouter-responses": "gpt-4.1-nano",
    "compatible": "gpt-4.1-nano",
    "ollama": "strict/horizon-1k",
}
"""Models with a window of 2,000 tokens."""

ACK = PromptTool(
    "ack", "Acknowledges.", {"type": "object", "properties": {"code": {"type": "string"}}}
)

Configure = Callable[[Mapping[str, str]], None]


@pytest.fixture
def configure(settings: Any) -> Configure:
    """Lists addresses, and gives every provider a key."""

    def listed(urls: Mapping[str, str]) -> None:
        settings.CTX_PROVIDER_URLS = dict(urls)
        settings.CTX_PROVIDER_KEYS = {
            name: Secret("key-of-a-test")
            for name in ("anthropic", "openai", "google", "openrouter", "bedrock")
        }

    return listed


@pytest.fixture
def strict() -> Iterator[StrictServer]:
    windows = dict.fromkeys(SMALL.values(), 2_000)
    with StrictServer(StrictProvider(instance="t", windows=windows)) as running:
        yield running


@pytest.fixture
def strict_adapter(strict: StrictServer, configure: Configure) -> Callable[[str], Adapter]:
    openai = ("openai", "openrouter", "compatible")
    configure(
        {"anthropic": strict.url, "ollama": strict.url, **dict.fromkeys(openai, strict.openai_url)}
    )
    return adapter_for


def prompt(model: str, text: str = "Hello", **fields: Any) -> Prompt:
    """A prompt of one question."""
    return Prompt(model, (PromptMessage("user", text),), **fields)
