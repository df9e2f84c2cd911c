"""Who writes a summary: the model named, the session's own, or the provider's cheapest that admits the input."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from ctxengine.engine.budget.policy import BudgetPolicy
from ctxengine.engine.plan.plan import Plan
from ctxengine.providers.models import model_facts
from ctxengine.service.specs import ServiceError
from ctxengine.service.summaries.model_choice import Writer, check_summary_model, writer_of


def chosen(
    provider: str, model: str, wish: str = "cheapest", *, tokens: int = 20_000, **plan: Any
) -> Writer:
    facts = {"window": 1_000_000, "max_output": 64_000} | plan
    policy = BudgetPolicy(compaction="model", summary_model=wish)
    fake = SimpleNamespace(provider=provider, model=model, policy=policy, **facts)
    return writer_of(cast("Plan", fake), input_tokens=tokens, output_tokens=2_000)


def test_the_cheapest_of_the_sessions_own_provider_writes() -> None:
    writer = chosen("anthropic", "claude-sonnet-4-6")
    assert (writer.label, writer.why) == ("anthropic/claude-haiku-5-5", "cheapest")
    assert chosen("openai", "gpt-5.4").provider == "openai"
    assert chosen("openai-responses", "gpt-5.4").provider == "openai-responses"


def test_a_window_that_does_not_admit_the_input_is_passed_over() -> None:
    small, large = (chosen("openai", "gpt-5.4", tokens=tokens) for tokens in (20_000, 600_000))
    assert small.model != large.model
    assert large.room(2_000) >= 600_000


def test_where_no_window_admits_the_input_one_of_the_largest_is_taken() -> None:
    writer = chosen("anthropic", "claude-sonnet-4-6", tokens=5_000_000)
    assert writer.window == model_facts("anthropic", "claude-sonnet-4-6").window


@pytest.mark.parametrize("provider", ["ollama", "compatible", "openrouter", "bedrock"])
def test_where_no_list_says_what_is_cheap_the_session_writes_itself(provider: str) -> None:
    writer = chosen(provider, "some/model:8b", window=32_000)
    assert (writer.model, writer.window, writer.why) == ("some/model:8b", 32_000, "session")


@pytest.mark.parametrize(
    ("wish", "label", "why"),
    [
        ("session", "anthropic/claude-sonnet-4-6", "session"),
        ("claude-opus-4-6", "anthropic/claude-opus-4-6", "named"),
        ("openai/gpt-5-mini", "openai/gpt-5-mini", "named"),
        ("meta/llama-9", "anthropic/meta/llama-9", "named"),
    ],
)
def test_a_policy_may_name_who_writes(wish: str, label: str, why: str) -> None:
    writer = chosen("anthropic", "claude-sonnet-4-6", wish)
    assert (writer.label, writer.why) == (label, why)


@pytest.mark.parametrize(
    ("provider", "wish", "listed", "allowed"),
    [
        ("anthropic", "cheapest", (), True),
        ("anthropic", "session", (), True),
        ("anthropic", "claude-opus-4-6", (), True),
        ("anthropic", "anthropic/claude-opus-4-6", (), True),
        ("openai-responses", "openai/gpt-5-mini", (), True),
        ("openai", "openai-responses/gpt-5-mini", (), True),
        ("anthropic", "openai/gpt-5-mini", (), False),
        ("anthropic", "ollama/evil", (), False),
        ("anthropic", "compatible/evil", ("openai",), False),
        ("anthropic", "openai/gpt-5-mini", ("openai",), True),
    ],
)
def test_another_providers_model_is_named_only_where_the_operator_lists_it(
    settings: Any, provider: str, wish: str, listed: tuple[str, ...], allowed: bool
) -> None:
    settings.CTX_SUMMARY_PROVIDERS = listed
    if allowed:
        check_summary_model(wish, provider)
        return
    with pytest.raises(ServiceError) as refused:
        check_summary_model(wish, provider)
    assert (refused.value.code, refused.value.status) == ("summary_model_not_allowed", 422)
    assert provider in refused.value.detail
