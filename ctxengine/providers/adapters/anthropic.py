"""Anthropic Messages, by the official SDK: streamed sends, counting, native compaction."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import httpx2

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
from ctxengine.providers.adapters.prompt_body import prompt_body
from ctxengine.providers.adapters.sending import Clockwork, guarded, http_client

_STOPS: Final[Mapping[str, Stop]] = {
    "end_turn": Stop.END,
    "stop_sequence": Stop.END,
    "max_tokens": Stop.OUTPUT_LIMIT,
    "model_context_window_exceeded": Stop.WINDOW,
    "tool_use": Stop.TOOL,
    "refusal": Stop.REFUSAL,
}
_COUNTED: Final = frozenset(
    {"model", "messages", "system", "tools", "tool_choice", "thinking", "output_config"}
    | {"cache_control", "context_management"}
)
"""Members that the counting endpoint takes; it refuses any other."""
BETAS = "betas"
"""Member of a body that is sent as the header `anthropic-beta`, as the SDK's own beta methods take it."""


COMPACTION_BETA: Final = "compact-2026-09-04"
"""To be named by the compacting request and by every later one that holds its block."""


class AnthropicAdapter:
    """Speaks to `POST /v1/messages` and its neighbours.

    A body may hold `betas`, a list of beta names.
    """

    api = "anthropic"

    def __init__(self, access: Access) -> None:
        self.name = access.provider
        self._access = access

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
        import anthropic

        clock = Clockwork(self.name, timeout_s, cancelled)
        clock.check()

        def call() -> dict[str, Any]:
            with self._client(timeout_s) as client:
                stream = client.post(
                    _path("/v1/messages", body),
                    cast_to=object,
                    body={**_plain(body), "stream": True},
                    options={"headers": _headers(body)},
                    stream=True,
                    stream_cls=anthropic.Stream[object],
                )
                with stream:
                    return _assembled(clock.watched(stream), clock, self.name)

        message = guarded(self.name, anthropic, call)
        return guarded(self.name, None, lambda: _completion(message, clock))

    def count(self, body: dict[str, Any], *, timeout_s: float) -> int | None:
        """Input tokens as the provider estimates them.

        Raises:
            ProviderError: the count failed.
        """
        import anthropic

        def call() -> int:
            with self._client(timeout_s) as client:
                answer: Any = client.post(
                    _path("/v1/messages/count_tokens", body),
                    cast_to=object,
                    body={key: value for key, value in body.items() if key in _COUNTED},
                    options={"headers": _headers(body)},
                )
            return int(answer["input_tokens"])

        return guarded(self.name, anthropic, call)

    def count_exactly(self, body: dict[str, Any], *, timeout_s: float) -> int:
        """Input tokens by the counting endpoint.

        Raises:
            ProviderError: the count failed.
        """
        counted = self.count(body, timeout_s=timeout_s)
        if counted is None:
            raise ProviderError("count_unavailable", f"{self.name} gave no count.")
        return counted

    def compact(
        self, body: dict[str, Any], *, timeout_s: float, cancelled: Cancelled = never_cancelled
    ) -> NativeWindow:
        """Have the conversation summarised into one signed block; `compaction` in the body may hold instructions.

        Raises:
            ProviderError: anything else than a readable answer.
        """
        import anthropic

        clock = Clockwork(self.name, timeout_s, cancelled)
        clock.check()
        betas = list(dict.fromkeys([*body.get(BETAS, ()), COMPACTION_BETA]))
        asked = {"compaction": {"type": "summarize"}, **body, BETAS: betas}

        def call() -> str:
            with self._client(timeout_s) as client:
                response: httpx2.Response = client.post(
                    _path("/v1/messages", asked),
                    cast_to=httpx2.Response,
                    body=_plain(asked),
                    options={"headers": _headers(asked)},
                )
                return response.text

        text = guarded(self.name, anthropic, call)
        return guarded(self.name, None, lambda: _window(text, clock))

    def models(self, *, timeout_s: float) -> Sequence[ModelInfo]:
        """The models on offer.

        Raises:
            ProviderError: the list could not be had.
        """
        import anthropic

        def call() -> list[ModelInfo]:
            with self._client(timeout_s) as client:
                answer: Any = client.get("/v1/models?limit=1000", cast_to=object)
            return [
                ModelInfo(
                    str(one["id"]), _tokens(one, "max_input_tokens"), _tokens(one, "max_tokens")
                )
                for one in answer["data"]
            ]

        return guarded(self.name, anthropic, call)

    def _client(self, timeout_s: float) -> Any:
        import anthropic

        # Spans of side calls are our own; the SDK's would count each call twice.
        return anthropic.Anthropic(
            api_key=self._access.key(),
            base_url=self._access.base_url,
            max_retries=0,
            timeout=timeout_s,
            http_client=http_client(timeout_s),
            open_telemetry=False,
        )


def _plain(body: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key != BETAS}


def _headers(body: dict[str, Any]) -> dict[str, str]:
    betas = body.get(BETAS)
    return {"anthropic-beta": ",".join(betas)} if betas else {}


def _path(path: str, body: dict[str, Any]) -> str:
    return f"{path}?beta=true" if body.get(BETAS) else path


def _tokens(holder: Mapping[str, Any], name: str) -> int | None:
    value = holder.get(name)
    return value if isinstance(value, int) and value > 0 else None


def _assembled(events: Iterable[Any], clock: Clockwork, provider: str) -> dict[str, Any]:
    """The message that a stream tells in pieces.

    Raises:
        ProviderError: the stream ended before the message did.
    """
    message: dict[str, Any] = {}
    blocks: list[dict[str, Any]] = []
    for event in events:
        kind = event.get("type")
        if kind == "message_start":
            message = dict(event["message"])
        elif kind == "content_block_start":
            blocks.append(dict(event["content_block"]))
        elif kind == "content_block_delta":
            clock.first_token()
            _grow(blocks[event["index"]], event["delta"])
        elif kind == "message_delta":
            message["usage"] = _later(message.get("usage"), event.get("usage"))
            message |= {k: v for k, v in event.items() if k not in ("type", "usage", "delta")}
            message |= event["delta"]
        elif kind == "message_stop":
            return {**message, "content": blocks}
    raise refusals.cut_off(provider)


def _grow(block: dict[str, Any], delta: Mapping[str, Any]) -> None:
    for key, value in delta.items():
        if key == "partial_json":
            block["input"] = (block["input"] if isinstance(block["input"], str) else "") + value
        elif key == "type" or value is None:
            continue
        elif isinstance(value, str):
            block[key] = (block.get(key) or "") + value


def _later(before: Any, after: Any) -> dict[str, Any]:
    known = {k: v for k, v in after.items() if v is not None} if isinstance(after, dict) else {}
    return {**(before or {}), **known}


def _completion(message: dict[str, Any], clock: Clockwork) -> Completion:
    content = message["content"]
    reason = str(message.get("stop_reason") or "")
    usage = message.get("usage")
    miss = (message.get("diagnostics") or {}).get("cache_miss_reason") or {}
    calls = [block for block in content if block["type"] == "tool_use"]
    return Completion(
        text="".join(block["text"] for block in content if block["type"] == "text"),
        stop=_STOPS.get(reason, Stop.OTHER),
        stop_raw=reason,
        calls=tuple((call["id"], call["name"], _arguments(call["input"])) for call in calls),
        usage=normalise("anthropic", usage) if usage else None,
        model=str(message.get("model", "")),
        response_id=str(message.get("id", "")),
        latency_ms=clock.latency_ms,
        first_token_ms=clock.first_token_ms,
        cache_miss_reason=str(miss.get("type") or ""),
        raw=json.dumps(message, ensure_ascii=False),
    )


def _arguments(received: Any) -> str:
    """Arguments as text: pieces as they came, or an object that came whole."""
    if isinstance(received, str):
        return received or "{}"
    return json.dumps(received, ensure_ascii=False)


def _window(text: str, clock: Clockwork) -> NativeWindow:
    message: dict[str, Any] = json.loads(text)
    blocks = parse(text).get("content") or ()
    usage = message.get("usage")
    return NativeWindow(
        items=tuple(
            block.raw
            for block in blocks
            if (kind := block.get("type")) is not None and kind.text() == "compaction"
        ),
        usage=normalise("anthropic", usage) if usage else None,
        model=str(message.get("model", "")),
        response_id=str(message.get("id", "")),
        stop_raw=str(message.get("stop_reason") or ""),
        latency_ms=clock.latency_ms,
    )
