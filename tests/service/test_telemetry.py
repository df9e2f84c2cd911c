"""Spans of model calls by the GenAI conventions; nothing that was said, thought or kept secret leaks into them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from ctxengine.site.tracing import start_tracing
from tests.cast import Call, Runtime, answer

pytestmark = pytest.mark.django_db

KEY = "sk-ant-api03-" + "Qx7" * 31 + "AA"
SAID, ASKED, THOUGHT, ARGUED = "canary-said", "canary-asked", "canary-thought", "canary-argued"


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    yield exporter
    provider.shutdown()


def live_a_step(runtime: Runtime, **more: Any) -> None:
    """One answered request that holds every kind of canary."""
    runtime.ask(f"{ASKED} {KEY}")
    runtime.assemble()
    thinking = json.dumps({"type": "thinking", "thinking": THOUGHT, "signature": "sig"})
    call = Call("toolu_1", "read", json.dumps({"path": ARGUED}))
    raw = json.loads(answer("anthropic", f"{SAID} {KEY}", [call], reasoning=[thinking]))
    usage = {
        "input_tokens": 100,
        "cache_read_input_tokens": 2_000,
        "cache_creation_input_tokens": 300,
        "output_tokens": 50,
        "output_tokens_details": {"thinking_tokens": 20},
    }
    about = {"id": "msg_1", "model": "claude-sonnet-4-6", "usage": usage}
    runtime.hear(json.dumps(raw | about | more))


def text_of(span: ReadableSpan) -> str:
    events = [(event.name, dict(event.attributes or {})) for event in span.events]
    return repr((span.name, dict(span.attributes or {}), events, span.status.description))


def test_a_span_tells_the_call_by_the_conventions(spans: InMemorySpanExporter) -> None:
    runtime = Runtime()
    live_a_step(runtime)
    (span,) = spans.get_finished_spans()
    row = runtime.requests[0]
    told = dict(span.attributes or {})
    assert span.name == "chat claude-sonnet-4-6"
    assert told["gen_ai.operation.name"] == "chat"
    assert told["gen_ai.provider.name"] == "anthropic"
    assert told["gen_ai.conversation.id"] == str(runtime.session)
    assert told["gen_ai.response.id"] == "msg_1"
    assert told["gen_ai.response.finish_reasons"] == ("tool_call",)
    assert told["gen_ai.usage.input_tokens"] == 2_400
    assert told["gen_ai.usage.cache_read.input_tokens"] == 2_000
    assert told["gen_ai.usage.cache_write.input_tokens"] == 300
    assert told["gen_ai.usage.cache_creation.input_tokens"] == 300
    assert told["gen_ai.usage.output_tokens"] == 50
    assert told["gen_ai.usage.reasoning.output_tokens"] == 20
    assert row.answered_at is not None
    assert span.start_time == int(row.created_at.timestamp() * 1_000_000) * 1_000
    assert span.end_time == int(row.answered_at.timestamp() * 1_000_000) * 1_000


def test_openai_is_called_by_its_name_in_both_apis(spans: InMemorySpanExporter) -> None:
    for provider in ("openai", "openai-responses"):
        Runtime(provider=provider).turn("Hello.", "Hi.")
    names = {(span.attributes or {})["gen_ai.provider.name"] for span in spans.get_finished_spans()}
    assert names == {"openai"}


def test_no_content_leaves_by_default(spans: InMemorySpanExporter) -> None:
    live_a_step(Runtime(instructions="canary-instructions"))
    (span,) = spans.get_finished_spans()
    for canary in (SAID, ASKED, THOUGHT, ARGUED, KEY, "canary-instructions"):
        assert canary not in text_of(span)


def test_content_on_demand_is_masked_and_has_no_reasoning(
    spans: InMemorySpanExporter, settings: Any
) -> None:
    settings.CTX_TRACE_CONTENT = "SPAN_ONLY"
    live_a_step(Runtime())
    (span,) = spans.get_finished_spans()
    (message,) = json.loads(str((span.attributes or {})["gen_ai.output.messages"]))
    assert message["parts"][0]["content"].startswith(SAID)
    assert message["parts"][1]["name"] == "read"
    assert ARGUED in message["parts"][1]["arguments"]
    assert KEY not in text_of(span)
    assert THOUGHT not in text_of(span)


def test_a_refusal_is_a_span_with_its_code_and_without_the_providers_words(
    spans: InMemorySpanExporter,
) -> None:
    runtime = Runtime()
    runtime.ask(ASKED)
    runtime.assemble()
    runtime.fail(529, '{"error":{"message":"canary-refusal"}}')
    (span,) = spans.get_finished_spans()
    assert (span.attributes or {})["error.type"] == "transient"
    assert not span.status.is_ok
    assert "canary-refusal" not in text_of(span)


def test_without_an_address_no_sdk_is_set_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    assert start_tracing() is False


def test_an_address_without_the_extra_is_said_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318")
    monkeypatch.setattr("ctxengine.site.tracing._is_there", lambda name: False)
    assert start_tracing() is False
    assert "extra `otel`" in caplog.text
