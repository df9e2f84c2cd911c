"""Bedrock Converse by REST with a bearer token: converse and count-tokens.

The streamed form is binary frames, for which a client of its own would be needed; a call is therefore not streamed and can
be cancelled only before it is sent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from ctxengine.engine.tokens.usage import normalise
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
    "end_turn": Stop.END,
    "stop_sequence": Stop.END,
    "max_tokens": Stop.OUTPUT_LIMIT,
    "model_context_window_exceeded": Stop.WINDOW,
    "tool_use": Stop.TOOL,
    "guardrail_intervened": Stop.REFUSAL,
    "content_filtered": Stop.REFUSAL,
}
_MODEL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,2047}")
_COUNTED: Final = frozenset({"messages", "system", "toolConfig", "additionalModelRequestFields"})
_RUNTIME, _CONTROL = "bedrock-runtime.", "bedrock."


class BedrockAdapter:
    """Speaks to `POST /model/{modelId}/converse` and `/count-tokens`."""

    api = "bedrock"

    def __init__(self, access: Access) -> None:
        self.name = access.provider

        def headers() -> dict[str, str]:
            return {"authorization": f"Bearer {access.key()}"}

        self._http = PlainHttp(self.name, access.base_url, headers)
        # Models are listed by the service that manages them, which has a host of its own.
        listed_at = access.base_url.replace(f"//{_RUNTIME}", f"//{_CONTROL}", 1)
        self._control = PlainHttp(self.name, listed_at, headers)

    def render(self, prompt: Prompt) -> dict[str, Any]:
        """The body of a prompt, with the model that belongs into the path."""
        return prompt_body(self.name, prompt)

    def send(
        self, body: dict[str, Any], *, timeout_s: float, cancelled: Cancelled = never_cancelled
    ) -> Completion:
        """Send a body.

        Raises:
            ProviderError: anything else than a readable answer.
        """
        clock = Clockwork(self.name, timeout_s, cancelled)
        rest = {key: value for key, value in body.items() if key != "modelId"}
        answer = self._http.post(
            f"/model/{_model(body)}/converse", rest, timeout_s=timeout_s, cancelled=cancelled
        )
        model = str(body["modelId"])
        return guarded(self.name, None, lambda: _completion(answer, model, clock))

    def count(self, body: dict[str, Any], *, timeout_s: float) -> int | None:
        """Input tokens by the provider's own count.

        Raises:
            ProviderError: the count failed, or the model has none.
        """
        counted = {key: value for key, value in body.items() if key in _COUNTED}
        answer = self._http.post(
            f"/model/{_model(body)}/count-tokens",
            {"input": {"converse": counted}},
            timeout_s=timeout_s,
        )
        return guarded(self.name, None, lambda: int(answer["inputTokens"]))

    def models(self, *, timeout_s: float) -> Sequence[ModelInfo]:
        """The models of the region; it tells no windows.

        Raises:
            ProviderError: the list could not be had.
        """
        answer = self._control.get("/foundation-models", timeout_s=timeout_s)
        return guarded(
            self.name,
            None,
            lambda: [ModelInfo(str(m["modelId"]), None, None) for m in answer["modelSummaries"]],
        )


def _model(body: Mapping[str, Any]) -> str:
    """The model's id as one segment of a path, which a hostile one must not leave."""
    name = str(body.get("modelId", ""))
    if not _MODEL.fullmatch(name):
        raise ProviderError("invalid_request", "The model's id cannot stand in an address.")
    return quote(name, safe="")


def _completion(answer: dict[str, Any], model: str, clock: Clockwork) -> Completion:
    blocks = answer["output"]["message"]["content"]
    reason, usage = str(answer["stopReason"]), answer.get("usage")
    calls = [block["toolUse"] for block in blocks if "toolUse" in block]
    return Completion(
        text="".join(block["text"] for block in blocks if "text" in block),
        stop=_STOPS.get(reason, Stop.OTHER),
        stop_raw=reason,
        calls=tuple(
            (call["toolUseId"], call["name"], json.dumps(call["input"], ensure_ascii=False))
            for call in calls
        ),
        usage=normalise("bedrock", usage) if usage else None,
        model=model,
        response_id="",
        latency_ms=clock.latency_ms,
        raw=json.dumps(answer, ensure_ascii=False),
    )
