"""Ollama's own chat API: streamed, with truncation off and the window stated."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
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
from ctxengine.providers.adapters.plain_http import PlainHttp
from ctxengine.providers.adapters.prompt_body import prompt_body
from ctxengine.providers.adapters.sending import Clockwork, guarded

_STOPS: Final[Mapping[str, Stop]] = {"stop": Stop.END, "length": Stop.OUTPUT_LIMIT}
_USAGE: Final = ("prompt_eval_count", "eval_count")
_LEAST_WINDOW: Final = 4_096
_MOST_DESCRIBED: Final = 32
"""Most models that are asked about their window, one call each; the others are listed without."""


class OllamaAdapter:
    """Speaks to `POST /api/chat`."""

    api = "ollama"

    def __init__(self, access: Access) -> None:
        self.name = access.provider
        self._http = PlainHttp(self.name, access.base_url, dict)

    def render(self, prompt: Prompt) -> dict[str, Any]:
        """The body of a prompt; its window is the one asked for, or a power of two that surely holds it."""
        body = prompt_body(self.name, prompt)
        # A token has two characters or more in nearly all text; a window too small would refuse the call.
        needed = len(json.dumps(body["messages"])) // 2 + prompt.max_output_tokens
        rounded = max(_LEAST_WINDOW, 1 << needed.bit_length())
        body["options"]["num_ctx"] = prompt.window or rounded
        return body

    def send(
        self, body: dict[str, Any], *, timeout_s: float, cancelled: Cancelled = never_cancelled
    ) -> Completion:
        """Send a body, streamed.

        Raises:
            ProviderError: anything else than a readable answer.
        """
        clock = Clockwork(self.name, timeout_s, cancelled)
        asked = {**body, "stream": True}

        def call() -> dict[str, Any]:
            events = self._http.stream("/api/chat", asked, clock, timeout_s)
            return _assembled(events, clock, self.name)

        answer = guarded(self.name, None, call)
        return guarded(self.name, None, lambda: _completion(answer, clock))

    def count(self, body: dict[str, Any], *, timeout_s: float) -> int | None:
        """None: the server counts only what it evaluates."""
        return None

    def models(self, *, timeout_s: float) -> Sequence[ModelInfo]:
        """The models that are installed, with the window each was trained for.

        Raises:
            ProviderError: the list could not be had.
        """
        listed = self._http.get("/api/tags", timeout_s=timeout_s)
        models = guarded(self.name, None, lambda: [_listed(one) for one in listed["models"]])
        described = [
            replace(model, window=self._window(model.name, timeout_s))
            for model in models[:_MOST_DESCRIBED]
        ]
        return [*described, *models[_MOST_DESCRIBED:]]

    def _window(self, model: str, timeout_s: float) -> int | None:
        shown = self._http.post("/api/show", {"model": model}, timeout_s=timeout_s)
        facts = shown.get("model_info") if isinstance(shown, dict) else None
        windows = [
            value
            for key, value in (facts or {}).items()
            if key.endswith(".context_length") and isinstance(value, int)
        ]
        return windows[0] if windows else None


def _listed(one: Mapping[str, Any]) -> ModelInfo:
    return ModelInfo(str(one["name"]), None, None, str(one.get("digest") or ""))


def _assembled(events: Iterable[Any], clock: Clockwork, provider: str) -> dict[str, Any]:
    """The answer that a stream tells in lines.

    Raises:
        ProviderError: an error in the stream, or its end before `done`.
    """
    message: dict[str, Any] = {"role": "assistant", "content": ""}
    for event in events:
        if "error" in event:
            raise refusals.of_status(provider, 200, event)
        piece = event.get("message") or {}
        for key in ("content", "thinking"):
            if piece.get(key):
                clock.first_token()
                message[key] = message.get(key, "") + piece[key]
        if piece.get("tool_calls"):
            clock.first_token()
            message.setdefault("tool_calls", []).extend(piece["tool_calls"])
        if event.get("done"):
            return {**event, "message": message}
    raise refusals.cut_off(provider)


def _completion(answer: dict[str, Any], clock: Clockwork) -> Completion:
    message, reason = answer["message"], str(answer.get("done_reason", ""))
    calls = message.get("tool_calls", [])
    stop = _STOPS.get(reason, Stop.OTHER)
    usage: dict[str, Any] = {key: answer[key] for key in _USAGE if key in answer}
    return Completion(
        text=message["content"],
        stop=Stop.TOOL if calls and stop is Stop.END else stop,
        stop_raw=reason,
        calls=tuple(
            (
                str(call.get("id") or f"call_{place}"),
                call["function"]["name"],
                json.dumps(call["function"].get("arguments") or {}, ensure_ascii=False),
            )
            for place, call in enumerate(calls)
        ),
        usage=normalise("ollama", usage) if usage else None,
        model=str(answer.get("model", "")),
        response_id="",
        latency_ms=clock.latency_ms,
        first_token_ms=clock.first_token_ms,
        raw=json.dumps(answer, ensure_ascii=False),
    )
