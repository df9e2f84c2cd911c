"""Which renderer speaks to which provider."""

from __future__ import annotations

from ctxengine.engine.errors import EngineError
from ctxengine.engine.wire.anthropic import AnthropicRenderer
from ctxengine.engine.wire.base import WireApi, WireRenderer
from ctxengine.engine.wire.bedrock import BedrockRenderer
from ctxengine.engine.wire.google import GoogleRenderer
from ctxengine.engine.wire.ollama import OllamaRenderer
from ctxengine.engine.wire.openai_chat import OpenAIChatRenderer
from ctxengine.engine.wire.openai_responses import OpenAIResponsesRenderer


class UnsupportedProvider(EngineError):
    """No renderer speaks this provider's API."""

    code = "unsupported_provider"


_RENDERERS: dict[WireApi, WireRenderer] = {
    WireApi.ANTHROPIC: AnthropicRenderer(),
    WireApi.OPENAI_CHAT: OpenAIChatRenderer(),
    WireApi.OPENAI_RESPONSES: OpenAIResponsesRenderer(),
    WireApi.GOOGLE: GoogleRenderer(),
    WireApi.OLLAMA: OllamaRenderer(),
    WireApi.BEDROCK: BedrockRenderer(),
}

PROVIDER_API: dict[str, WireApi] = {
    "anthropic": WireApi.ANTHROPIC,
    "openai": WireApi.OPENAI_CHAT,
    "openrouter": WireApi.OPENAI_CHAT,
    "compatible": WireApi.OPENAI_CHAT,
    "openai-responses": WireApi.OPENAI_RESPONSES,
    "openrouter-responses": WireApi.OPENAI_RESPONSES,
    "google": WireApi.GOOGLE,
    "ollama": WireApi.OLLAMA,
    "bedrock": WireApi.BEDROCK,
}
"""Providers a session may name, and the API each is spoken to in."""


def renderer_for(provider: str) -> WireRenderer:
    """The renderer of a provider.

    Raises:
        UnsupportedProvider: nothing here renders for it.
    """
    api = PROVIDER_API.get(provider)
    if api is None:
        raise UnsupportedProvider(
            f"There is no renderer for the provider {provider!r}; supported are "
            f"{', '.join(sorted(PROVIDER_API))}."
        )
    return _RENDERERS[api]
