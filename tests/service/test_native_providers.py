"""Gemini, Ollama and Bedrock: a session bound to one gets its body, hands its answer back, and every request proves."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from ctxengine.engine.events import EventType
from ctxengine.engine.wire.registry import PROVIDER_API
from ctxengine.engine.wire.rules import violations
from ctxengine.service.prove import prove_all
from ctxengine.service.specs import Assembled, ToolSpec
from tests.cast import MODELS, Runtime

pytestmark = pytest.mark.django_db

SECRET = "the-opaque-thought"
READ = ToolSpec(name="read", description="Reads a file.", result_trust="EXTERNAL_UNTRUSTED")


def google(text: str, calls: list[tuple[str, str, dict[str, Any]]]) -> str:
    parts: list[dict[str, Any]] = [{"text": SECRET, "thought": True}]
    parts += [{"text": text}] if text else []
    parts += [{"functionCall": {"id": i, "name": n, "args": a}} for i, n, a in calls]
    if calls:
        parts[-len(calls)]["thoughtSignature"] = SECRET
    return json.dumps(
        {
            "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}],
            "usageMetadata": {
                "promptTokenCount": 900,
                "cachedContentTokenCount": 400,
                "candidatesTokenCount": 20,
                "thoughtsTokenCount": 5,
            },
            "modelVersion": "gemini-3.1-pro",
            "responseId": "r1",
        }
    )


def ollama(text: str, calls: list[tuple[str, str, dict[str, Any]]]) -> str:
    message: dict[str, Any] = {"role": "assistant", "content": text, "thinking": SECRET}
    if calls:
        message["tool_calls"] = [{"function": {"name": n, "arguments": a}} for _, n, a in calls]
    return json.dumps(
        {
            "model": "gemma-4-31b",
            "message": message,
            "done": True,
            "done_reason": "stop",
            "prompt_eval_count": 900,
            "eval_count": 25,
        }
    )


def bedrock(text: str, calls: list[tuple[str, str, dict[str, Any]]]) -> str:
    thought = {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": SECRET}}}
    content: list[dict[str, Any]] = [thought]
    content += [{"text": text}] if text else []
    content += [{"toolUse": {"toolUseId": i, "name": n, "input": a}} for i, n, a in calls]
    return json.dumps(
        {
            "output": {"message": {"role": "assistant", "content": content}},
            "stopReason": "tool_use" if calls else "end_turn",
            "usage": {
                "inputTokens": 500,
                "cacheReadInputTokens": 300,
                "cacheWriteInputTokens": 100,
                "outputTokens": 25,
            },
        }
    )


class Native(NamedTuple):
    answer: Callable[[str, list[tuple[str, str, dict[str, Any]]]], str]
    model: str
    model_member: str


NATIVE = {
    "google": Native(google, "gemini-3.1-pro", "model"),
    "ollama": Native(ollama, "gemma-4-31b", "model"),
    "bedrock": Native(bedrock, "anthropic.claude-sonnet-4-6-v1:0", "modelId"),
}
every_one = pytest.mark.parametrize("provider", sorted(NATIVE))


@pytest.fixture
def runtime(provider: str, monkeypatch: pytest.MonkeyPatch) -> Runtime:
    monkeypatch.setitem(MODELS, provider, NATIVE[provider].model)
    return Runtime(provider=provider, tools=(READ, ToolSpec(name="2nd.tool", description="Again.")))


def text_of(built: Assembled) -> str:
    return bytes(built.body).decode()


def loop(runtime: Runtime, turns: int = 2, steps: int = 3) -> list[Assembled]:
    """Some runs of parallel calls with thoughts."""
    reply = NATIVE[runtime.provider].answer
    built: list[Assembled] = []
    for turn in range(turns):
        runtime.ask(f"Question {turn}: what is in the files?")
        for step in range(steps):
            built.append(runtime.assemble())
            names = [f"c{turn}_{step}_{place}" for place in (0, 1)]
            heard = runtime.hear(
                reply("Looking.", [(name, "read", {"path": name}) for name in names])
            )
            assert [call.action for call in heard.calls] == ["execute", "execute"]
            runtime.results(*((call.id, f"content of {call.id}") for call in heard.calls))
        built.append(runtime.assemble())
        assert runtime.hear(reply(f"Answer {turn}.", [])).next == "finish"
    return built


@every_one
def test_a_tool_loop_with_thoughts_breaks_no_rule_and_proves(
    provider: str, runtime: Runtime
) -> None:
    for built in loop(runtime):
        body = bytes(built.body)
        assert violations(PROVIDER_API[provider], body) == ()
        assert json.loads(body)[NATIVE[provider].model_member] == NATIVE[provider].model
    proofs = list(prove_all(session_id=runtime.session))
    # A thought is opaque, and only the later steps of a run carry any.
    of_a_run = ["identical", *["identical_except"] * 3]
    assert [proof.verdict for proof in proofs] == of_a_run * 2


@every_one
def test_thoughts_go_back_inside_the_run_and_nowhere_else(provider: str, runtime: Runtime) -> None:
    first, second, *_, last = loop(runtime, turns=2, steps=1)
    assert SECRET not in text_of(first)
    assert SECRET in text_of(second)
    assert text_of(last).count(SECRET) == text_of(second).count(SECRET)
    stored = [
        runtime.log.body(str(event.body_id))
        for event in runtime.events(EventType.RESPONSE_COMPLETED)
    ]
    assert stored and all(SECRET not in str(text) for text in stored)


@every_one
def test_usage_in_the_providers_own_words_becomes_disjoint_buckets(
    provider: str, runtime: Runtime
) -> None:
    loop(runtime, turns=1, steps=1)
    usage = runtime.requests[-1].usage
    assert (usage["prompt_total"], usage["output"], usage["problems"]) == (900, 25, [])
    parts = ("fresh", "cache_read", "cache_write_5m", "cache_write_1h")
    assert sum(usage[part] or 0 for part in parts) == 900
    unknown = {
        "google": {"cache_write_5m", "cache_write_1h"},
        "ollama": {"cache_read", "cache_write_5m", "cache_write_1h"},
    }
    # What the provider's report has no figure for is null, and nothing else is.
    assert {part for part in parts if usage[part] is None} == unknown.get(provider, set())


@every_one
def test_a_name_that_begins_with_a_digit_is_mapped_and_reversed(
    provider: str, runtime: Runtime
) -> None:
    runtime.ask("Use the second tool.")
    assert '"_2nd_tool"' in text_of(runtime.assemble())
    heard = runtime.hear(NATIVE[provider].answer("", [("c1", "_2nd_tool", {})]))
    assert [(call.name, call.action) for call in heard.calls] == [("2nd.tool", "execute")]


def test_ollama_is_told_the_window_and_to_drop_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MODELS, "ollama", "gemma-4-31b")
    runtime = Runtime(provider="ollama", window=48_000, max_output=2_000)
    runtime.ask("Hello")
    body = json.loads(runtime.assemble().body)
    assert (body["truncate"], body["shift"]) == (False, False)
    assert body["options"] == {"num_ctx": 48_000, "num_predict": 2_000}


def test_a_gemini_call_of_an_earlier_run_carries_the_word_for_unknown_origin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(MODELS, "google", "gemini-3.1-pro")
    runtime = Runtime(provider="google", tools=(READ,))
    *_, last = loop(runtime, turns=2, steps=1)
    contents = json.loads(last.body)["contents"]
    signed = [
        part.get("thoughtSignature")
        for content in contents
        for part in content["parts"]
        if "functionCall" in part
    ]
    assert signed == ["skip_thought_signature_validator", None, SECRET, None]


@every_one
def test_the_delta_form_rebuilds_the_whole_request(provider: str, runtime: Runtime) -> None:
    runtime.ask("What is in the file?")
    base = runtime.assemble()
    runtime.hear(NATIVE[provider].answer("", [("c1", "read", {})]))
    (call,) = runtime.log.open_calls()
    runtime.results((call.wire_call_id, "content"))
    new = runtime.assemble(base_request_id=base.request_id)
    delta = json.loads(new.delta or b"{}")
    whole, listed = json.loads(new.body), "contents" if provider == "google" else "messages"
    kept = json.loads(base.body)[listed][: delta["keep"]]
    assert kept + delta[listed] == whole[listed]


def test_a_router_is_given_markers_for_the_models_that_heed_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(MODELS, "openrouter", "anthropic/claude-sonnet-4.6")
    marked = Runtime(provider="openrouter")
    marked.ask("Hello")
    assert "prompt_cache_breakpoint" in text_of(marked.assemble())
    monkeypatch.setitem(MODELS, "openrouter", "meta-llama/llama-4-scout")
    plain = Runtime(provider="openrouter")
    plain.ask("Hello")
    assert "prompt_cache" not in text_of(plain.assemble()).replace("prompt_cache_key", "")


def test_bedrock_is_given_cache_points_for_claude_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MODELS, "bedrock", NATIVE["bedrock"].model)
    marked = Runtime(provider="bedrock")
    marked.ask("Hello")
    assert "cachePoint" in text_of(marked.assemble())
    monkeypatch.setitem(MODELS, "bedrock", "meta.llama4-scout-17b-instruct-v1:0")
    plain = Runtime(provider="bedrock")
    plain.ask("Hello")
    assert "cachePoint" not in text_of(plain.assemble())
