"""One OpenTelemetry span for each model call that a runtime reports, by the GenAI conventions (providers.md 8).

Without the SDK the API gives spans that record nothing, and nothing is worked out for them. Content stays out unless the
operator asks for it by the conventions' own variable; then it is masked, and reasoning is never part of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from ctxengine.engine.items import DecodedItem, ItemKind, TextPart
from ctxengine.engine.redaction.redact import redact
from ctxengine.engine.tokens.usage import Usage
from ctxengine.ledger.models import RequestRow

_SCOPE = "ctxengine"
_PROVIDERS = {
    "openai-responses": "openai",
    "openrouter-responses": "openrouter",
    "google": "gcp.gemini",
    "bedrock": "aws.bedrock",
}
"""Names of the conventions where they are not our own."""
_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "completed": "stop",
    "tool_use": "tool_call",
    "tool_calls": "tool_call",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "refusal": "content_filter",
}
_CONTENT_ON = frozenset({"SPAN_ONLY", "SPAN_AND_EVENT", "true"})


@dataclass(frozen=True, slots=True)
class Answered:
    """What a span tells of an answer."""

    response_id: str
    model: str
    stop_reason: str
    usage: Usage | None
    items: Sequence[DecodedItem]
    """What was said, reasoning taken out."""


def answered_span(request: RequestRow, answered: Answered, at: datetime) -> None:
    """Tell of an answered request: it began when it was built and ends now."""
    span = _begun(request)
    if not span.is_recording():
        return
    for name, value in _common(request).items():
        span.set_attribute(name, value)
    if answered.response_id:
        span.set_attribute("gen_ai.response.id", answered.response_id)
    if answered.model:
        span.set_attribute("gen_ai.response.model", answered.model)
    if answered.stop_reason:
        finish = _FINISH.get(answered.stop_reason, answered.stop_reason)
        span.set_attribute("gen_ai.response.finish_reasons", [finish])
    if answered.usage is not None:
        for name, count in _usage(answered.usage).items():
            span.set_attribute(name, count)
    if settings.CTX_TRACE_CONTENT in _CONTENT_ON:
        span.set_attribute("gen_ai.output.messages", _messages(answered))
    span.end(end_time=_nanoseconds(at))


def refused_span(request: RequestRow, code: str, at: datetime) -> None:
    """Tell of a request that the provider refused."""
    span = _begun(request)
    if not span.is_recording():
        return
    for name, value in _common(request).items():
        span.set_attribute(name, value)
    span.set_attribute("error.type", code)
    span.set_status(Status(StatusCode.ERROR))
    span.end(end_time=_nanoseconds(at))


def _begun(request: RequestRow) -> Span:
    return trace.get_tracer(_SCOPE).start_span(
        f"chat {request.model}", kind=SpanKind.CLIENT, start_time=_nanoseconds(request.created_at)
    )


def _common(request: RequestRow) -> dict[str, str | int]:
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": _PROVIDERS.get(request.provider, request.provider),
        "gen_ai.request.model": request.model,
        "gen_ai.request.max_tokens": int(request.budget.get("reserve") or 0),
        "gen_ai.conversation.id": str(request.session_id),
        "ctxengine.request.id": str(request.id),
        "ctxengine.epoch": request.epoch,
    }


def _usage(usage: Usage) -> dict[str, int]:
    written = usage.cache_write_5m + usage.cache_write_1h
    told = {
        # The conventions' total holds what came from the cache and what went into it.
        "gen_ai.usage.input_tokens": usage.prompt_total,
        "gen_ai.usage.output_tokens": usage.output,
    }
    if usage.tells_reads:
        told["gen_ai.usage.cache_read.input_tokens"] = usage.cache_read
    if usage.tells_writes:
        told["gen_ai.usage.cache_write.input_tokens"] = written
        # Its name until it was renamed: back ends differ.
        told["gen_ai.usage.cache_creation.input_tokens"] = written
    reasoning = _reasoning_tokens(usage.source_raw)
    return told if reasoning is None else told | {"gen_ai.usage.reasoning.output_tokens": reasoning}


def _reasoning_tokens(raw: str) -> int | None:
    data = json.loads(raw)
    for holder, name in (
        ("output_tokens_details", "reasoning_tokens"),
        ("output_tokens_details", "thinking_tokens"),
        ("completion_tokens_details", "reasoning_tokens"),
    ):
        details = data.get(holder)
        value = details.get(name) if isinstance(details, Mapping) else None
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None


def _messages(answered: Answered) -> str:
    parts: list[dict[str, Any]] = []
    for item in answered.items:
        if item.kind is ItemKind.TOOL_CALL:
            arguments = redact(item.arguments or "").text
            call = {"type": "tool_call", "id": item.call_id or "", "name": item.name or ""}
            parts.append(call | {"arguments": arguments})
        else:
            texts = [part.text for part in item.parts if isinstance(part, TextPart)]
            parts += [{"type": "text", "content": redact(text).text} for text in texts]
    finish = _FINISH.get(answered.stop_reason, answered.stop_reason)
    return json.dumps([{"role": "assistant", "parts": parts, "finish_reason": finish}])


def _nanoseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000_000) * 1_000
