"""Windows and output limits of models under the names that each provider gives them."""

from __future__ import annotations

import pytest

from ctxengine.providers.models import model_facts


@pytest.mark.parametrize(
    ("provider", "name", "window"),
    [
        ("anthropic", "claude-sonnet-4-6", 1_000_000),
        ("anthropic", "claude-haiku-4-5-20251001", 200_000),
        ("openrouter", "anthropic/claude-sonnet-4.6", 1_000_000),
        ("openrouter", "anthropic/claude-sonnet-4.5", 200_000),
        ("bedrock", "eu.anthropic.claude-opus-4-7-v1:0", 1_000_000),
        ("openai", "gpt-5.4", 922_000),
        ("google", "gemini-3.1-pro", 1_048_576),
    ],
)
def test_a_models_window_is_known_by_any_of_its_names(
    provider: str, name: str, window: int
) -> None:
    assert model_facts(provider, name)[:1] == (window,)


@pytest.mark.parametrize("name", ["gpt-oss:120b", "gemma-4-31b", "llama-4-scout"])
def test_a_server_of_ones_own_is_not_told_the_window_of_the_card(name: str) -> None:
    facts = model_facts("ollama", name)
    assert (facts.window, facts.source) == (32_768, "assumed")
