"""Which adapter calls which provider, with the address and the key that the operator set."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from django.conf import settings

from ctxengine.providers.adapters.access import Access
from ctxengine.providers.adapters.addresses import (
    OFFICIAL,
    PROVIDERS,
    AddressRefused,
    checked_address,
    keys_of,
    refuse_resolved,
)
from ctxengine.providers.adapters.anthropic import AnthropicAdapter
from ctxengine.providers.adapters.bedrock import BedrockAdapter
from ctxengine.providers.adapters.contract import Adapter, NativeCompactor, ProviderError
from ctxengine.providers.adapters.google import GoogleAdapter
from ctxengine.providers.adapters.ollama import OllamaAdapter
from ctxengine.providers.adapters.openai_chat import ChatAdapter
from ctxengine.providers.adapters.openai_responses import ResponsesAdapter
from ctxengine.providers.adapters.secret import Secret

_KEYLESS = frozenset({"ollama", "compatible"})
"""Providers that are called without a key where none is set."""

_COMPACTS = frozenset({"anthropic", "openai-responses"})

_COUNTS = frozenset({"anthropic", "openai-responses", "google", "bedrock"})
"""Providers with an endpoint that counts a request's tokens (providers.md 5)."""

_ADAPTERS: Mapping[str, Callable[[Access], Adapter]] = {
    "anthropic": AnthropicAdapter,
    "openai": ChatAdapter,
    "openai-responses": ResponsesAdapter,
    "openrouter": ChatAdapter,
    "openrouter-responses": lambda access: ResponsesAdapter(access, counts=False),
    "compatible": lambda access: ChatAdapter(access, needs_key=False),
    "google": GoogleAdapter,
    "ollama": OllamaAdapter,
    "bedrock": BedrockAdapter,
}


def adapter_for(provider: str) -> Adapter:
    """The adapter of a provider, ready to call it. Nothing is sent yet.

    Raises:
        ProviderError: `not_supported`, `no_key`, or `not_allowed` for an address that may not be called.
    """
    made = _ADAPTERS.get(provider)
    if made is None:
        raise ProviderError(
            "not_supported",
            f"There is no adapter for the provider {provider!r}; there are {', '.join(_ADAPTERS)}.",
        )
    access = Access(provider, _address(provider), _secret(provider))
    if provider not in _KEYLESS:
        access.key()
    return made(access)


def compactor_for(provider: str) -> NativeCompactor:
    """The adapter of a provider that compacts conversations itself.

    Raises:
        ProviderError: as `adapter_for`; `not_supported` where the provider has no such call.
    """
    adapter = adapter_for(provider) if provider in _COMPACTS else None
    if isinstance(adapter, AnthropicAdapter | ResponsesAdapter):
        return adapter
    raise ProviderError("not_supported", f"{provider} does not compact a conversation on demand.")


def configured_providers() -> tuple[str, ...]:
    """Providers that could be called: those with a key, and those that need none and whose address is listed."""
    return tuple(
        provider
        for provider in PROVIDERS
        if provider in _ADAPTERS
        and (listed_address(provider) is not None if provider in _KEYLESS else _secret(provider))
    )


def counting_providers() -> tuple[str, ...]:
    """Providers that could be asked how many tokens a request has."""
    return tuple(provider for provider in configured_providers() if provider in _COUNTS)


def _secret(provider: str) -> Secret:
    keys: Mapping[str, Secret] = settings.CTX_PROVIDER_KEYS
    found = keys.get(provider) or keys.get(keys_of(provider))
    return found or Secret()


def listed_address(provider: str) -> str | None:
    """The address that the operator lists for a provider; None where only its official one counts, if it has one."""
    urls: Mapping[str, str] = settings.CTX_PROVIDER_URLS
    found = urls.get(provider)
    return found if found is not None else urls.get(keys_of(provider))


def _address(provider: str) -> str:
    listed = listed_address(provider)
    if listed is None:
        official = OFFICIAL.get(provider)
        if official is None:
            raise ProviderError(
                "not_allowed", f"{provider} has no address; list one in CTX_PROVIDER_URLS."
            )
        return official.format(region=settings.CTX_BEDROCK_REGION)
    refused = _refusal(listed)
    if refused is not None:
        raise ProviderError("not_allowed", f"The address listed for {provider}: {refused}.")
    return listed.rstrip("/")


def _refusal(address: str) -> str | None:
    try:
        checked_address(address)
        refuse_resolved(address)
    except AddressRefused as error:
        return str(error)
    return None
