"""Gemini by REST: streamed generateContent, countTokens with system and tools, the list of models."""

from __future__ import annotations

import json
import re
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
    ProviderError,
    Stop,
    never_cancelled,
)
from ctxengine.providers.adapters.plain_http import PlainHttp
from ctxengine.providers.adapters.prompt_body import prompt_body
from ctxengine.providers.adapters.sending import Clockwork, guarded

_STOPS: Final[Mapping[str, Stop]] = {
    "STOP": Stop.END,
    "MAX_TOKENS": Stop.OUTPUT_LIMIT,
    "SAFETY": Stop.REFUSAL,
    "RECITATION": Stop.REFUSAL,
    "BLOCKLIST": Stop.REFUSAL,
    "PROHIBITED_CONTENT": Stop.REFUSAL,
    "SPII": Stop.REFUSAL,
}
_MODEL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


class GoogleAdapter:
    """Speaks to `POST /v1beta/models/{model}:streamGenerateContent` and its neighbours."""

    api = "google"

    def __init__(self, access: Access) -> None:
        self.name = access.provider
        self._http = PlainHttp(self.name, access.base_url, lambda: {"x-goog-api-key": access.key()})

    def render(self, prompt: Prompt) -> dict[str, Any]:
        """The body of a prompt, with the model that belongs into the path."""
        return prompt_body(self.name, prompt)

    def send(
        self, body: dict[str, Any], *, timeout_s: float, cancelled: Cancelled = never_cancelled
    ) -> Completion:
        """Send a body, streamed.

        Raises:
            ProviderError: anything else than a readable answer.
        """
        clock = Clockwork(self.name, timeout_s, cancelled)
        path = f"/v1beta/{_model(body)}:streamGenerateContent?alt=sse"
        rest = {key: value for key, value in body.items() if key != "model"}

        def call() -> dict[str, Any]:
            return _assembled(self._http.stream(path, rest, clock, timeout_s), clock, self.name)

        answer = guarded(self.name, None, call)
        return guarded(self.name, None, lambda: _completion(answer, clock))

    def count(self, body: dict[str, Any], *, timeout_s: float) -> int | None:
        """Input tokens; the request is wrapped, since a bare one may hold neither system nor tools.

        Raises:
            ProviderError: the count failed.
        """
        model = _model(body)
        wrapped = {"generateContentRequest": {**body, "model": model}}
        answer = self._http.post(f"/v1beta/{model}:countTokens", wrapped, timeout_s=timeout_s)
        return guarded(self.name, None, lambda: int(answer["totalTokens"]))

    def models(self, *, timeout_s: float) -> Sequence[ModelInfo]:
        """The models that generate content.

        Raises:
            ProviderError: the list could not be had.
        """
        answer = self._http.get("/v1beta/models?pageSize=1000", timeout_s=timeout_s)

        def call() -> list[ModelInfo]:
            return [
                ModelInfo(
                    str(one["name"]).removeprefix("models/"),
                    one.get("inputTokenLimit"),
                    one.get("outputTokenLimit"),
                    str(one.get("version") or ""),
                )
                for one in answer["models"]
                if "generateContent" in one.get("supportedGenerationMethods", ["generateContent"])
            ]

        return guarded(self.name, None, call)


def _model(body: Mapping[str, Any]) -> str:
    """The model as a path, which a hostile name must not leave."""
    name = str(body.get("model", "")).removeprefix("models/")
    if not _MODEL.fullmatch(name):
        raise ProviderError("invalid_request", "The model's name cannot stand in an address.")
    return f"models/{name}"


def _assembled(events: Iterable[Any], clock: Clockwork, provider: str) -> dict[str, Any]:
    """The response that a stream tells in chunks; parts stand as they came.

    Raises:
        ProviderError: an error in the stream, or its end before a finish reason.
    """
    answer: dict[str, Any] = {}
    parts: list[Any] = []
    reason = None
    for event in events:
        if "error" in event:
            raise refusals.of_status(provider, 200, event)
        answer |= {key: value for key, value in event.items() if key != "candidates"}
        for candidate in event.get("candidates", [])[:1]:
            said = (candidate.get("content") or {}).get("parts") or []
            if said:
                clock.first_token()
            parts += said
            reason = candidate.get("finishReason") or reason
    blocked = (answer.get("promptFeedback") or {}).get("blockReason")
    if reason is None and blocked is None:
        raise refusals.cut_off(provider)
    content = {"role": "model", "parts": parts}
    return {**answer, "candidates": [{"content": content, "finishReason": reason or blocked}]}


def _completion(answer: dict[str, Any], clock: Clockwork) -> Completion:
    candidate = answer["candidates"][0]
    parts, reason = candidate["content"]["parts"], str(candidate["finishReason"])
    called = [part["functionCall"] for part in parts if "functionCall" in part]
    usage = answer.get("usageMetadata")
    stop = _STOPS.get(reason, Stop.REFUSAL if not parts else Stop.OTHER)
    return Completion(
        text="".join(p["text"] for p in parts if "text" in p and not p.get("thought")),
        stop=Stop.TOOL if called and stop is Stop.END else stop,
        stop_raw=reason,
        calls=tuple(
            (
                str(call.get("id") or f"call_{place}"),
                call["name"],
                json.dumps(call.get("args") or {}, ensure_ascii=False),
            )
            for place, call in enumerate(called)
        ),
        usage=normalise("google", usage) if usage else None,
        model=str(answer.get("modelVersion", "")),
        response_id=str(answer.get("responseId", "")),
        latency_ms=clock.latency_ms,
        first_token_ms=clock.first_token_ms,
        raw=json.dumps(answer, ensure_ascii=False),
    )
