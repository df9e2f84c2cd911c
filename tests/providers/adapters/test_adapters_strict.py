"""Adapters against the strict local provider: what they send is accepted, what comes back is read, what fails is named."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from ctxengine.providers.adapters.addresses import PROVIDERS
from ctxengine.providers.adapters.contract import (
    Adapter,
    Prompt,
    PromptMessage,
    ProviderError,
    Stop,
)
from ctxengine.providers.adapters.registry import adapter_for, compactor_for, configured_providers
from ctxengine.providers.strict_local.script import Reply, ScriptedCall
from ctxengine.providers.strict_local.server import StrictServer
from tests.providers.adapters.conftest import ACK, MODELS, SMALL, Configure, prompt

every_provider = pytest.mark.parametrize("provider", sorted(MODELS))
Adapters = Callable[[str], Adapter]


def send(adapter: Adapter, asked: Prompt, **fields: Any) -> Any:
    return adapter.send(adapter.render(asked), timeout_s=20, **fields)


@every_provider
def test_an_answer_comes_back_with_usage_and_time(
    provider: str, strict: StrictServer, strict_adapter: Adapters
) -> None:
    strict.provider.script.add([Reply(text="Forty-two, and that is all there is to say about it.")])
    answer = send(strict_adapter(provider), prompt(MODELS[provider], system="Be brief."))
    assert answer.text == "[scripted] Forty-two, and that is all there is to say about it."
    assert answer.stop is Stop.END and answer.stop_raw
    assert answer.model == "strict/" + MODELS[provider].removeprefix("strict/")
    usage = answer.usage
    assert usage is not None and usage.problems == ()
    assert usage.fresh + usage.cache_read + usage.cache_write_5m + usage.cache_write_1h > 0
    assert usage.output > 0
    assert 0 <= answer.first_token_ms <= answer.latency_ms
    assert "scripted" in answer.raw and "scripted" not in repr(answer).replace(answer.text, "")


@every_provider
def test_calls_come_back_and_their_results_are_accepted(
    provider: str, strict: StrictServer, strict_adapter: Adapters
) -> None:
    adapter = strict_adapter(provider)
    arguments = '{"code":"x-1"}'
    strict.provider.script.add([Reply(calls=(ScriptedCall("ack", arguments),))])
    asked = prompt(MODELS[provider], "Acknowledge x-1.", tools=(ACK,))
    first = send(adapter, asked)
    ((call_id, name, given),) = first.calls
    assert (first.stop, name, json.loads(given)) == (Stop.TOOL, "ack", {"code": "x-1"})
    messages = (
        *asked.messages,
        PromptMessage("assistant", calls=first.calls),
        PromptMessage("user", "Thanks.", results=((call_id, "acknowledged"),)),
    )
    again = send(adapter, Prompt(MODELS[provider], messages, tools=(ACK,)))
    assert again.text and again.stop is Stop.END


@every_provider
def test_an_answer_that_runs_into_the_limit_says_so(
    provider: str, strict: StrictServer, strict_adapter: Adapters
) -> None:
    strict.provider.script.add([Reply(text="word " * 400)])
    answer = send(strict_adapter(provider), prompt(MODELS[provider], max_output_tokens=20))
    assert answer.stop is Stop.OUTPUT_LIMIT


@pytest.mark.parametrize("provider", sorted(set(MODELS) - {"ollama"}))
def test_a_refusal_is_no_normal_stop(
    provider: str, strict: StrictServer, strict_adapter: Adapters
) -> None:
    strict.provider.script.add([Reply(text="No.", refuse=True)])
    assert send(strict_adapter(provider), prompt(MODELS[provider])).stop is Stop.REFUSAL


@every_provider
def test_too_long_a_prompt_is_named_with_its_numbers_where_there_are_any(
    provider: str, strict_adapter: Adapters
) -> None:
    asked = prompt(SMALL[provider], "word " * 3_000, max_output_tokens=100, window=2_000)
    with pytest.raises(ProviderError) as caught:
        send(strict_adapter(provider), asked)
    error = caught.value
    assert (error.code, error.status, error.retryable) == ("over_length", 400, False)
    assert "word" not in error.detail
    if provider not in ("openai-responses", "openrouter-responses", "ollama"):
        assert error.maximum == 2_000 and error.actual is not None and error.actual > 2_000
        assert f"{error.actual:,} tokens do not fit the 2,000" in error.detail


@every_provider
@pytest.mark.parametrize(
    ("status", "code", "waits"),
    [(429, "rate_limited", 7.0), (529, "transient", None), (503, "transient", None)],
)
def test_a_busy_provider_may_be_asked_again(
    provider: str,
    status: int,
    code: str,
    waits: float | None,
    strict: StrictServer,
    strict_adapter: Adapters,
) -> None:
    strict.provider.script.add([Reply(status=status, retry_after=waits)])
    with pytest.raises(ProviderError) as caught:
        send(strict_adapter(provider), prompt(MODELS[provider]))
    error = caught.value
    assert (error.code, error.status, error.retryable) == (code, status, True)
    assert error.retry_after_s == waits
    assert len(strict.provider.log.entries()) == 1, "an adapter never retries"


@every_provider
def test_a_stream_that_breaks_off_is_no_answer(
    provider: str, strict: StrictServer, strict_adapter: Adapters
) -> None:
    strict.provider.script.add([Reply(text="word " * 200, cut_after_events=4)])
    with pytest.raises(ProviderError) as caught:
        send(strict_adapter(provider), prompt(MODELS[provider]))
    assert (caught.value.code, caught.value.retryable) == ("transient", True)


@every_provider
def test_a_call_is_given_up_in_the_middle_of_its_answer(
    provider: str, strict: StrictServer, strict_adapter: Adapters
) -> None:
    strict.provider.script.add([Reply(text="word " * 500)])
    asked = count()
    with pytest.raises(ProviderError) as caught:
        send(strict_adapter(provider), prompt(MODELS[provider]), cancelled=lambda: next(asked) > 3)
    assert caught.value.code == "cancelled"
    assert next(asked) < 10


@every_provider
def test_a_call_that_is_cancelled_already_is_not_sent(
    provider: str, strict: StrictServer, strict_adapter: Adapters
) -> None:
    with pytest.raises(ProviderError, match="cancelled"):
        send(strict_adapter(provider), prompt(MODELS[provider]), cancelled=lambda: True)
    assert strict.provider.log.entries() == []


@every_provider
def test_a_provider_that_says_nothing_in_time_is_transient(
    provider: str, strict: StrictServer, strict_adapter: Adapters
) -> None:
    strict.provider.script.add([Reply(text="Late.", stall_seconds=30)])
    adapter = strict_adapter(provider)
    with pytest.raises(ProviderError, match="did not answer in time"):
        adapter.send(adapter.render(prompt(MODELS[provider])), timeout_s=0.2)


@pytest.mark.parametrize("provider", [*sorted(MODELS), "google", "bedrock"])
def test_a_provider_that_cannot_be_reached_is_transient(
    provider: str, configure: Configure
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        dead = f"http://127.0.0.1:{taken.getsockname()[1]}"
        configure({provider: dead})
        adapter = adapter_for(provider)
        with pytest.raises(ProviderError) as caught:
            send(adapter, prompt("some-model"))
    assert (caught.value.code, caught.value.retryable) == ("transient", True)
    with pytest.raises(ProviderError):
        adapter.models(timeout_s=5)


@pytest.mark.parametrize("provider", ["anthropic", "openai-responses"])
def test_counts_equal_what_the_provider_bills(provider: str, strict_adapter: Adapters) -> None:
    adapter = strict_adapter(provider)
    body = adapter.render(prompt(MODELS[provider], "word " * 300, system="Be brief.", tools=(ACK,)))
    counted = adapter.count(body, timeout_s=10)
    usage = adapter.send(body, timeout_s=10).usage
    assert usage is not None and counted == usage.prompt_total
    assert compactor_for(provider).count_exactly(body, timeout_s=10) == counted


@pytest.mark.parametrize("provider", ["openai", "openrouter", "openrouter-responses", "ollama"])
def test_a_provider_without_a_counting_endpoint_gives_none(
    provider: str, strict: StrictServer, strict_adapter: Adapters
) -> None:
    adapter = strict_adapter(provider)
    assert adapter.count(adapter.render(prompt(MODELS[provider])), timeout_s=10) is None
    assert strict.provider.log.entries() == []


@every_provider
def test_models_are_listed(provider: str, strict_adapter: Adapters) -> None:
    models = strict_adapter(provider).models(timeout_s=10)
    assert models and all(model.name for model in models)
    if provider in ("anthropic", "ollama"):
        assert all(model.window for model in models)


def test_a_changed_prefix_is_reported_in_the_providers_own_word(
    strict_adapter: Adapters,
) -> None:
    adapter = strict_adapter("anthropic")
    first = adapter.send(adapter.render(prompt(MODELS["anthropic"], system="One.")), timeout_s=10)
    body = adapter.render(prompt(MODELS["anthropic"], system="Two."))
    body["diagnostics"] = {"previous_message_id": first.response_id}
    assert adapter.send(body, timeout_s=10).cache_miss_reason == "system_changed"


def test_responses_report_their_reason_too(strict_adapter: Adapters) -> None:
    adapter, model = strict_adapter("openai-responses"), "gpt-5.6-sol"
    first = adapter.send(
        adapter.render(prompt(model, "word " * 1_500, system="One.")), timeout_s=10
    )
    body = adapter.render(prompt(model, "word " * 1_500, system="One.", tools=(ACK,)))
    body["prompt_cache_options"] = {"comparison_response_id": first.response_id}
    assert adapter.send(body, timeout_s=10).cache_miss_reason == "tools_changed"


# --- native compaction ------------------------------------------------------------------------------------------------


def talked(model: str) -> Prompt:
    said = PromptMessage("assistant", "It holds a list of birds. " * 20)
    return Prompt(model, (PromptMessage("user", "What is in the file? " * 20), said))


def test_anthropic_compacts_on_demand_and_takes_its_block_back(strict_adapter: Adapters) -> None:
    model = "claude-opus-5-5"
    adapter, compactor = strict_adapter("anthropic"), compactor_for("anthropic")
    window = compactor.compact(adapter.render(talked(model)), timeout_s=10)
    (block,) = window.items
    assert json.loads(block)["type"] == "compaction" and window.stop_raw == "compaction"
    assert window.usage is not None and window.usage.billed_input > 0
    assert block not in repr(window)
    body = adapter.render(prompt(model, "And now?"))
    body["messages"].insert(0, {"role": "assistant", "content": [json.loads(block)]})
    assert adapter.send(body | {"betas": ["compact-2026-09-04"]}, timeout_s=10).text


def test_a_summary_that_the_provider_refuses_leaves_an_empty_window(
    strict: StrictServer, strict_adapter: Adapters
) -> None:
    adapter, compactor = strict_adapter("anthropic"), compactor_for("anthropic")
    strict.provider.script.add([Reply(refuse=True)])
    window = compactor.compact(adapter.render(talked("claude-opus-5-5")), timeout_s=10)
    assert (window.items, window.stop_raw) == ((), "refusal")
    assert window.usage is not None and window.usage.billed_input > 0


def test_openai_gives_a_window_that_goes_back_whole(strict_adapter: Adapters) -> None:
    model = "gpt-5.4"
    adapter, compactor = strict_adapter("openai-responses"), compactor_for("openai-responses")
    window = compactor.compact(adapter.render(talked(model)), timeout_s=10)
    items = [json.loads(item) for item in window.items]
    assert [item["type"] for item in items][-1] == "compaction"
    body = adapter.render(prompt(model, "And now?"))
    body["input"] = [*items, *body["input"]]
    assert adapter.send(body, timeout_s=10).text


@pytest.mark.parametrize("provider", ["openai", "openrouter-responses", "google", "nobody"])
def test_others_do_not_compact(provider: str, strict_adapter: Adapters) -> None:
    with pytest.raises(ProviderError, match="not_supported"):
        compactor_for(provider)


# --- who may be called ------------------------------------------------------------------------------------------------


def test_a_provider_nobody_knows_is_not_supported(configure: Configure) -> None:
    configure({})
    with pytest.raises(ProviderError, match=r"not_supported.*anthropic"):
        adapter_for("carrier-pigeon")


@pytest.mark.parametrize("provider", ["anthropic", "openai-responses", "google", "bedrock"])
def test_a_provider_without_a_key_is_not_called(provider: str, settings: Any) -> None:
    settings.CTX_PROVIDER_KEYS, settings.CTX_PROVIDER_URLS = {}, {}
    with pytest.raises(ProviderError, match="no_key"):
        adapter_for(provider)


@pytest.mark.parametrize("provider", ["compatible", "ollama"])
def test_a_server_of_ones_own_needs_a_listed_address_and_no_key(
    provider: str, settings: Any
) -> None:
    settings.CTX_PROVIDER_KEYS, settings.CTX_PROVIDER_URLS = {}, {}
    with pytest.raises(ProviderError, match=r"not_allowed.*CTX_PROVIDER_URLS"):
        adapter_for(provider)
    settings.CTX_PROVIDER_URLS = {provider: "http://127.0.0.1:1/v1"}
    assert adapter_for(provider).name == provider


def test_where_the_operator_has_set_nothing_nobody_can_be_called(settings: Any) -> None:
    """Whoever opens a session names its provider: no name may lead to a call that the operator did not prepare."""
    settings.CTX_PROVIDER_KEYS, settings.CTX_PROVIDER_URLS = {}, {}
    for provider in PROVIDERS:
        with pytest.raises(ProviderError) as refused:
            adapter_for(provider)
        assert refused.value.code in {"no_key", "not_allowed"}, provider
    assert configured_providers() == ()


def test_configured_are_those_with_a_key_or_a_listed_address(configure: Configure) -> None:
    configure({"ollama": "http://127.0.0.1:11434"})
    expected = {"anthropic", "openai", "openai-responses", "google", "openrouter"}
    expected |= {"openrouter-responses", "ollama", "bedrock"}
    assert set(configured_providers()) == expected
