"""The Responses API by the official SDK: streamed sends, counting, native compaction."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from ctxengine.engine.lexeme import parse
from ctxengine.engine.tokens.usage import normalise
from ctxengine.providers.adapters import refusals
from ctxengine.providers.adapters.access import Access
from ctxengine.providers.adapters.contract import (
    Cancelled,
    Completion,
    ModelInfo,
    NativeWindow,
    Prompt,
    ProviderError,
    Stop,
    never_cancelled,
)
from ctxengine.providers.adapters.openai_client import OpenAIClient
from ctxengine.providers.adapters.prompt_body import prompt_body
from ctxengine.providers.adapters.sending import Clockwork, guarded

_COUNTED: Final = frozenset(
    {"model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "reasoning"}
    | {"text", "truncation", "previous_response_id", "conversation"}
)
"""Members that the counting endpoint takes."""
_COMPACTED: Final = frozenset(
    {"model", "input", "instructions", "previous_response_id", "service_tier"}
    | {"prompt_cache_key", "prompt_cache_options", "prompt_cache_retention"}
)
"""Members that the compacting endpoint takes."""
_DONE: Final = frozenset({"response.completed", "response.incomplete"})


class ResponsesAdapter:
    """Speaks to `POST /responses` and its neighbours.

    Args:
        counts: whether the provider has OpenAI's counting endpoint.
    """

    api = "openai-responses"

    def __init__(self, access: Access, *, counts: bool = True) -> None:
        self.name = access.provider
        self._counts = counts
        self._sdk = OpenAIClient(access, needs_key=True)

    def render(self, prompt: Prompt) -> dict[str, Any]:
        """The body of a prompt."""
        return prompt_body(self.name, prompt)

    def send(
        self, body: dict[str, Any], *, timeout_s: float, cancelled: Cancelled = never_cancelled
    ) -> Completion:
        """Send a body, streamed.

        Raises:
            ProviderError: anything else than a readable answer.
        """
        import openai

        clock = Clockwork(self.name, timeout_s, cancelled)
        clock.check()

        def call() -> dict[str, Any]:
            with self._sdk.open(timeout_s) as client:
                stream = client.post(
                    "/responses",
                    cast_to=object,
                    body={**body, "stream": True},
                    stream=True,
                    stream_cls=openai.Stream[object],
                )
                with stream:
                    return _finished(clock.watched(stream), clock, self.name)

        response = guarded(self.name, openai, call)
        return guarded(self.name, None, lambda: _completion(self.name, response, clock))

    def count(self, body: dict[str, Any], *, timeout_s: float) -> int | None:
        """Input tokens; None where the provider has no such endpoint.

        Raises:
            ProviderError: the count failed.
        """
        if not self._counts:
            return None
        counted = {key: value for key, value in body.items() if key in _COUNTED}
        answer = self._sdk.post("/responses/input_tokens", counted, timeout_s)
        return guarded(self.name, None, lambda: int(answer["input_tokens"]))

    def count_exactly(self, body: dict[str, Any], *, timeout_s: float) -> int:
        """Input tokens by the counting endpoint.

        Raises:
            ProviderError: `count_unavailable` where there is none; otherwise why the count failed.
        """
        counted = self.count(body, timeout_s=timeout_s)
        if counted is None:
            raise ProviderError("count_unavailable", f"{self.name} has no counting endpoint.")
        return counted

    def compact(
        self, body: dict[str, Any], *, timeout_s: float, cancelled: Cancelled = never_cancelled
    ) -> NativeWindow:
        """Have the input replaced by a window that is to be sent back whole.

        Raises:
            ProviderError: anything else than a readable answer.
        """
        clock = Clockwork(self.name, timeout_s, cancelled)
        clock.check()
        asked = {key: value for key, value in body.items() if key in _COMPACTED}
        text = self._sdk.post_for_text("/responses/compact", asked, timeout_s)
        return guarded(self.name, None, lambda: _window(self.name, text, str(body["model"]), clock))

    def models(self, *, timeout_s: float) -> Sequence[ModelInfo]:
        """The models on offer.

        Raises:
            ProviderError: the list could not be had.
        """
        return self._sdk.models(timeout_s)


def _finished(events: Iterable[Any], clock: Clockwork, provider: str) -> dict[str, Any]:
    """The response of the stream's last event.

    Raises:
        ProviderError: it failed, or the stream ended before it.
    """
    for event in events:
        kind = str(event.get("type", ""))
        if kind.endswith(".delta"):
            clock.first_token()
        if kind in _DONE:
            response: dict[str, Any] = event["response"]
            return response
        if kind == "response.failed":
            raise refusals.of_status(provider, 200, event["response"])
        if kind == "error":
            raise refusals.of_status(provider, 200, event)
    raise refusals.cut_off(provider)


def _completion(provider: str, response: dict[str, Any], clock: Clockwork) -> Completion:
    output = response["output"]
    parts = [
        part for item in output if item["type"] == "message" for part in item.get("content") or []
    ]
    calls = [item for item in output if item["type"] == "function_call"]
    stop, reason = _stop(response, parts, calls)
    usage = response.get("usage")
    diagnostics = response.get("prompt_cache_diagnostics") or {}
    return Completion(
        text="".join(part["text"] for part in parts if part["type"] == "output_text"),
        stop=stop,
        stop_raw=reason,
        calls=tuple((call["call_id"], call["name"], call["arguments"] or "{}") for call in calls),
        usage=normalise(provider, usage) if usage else None,
        model=str(response.get("model", "")),
        response_id=str(response.get("id", "")),
        latency_ms=clock.latency_ms,
        first_token_ms=clock.first_token_ms,
        cache_miss_reason=_miss(diagnostics),
        raw=json.dumps(response, ensure_ascii=False),
    )


def _stop(
    response: dict[str, Any], parts: list[dict[str, Any]], calls: list[dict[str, Any]]
) -> tuple[Stop, str]:
    status = str(response.get("status", ""))
    why = str((response.get("incomplete_details") or {}).get("reason") or status)
    if why == "max_output_tokens":
        return Stop.OUTPUT_LIMIT, why
    if why == "content_filter" or any(part["type"] == "refusal" for part in parts):
        return Stop.REFUSAL, why
    if status != "completed":
        return Stop.OTHER, why
    return (Stop.TOOL if calls else Stop.END), why


def _miss(diagnostics: dict[str, Any]) -> str:
    if diagnostics.get("type") == "cache_hit":
        return ""
    return str(diagnostics.get("reason") or diagnostics.get("type") or "")


def _window(provider: str, text: str, model: str, clock: Clockwork) -> NativeWindow:
    answer: dict[str, Any] = json.loads(text)
    usage = answer.get("usage")
    return NativeWindow(
        items=tuple(item.raw for item in parse(text).get("output") or ()),
        usage=normalise(provider, usage) if usage else None,
        model=model,
        response_id=str(answer.get("id", "")),
        stop_raw=str(answer.get("object", "")),
        latency_ms=clock.latency_ms,
    )
