"""Keys and addresses of model providers, from the environment: the operator's word, never a tenant's."""

from __future__ import annotations

from pathlib import Path

from ctxengine.providers.adapters.addresses import PROVIDERS, AddressRefused, checked_address
from ctxengine.providers.adapters.secret import MOST_KEY_CHARS, Secret
from ctxengine.site import env


def provider_keys() -> dict[str, Secret]:
    """Keys by provider; a key itself wins over the name of its file."""
    return {
        "anthropic": _secret(
            "ANTHROPIC_API_KEY",
            env.optional("ANTHROPIC_API_KEY"),
            env.folder("ANTHROPIC_API_KEY_FILE"),
        ),
        "openai": _secret(
            "OPENAI_API_KEY", env.optional("OPENAI_API_KEY"), env.folder("OPENAI_API_KEY_FILE")
        ),
        "google": _secret(
            "GOOGLE_API_KEY", env.optional("GOOGLE_API_KEY"), env.folder("GOOGLE_API_KEY_FILE")
        ),
        "openrouter": _secret(
            "OPENROUTER_API_KEY",
            env.optional("OPENROUTER_API_KEY"),
            env.folder("OPENROUTER_API_KEY_FILE"),
        ),
        "bedrock": _secret(
            "AWS_BEARER_TOKEN_BEDROCK",
            env.optional("AWS_BEARER_TOKEN_BEDROCK"),
            env.folder("AWS_BEARER_TOKEN_BEDROCK_FILE"),
        ),
        "compatible": _secret(
            "COMPATIBLE_API_KEY",
            env.optional("COMPATIBLE_API_KEY"),
            env.folder("COMPATIBLE_API_KEY_FILE"),
        ),
    }


def provider_urls() -> dict[str, str]:
    """Addresses by provider from `CTX_PROVIDER_URLS`, `provider=address` pairs separated by commas.

    Raises:
        SettingError: an unknown or repeated provider, or an address that no provider may be called at. The message does not
            repeat the value, which may hold a password.
    """
    found = env.optional("CTX_PROVIDER_URLS")
    urls: dict[str, str] = {}
    for entry in (found or "").split(","):
        name, sign, address = (part.strip() for part in entry.partition("="))
        if not name and not sign:
            continue
        if name not in PROVIDERS or name in urls:
            raise _refused(f"pairs provider=address, each of {', '.join(PROVIDERS)} at most once")
        try:
            urls[name] = checked_address(address)
        except AddressRefused as error:
            raise _refused(f"a list of addresses that may be called; {name}: {error}") from None
    return urls


def summary_providers() -> tuple[str, ...]:
    """Providers from `CTX_SUMMARY_PROVIDERS` that a session's policy may name for summaries besides its own.

    Raises:
        SettingError: an unknown provider.
    """
    found = env.optional("CTX_SUMMARY_PROVIDERS") or ""
    named = tuple(part.strip() for part in found.split(",") if part.strip())
    if not set(named) <= set(PROVIDERS):
        wanted = f"names of {', '.join(PROVIDERS)}, separated by commas"
        raise env.SettingError("CTX_SUMMARY_PROVIDERS", found, wanted)
    return named


def _refused(wanted: str) -> env.SettingError:
    return env.SettingError("CTX_PROVIDER_URLS", "not shown", wanted)


def _secret(name: str, value: str | None, path: Path | None) -> Secret:
    if value is not None and (len(value) > MOST_KEY_CHARS or not value.isprintable()):
        raise env.SettingError(name, "not shown", "a key of one line of printable characters")
    return Secret(value, None if value is not None else path)
