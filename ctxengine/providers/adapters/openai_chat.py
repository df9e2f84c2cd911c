"""Chat Completions by the official SDK: OpenAI, OpenRouter and servers that speak the same."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ctxengine.engine.tokens.usage import normalise
from ctxengine.providers.adapters import refusals
from ctxengine.providers.adapters.access import Access
from ctxengine.providers.adapters.contract import (
    Cancelled,
    Completion,
    ModelInfo,
    Prompt,
    Stop,
    never_cancelled,
)
from ctxengine.providers.adapters.openai_client import OpenAIClient
from ctxengine.providers.adapters.prompt_body import prompt_body
from ctxengine.providers.adapters.sending import Clockwork, guarded

_STOPS: Final[Mapping[str, Stop]] = {
    "stop": Stop.END,
    "length": Stop.OUTPUT_LIMIT,
    "tool_calls": Stop.TOOL,
    "function_call": Stop.TOOL,
    "content_filter": Stop.REFUSAL,
}


class ChatAdapter:
    """Speaks to `POST /chat/completions`.

    Args:
        needs_key: whether a call without a key is refused here already.
    """

    api = "openai"

    def __init__(self, access: Access, *, needs_key: bool = True) -> None:
        self.name = access.provider
        self._sdk = OpenAIClient(access, needs_key=needs_key)

    def render(self, prompt: Prompt) -> dict[str, Any]:
        """The body of a prompt."""
        body = prompt_body(self.name, prompt)
        if self.name == "compatible":
            # Servers of one's own know the older name alone, and no routing key.
            body["max_tokens"] = body.pop("max_completion_tokens")
            body.pop("prompt_cache_key", None)
        return body

    def send(
        self, body: dict[str, Any], *, timeout_s: float, cancelled: Cancelled = never_cancelled
    ) -> Completion:
        """Send a body, streamed, with usage at the end.

        Raises:
            ProviderError: anything else than a readable answer.
        """
        import openai

        clock = Clockwork(self.name, timeout_s, cancelled)
        clock.check()
        asked = {**body, "stream": True, "stream_options": {"include_usage": True}}

        def call() -> dict[str, Any]:
            with self._sdk.open(timeout_s) as client:
                stream = client.post(
                    "/chat/completions",
                    cast_to=object,
                    body=asked,
                    stream=True,
                    stream_cls=openai.Stream[object],
                )
                with stream:
                    return _assembled(clock.watched(stream), clock, self.name)

        answer = guarded(self.name, openai, call)
        return guarded(self.name, None, lambda: _completion(self.name, answer, clock))

    def count(self, body: dict[str, Any], *, timeout_s: float) -> int | None:
        """None: this API has no counting endpoint."""
        return None

    def models(self, *, timeout_s: float) -> Sequence[ModelInfo]:
        """The models on offer.

        Raises:
            ProviderError: the list could not be had.
        """
        return self._sdk.models(timeout_s)


def _assembled(events: Iterable[Any], clock: Clockwork, provider: str) -> dict[str, Any]:
    """The completion that a stream tells in pieces.

    Raises:
        ProviderError: the stream ended without a finish reason.
    """
    answer: dict[str, Any] = {}
    texts: list[str] = []
    calls: dict[int, dict[str, Any]] = {}
    reason, refused = None, False
    for event in events:
        answer |= {k: v for k, v in event.items() if k != "choices" and v is not None}
        for choice in event.get("choices") or []:
            delta = choice.get("delta") or {}
            if delta.get("content"):
                texts.append(delta["content"])
            refused = refused or bool(delta.get("refusal"))
            if delta.get("content") or delta.get("tool_calls") or delta.get("reasoning_content"):
                clock.first_token()
            for piece in delta.get("tool_calls") or []:
                _grow(calls, piece)
            reason = choice.get("finish_reason") or reason
    if reason is None:
        raise refusals.cut_off(provider)
    message = {
        "role": "assistant",
        "content": "".join(texts),
        "tool_calls": [calls[index] for index in sorted(calls)],
        "refusal": refused,
    }
    return {**answer, "choices": [{"index": 0, "finish_reason": reason, "message": message}]}


def _grow(calls: dict[int, dict[str, Any]], piece: Mapping[str, Any]) -> None:
    # Some servers number no call and send each one whole.
    index = piece.get("index")
    call = calls.setdefault(
        len(calls) if index is None else index,
        {"id": "", "type": "function", "function": {"name": "", "arguments": ""}},
    )
    call["id"] = piece.get("id") or call["id"]
    function = piece.get("function") or {}
    call["function"]["name"] += function.get("name") or ""
    call["function"]["arguments"] += function.get("arguments") or ""


def _completion(provider: str, answer: dict[str, Any], clock: Clockwork) -> Completion:
    choice = answer["choices"][0]
    message, reason = choice["message"], str(choice["finish_reason"])
    usage = answer.get("usage")
    return Completion(
        text=message["content"],
        stop=Stop.REFUSAL if message["refusal"] else _STOPS.get(reason, Stop.OTHER),
        stop_raw=reason,
        calls=tuple(
            (call["id"], call["function"]["name"], call["function"]["arguments"] or "{}")
            for call in message["tool_calls"]
        ),
        usage=normalise(provider, usage) if usage else None,
        model=str(answer.get("model", "")),
        response_id=str(answer.get("id", "")),
        latency_ms=clock.latency_ms,
        first_token_ms=clock.first_token_ms,
        raw=json.dumps(answer, ensure_ascii=False),
    )
