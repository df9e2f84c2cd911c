"""Gemini and Bedrock by REST, against stubs on real sockets that enforce the rules of their APIs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from ctxengine.engine.wire.base import WireApi
from ctxengine.providers.adapters.contract import (
    Adapter,
    Prompt,
    PromptMessage,
    ProviderError,
    Stop,
)
from ctxengine.providers.adapters.registry import adapter_for
from tests.providers.adapters.conftest import ACK, Configure, prompt
from tests.providers.adapters.stub import Told, google_error, serving

Served = Callable[[str, Told], Adapter]
GEMINI, NOVA = "gemini-3.1-pro", "eu.anthropic.claude-sonnet-4-6-v1:0"


@pytest.fixture
def served(configure: Configure) -> Iterator[Served]:
    with ExitStack() as running:

        def serve(provider: str, told: Told) -> Adapter:
            configure({provider: running.enter_context(serving(WireApi(provider), told))})
            return adapter_for(provider)

        yield serve


def chunk(*parts: dict[str, Any], **extra: Any) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}}
    if "finishReason" in extra:
        candidate["finishReason"] = extra.pop("finishReason")
    return {"candidates": [candidate], "modelVersion": GEMINI, "responseId": "r1", **extra}


USAGE = {"promptTokenCount": 50, "cachedContentTokenCount": 20, "candidatesTokenCount": 4}


def converse(*blocks: dict[str, Any], stop: str = "end_turn") -> dict[str, Any]:
    return {
        "output": {"message": {"role": "assistant", "content": list(blocks)}},
        "stopReason": stop,
        "usage": {"inputTokens": 9, "cacheReadInputTokens": 41, "outputTokens": 4},
    }


def send(adapter: Adapter, asked: Prompt, **fields: Any) -> Any:
    return adapter.send(adapter.render(asked), timeout_s=10, **fields)


def test_gemini_streams_an_answer(served: Served) -> None:
    stream = [
        chunk({"text": "Hm.", "thought": True}),
        chunk({"text": "Forty-"}),
        chunk({"text": "two."}, finishReason="STOP", usageMetadata=USAGE),
    ]
    told = Told([stream])
    answer = send(served("google", told), prompt(GEMINI, system="Be brief.", tools=(ACK,)))
    assert (answer.text, answer.stop, answer.stop_raw) == ("Forty-two.", Stop.END, "STOP")
    assert (answer.usage.fresh, answer.usage.cache_read, answer.usage.output) == (30, 20, 4)
    assert (answer.model, answer.response_id) == (GEMINI, "r1")
    ((method, path, headers, body),) = told.seen
    assert (method, path) == (
        "POST",
        f"/v1beta/models/{GEMINI}:streamGenerateContent?alt=sse",
    )
    assert headers["x-goog-api-key"] == "key-of-a-test" and "model" not in body


def test_a_gemini_call_and_its_result(served: Served) -> None:
    call = {"functionCall": {"name": "ack", "args": {"code": "x"}}, "thoughtSignature": "c2ln"}
    told = Told(
        [
            [chunk(call, finishReason="STOP", usageMetadata=USAGE)],
            [chunk({"text": "Done."}, finishReason="STOP")],
        ]
    )
    adapter = served("google", told)
    asked = prompt(GEMINI, "Acknowledge.", tools=(ACK,))
    first = send(adapter, asked)
    assert (first.stop, first.calls) == (Stop.TOOL, (("call_0", "ack", '{"code": "x"}'),))
    messages = (
        *asked.messages,
        PromptMessage("assistant", calls=first.calls),
        PromptMessage("user", results=(("call_0", "fine"),)),
    )
    assert send(adapter, Prompt(GEMINI, messages, tools=(ACK,))).text == "Done."


@pytest.mark.parametrize(
    ("last", "stop"),
    [
        (chunk({"text": "wo"}, finishReason="MAX_TOKENS"), Stop.OUTPUT_LIMIT),
        (chunk(finishReason="SAFETY"), Stop.REFUSAL),
        ({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}, Stop.REFUSAL),
        (chunk({"text": "x"}, finishReason="MALFORMED_FUNCTION_CALL"), Stop.OTHER),
    ],
)
def test_how_a_gemini_answer_ends(served: Served, last: dict[str, Any], stop: Stop) -> None:
    assert send(served("google", Told([[last]])), prompt(GEMINI)).stop is stop


def test_gemini_counts_system_and_tools_in(served: Served) -> None:
    told = Told([{"totalTokens": 71}])
    adapter = served("google", told)
    body = adapter.render(prompt(GEMINI, system="Be brief.", tools=(ACK,)))
    assert adapter.count(body, timeout_s=5) == 71
    ((_, path, _, sent),) = told.seen
    assert path == f"/v1beta/models/{GEMINI}:countTokens"
    wrapped = sent["generateContentRequest"]
    assert wrapped["model"] == f"models/{GEMINI}"
    assert {"systemInstruction", "tools", "contents"} <= set(wrapped)


def test_gemini_lists_models_that_generate(served: Served) -> None:
    listed = [
        {"name": f"models/{GEMINI}", "inputTokenLimit": 1_048_576, "outputTokenLimit": 65_536},
        {"name": "models/embedder", "supportedGenerationMethods": ["embedContent"]},
    ]
    (model,) = served("google", Told([{"models": listed}])).models(timeout_s=5)
    assert (model.name, model.window, model.max_output) == (GEMINI, 1_048_576, 65_536)


def test_gemini_says_when_to_come_back(served: Served) -> None:
    delay = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "17s"}
    told = Told([google_error(429, "RESOURCE_EXHAUSTED", "Quota.", delay)], status=429)
    with pytest.raises(ProviderError) as caught:
        send(served("google", told), prompt(GEMINI))
    assert (caught.value.code, caught.value.retry_after_s) == ("rate_limited", 17.0)
    assert "RESOURCE_EXHAUSTED" in caught.value.detail


def test_an_error_inside_a_gemini_stream_is_one(served: Served) -> None:
    stream = [chunk({"text": "Forty"}), google_error(503, "UNAVAILABLE", "Overloaded.")]
    with pytest.raises(ProviderError) as caught:
        send(served("google", Told([stream])), prompt(GEMINI))
    assert (caught.value.code, caught.value.status) == ("transient", 503)


def test_bedrock_answers_and_calls(served: Served) -> None:
    use = {"toolUse": {"toolUseId": "t1", "name": "ack", "input": {"code": "x"}}}
    told = Told([converse(use, stop="tool_use"), converse({"text": "Done."})])
    adapter = served("bedrock", told)
    asked = prompt(NOVA, "Acknowledge.", system="Be brief.", tools=(ACK,))
    first = send(adapter, asked)
    assert (first.stop, first.calls) == (Stop.TOOL, (("t1", "ack", '{"code": "x"}'),))
    assert (first.usage.fresh, first.usage.cache_read, first.usage.prompt_total) == (9, 41, 50)
    messages = (
        *asked.messages,
        PromptMessage("assistant", calls=first.calls),
        PromptMessage("user", results=(("t1", "fine"),)),
    )
    second = send(adapter, Prompt(NOVA, messages, tools=(ACK,)))
    assert (second.text, second.stop, second.first_token_ms) == ("Done.", Stop.END, None)
    (_, path, headers, body), _ = told.seen
    assert path == f"/model/{NOVA}/converse" and "modelId" not in body
    assert headers["authorization"] == "Bearer key-of-a-test"


def test_bedrock_counts(served: Served) -> None:
    told = Told([{"inputTokens": 71}])
    adapter = served("bedrock", told)
    body = adapter.render(prompt(NOVA, system="Be brief.", tools=(ACK,)))
    assert adapter.count(body, timeout_s=5) == 71
    ((_, path, _, sent),) = told.seen
    assert path == f"/model/{NOVA}/count-tokens"
    assert set(sent["input"]["converse"]) == {"toolConfig", "system", "messages"}


def test_bedrock_lists_models(served: Served) -> None:
    told = Told([{"modelSummaries": [{"modelId": NOVA}]}])
    assert [m.name for m in served("bedrock", told).models(timeout_s=5)] == [NOVA]


BROKEN = Prompt("model-1", (PromptMessage("assistant", "I begin."),))
every_one = pytest.mark.parametrize("provider", ["google", "bedrock"])


@every_one
def test_an_invalid_request_is_refused_without_the_providers_text(
    provider: str, served: Served
) -> None:
    with pytest.raises(ProviderError) as caught:
        send(served(provider, Told()), BROKEN)
    assert (caught.value.code, caught.value.status) == ("invalid_request", 400)
    assert "turn" not in caught.value.detail and "start" not in caught.value.detail


@every_one
def test_a_broken_connection_is_transient(provider: str, served: Served) -> None:
    whole: Any = [chunk({"text": "Forty"})] if provider == "google" else converse({"text": "x"})
    with pytest.raises(ProviderError) as caught:
        send(served(provider, Told([whole], cut=True)), prompt("model-1"))
    assert (caught.value.code, caught.value.retryable) == ("transient", True)


@every_one
def test_what_is_no_answer_is_called_one_that_cannot_be_read(provider: str, served: Served) -> None:
    with pytest.raises(ProviderError) as caught:
        served(provider, Told([{"surprise": 1}])).models(timeout_s=5)
    assert (caught.value.code, caught.value.retryable) == ("bad_answer", False)


@every_one
def test_a_cancelled_call_is_not_sent(provider: str, served: Served) -> None:
    told = Told()
    with pytest.raises(ProviderError, match="cancelled"):
        send(served(provider, told), prompt("model-1"), cancelled=lambda: True)
    assert told.seen == []


@every_one
@pytest.mark.parametrize("name", ["../../other", "a/../b?x=1", "m#x", "a b", "", "é"])
def test_a_models_name_cannot_lead_elsewhere(provider: str, name: str, served: Served) -> None:
    told = Told([converse({"text": "x"})])
    try:
        send(served(provider, told), prompt(name))
    except ProviderError as error:
        assert error.code == "invalid_request"
        assert told.seen == []
    else:
        ((_, path, _, _),) = told.seen
        assert path == f"/model/{name}/converse"


@every_one
@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_no_redirect_is_followed(provider: str, status: int, served: Served) -> None:
    elsewhere = Told([converse({"text": "stolen"})])
    with serving(WireApi(provider), elsewhere) as address:
        told = Told([{}], status=status, headers={"location": address})
        with pytest.raises(ProviderError) as caught:
            send(served(provider, told), prompt("model-1"))
    assert caught.value.code == "not_allowed"
    assert elsewhere.seen == []
