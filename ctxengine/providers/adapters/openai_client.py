"""What the adapters on the OpenAI SDK share: the client, the list of models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import httpx2

from ctxengine.providers.adapters.access import Access
from ctxengine.providers.adapters.contract import ModelInfo
from ctxengine.providers.adapters.sending import guarded, http_client

_KEYLESS = "unused"
"""Stands for the key where a server of one's own asks for none; the SDK insists on one."""


class OpenAIClient:
    """Makes clients of the SDK for one provider that speaks OpenAI's APIs."""

    def __init__(self, access: Access, *, needs_key: bool) -> None:
        self.name = access.provider
        self._access = access
        self._needs_key = needs_key

    def open(self, timeout_s: float) -> Any:
        """A client for one call.

        Raises:
            ProviderError: `no_key`.
        """
        import openai

        keyless = not self._needs_key and not self._access.secret
        return openai.OpenAI(
            api_key=_KEYLESS if keyless else self._access.key(),
            base_url=self._access.base_url,
            max_retries=0,
            timeout=timeout_s,
            http_client=http_client(timeout_s),
        )

    def post(self, path: str, body: dict[str, Any], timeout_s: float) -> Any:
        """Decoded answer of a call that is not streamed.

        Raises:
            ProviderError: the call failed.
        """
        import openai

        def call() -> Any:
            with self.open(timeout_s) as client:
                return client.post(path, cast_to=object, body=body)

        return guarded(self.name, openai, call)

    def post_for_text(self, path: str, body: dict[str, Any], timeout_s: float) -> str:
        """Answer of a call as its exact text.

        Raises:
            ProviderError: the call failed.
        """
        import openai

        def call() -> str:
            with self.open(timeout_s) as client:
                response: httpx2.Response = client.post(path, cast_to=httpx2.Response, body=body)
                return response.text

        return guarded(self.name, openai, call)

    def models(self, timeout_s: float) -> Sequence[ModelInfo]:
        """The provider's list; windows where it gives them (OpenRouter, vLLM, llama.cpp).

        Raises:
            ProviderError: the list could not be had.
        """
        import openai

        def call() -> list[ModelInfo]:
            with self.open(timeout_s) as client:
                answer: Any = client.get("/models", cast_to=object)
            return [_model(one) for one in answer["data"]]

        return guarded(self.name, openai, call)


def _model(one: Mapping[str, Any]) -> ModelInfo:
    top = one.get("top_provider") or {}
    meta = one.get("meta") or {}
    windows = (one.get("context_length"), one.get("max_model_len"), meta.get("n_ctx"))
    return ModelInfo(
        str(one["id"]),
        next((w for w in windows if isinstance(w, int) and w > 0), None),
        top.get("max_completion_tokens"),
    )
