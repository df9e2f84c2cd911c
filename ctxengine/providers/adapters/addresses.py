"""Which addresses a provider may be called at: its official one, or one that the operator lists.

Tenants never name an address. An operator's entry is checked too, since a slip there would send a key, or a whole
prompt, to a cloud's metadata service.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

OFFICIAL: Mapping[str, str] = {
    "anthropic": "https://api.anthropic.com",
    "openai": "https://api.openai.com/v1",
    "openai-responses": "https://api.openai.com/v1",
    "google": "https://generativelanguage.googleapis.com",
    "openrouter": "https://openrouter.ai/api/v1",
    "openrouter-responses": "https://openrouter.ai/api/v1",
    "bedrock": "https://bedrock-runtime.{region}.amazonaws.com",
}
"""Base address by provider. `ollama` and `compatible` have none: where they are is the operator's to say, or whoever may open a
session could have this machine call itself."""

LISTED_UNDER: Mapping[str, str] = {
    "openai-responses": "openai",
    "openrouter-responses": "openrouter",
}
"""Providers that take another's entry and key where they have none of their own."""

PROVIDERS = (*OFFICIAL, "ollama", "compatible")


def keys_of(provider: str) -> str:
    """The provider under whose name the operator lists a provider's key and address."""
    return LISTED_UNDER.get(provider, provider)


_METADATA_HOSTS = frozenset(
    {"metadata", "metadata.google.internal", "metadata.goog", "instance-data"}
)
_METADATA_ADDRESSES = frozenset(
    ip_address(text) for text in ("fd00:ec2::254", "fd20:ce::254", "100.100.100.200", "192.0.0.192")
)
_HOST = re.compile(r"[a-z0-9]([a-z0-9._-]*[a-z0-9])?|[0-9a-f:.]+", re.IGNORECASE)
_NUMERIC_HOST = re.compile(r"(0x[0-9a-f]+|[0-9]+)(\.(0x[0-9a-f]+|[0-9]+)){0,3}", re.IGNORECASE)


class AddressRefused(ValueError):
    """An address that no provider is called at; the message says why, without repeating a credential."""


class _Parts(NamedTuple):
    split: SplitResult
    host: str


def checked_address(url: str) -> str:
    """The address without a trailing slash, when a provider may be called there.

    Raises:
        AddressRefused: not http(s), credentials, a query or fragment in it, an unreadable host, or one that stands for
            a link-local address or a metadata service.
    """
    parts = _parts_of(url)
    _refuse_host(parts.host)
    return url.rstrip("/")


def refuse_resolved(url: str) -> None:
    """Look the host up and refuse what resolves to a link-local or metadata address.

    A name that does not resolve passes: the call itself will say so.

    Raises:
        AddressRefused: one of its addresses is refused.
    """
    parts = _parts_of(url)
    try:
        found = socket.getaddrinfo(parts.host, parts.split.port or 443, type=socket.SOCK_STREAM)
    except OSError:
        return
    for *_, address in found:
        _refuse_address(ip_address(str(address[0]).partition("%")[0]))


def is_of_ours(url: str) -> bool:
    """Whether an address is on this machine or in a private network: `localhost`, or a loopback or private address.

    Other names are not looked up: what they stand for may change.
    """
    host = (urlsplit(url).hostname or "").rstrip(".")
    if host == "localhost":
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address.is_loopback or address.is_private


def _parts_of(url: str) -> _Parts:
    try:
        split = urlsplit(url)
        port = split.port
    except ValueError as error:
        raise AddressRefused("it is no address") from error
    if split.scheme not in ("http", "https"):
        raise AddressRefused("its scheme is not http or https")
    if split.username is not None or split.password is not None or "@" in split.netloc:
        raise AddressRefused("it holds credentials; keys have settings of their own")
    if split.query or split.fragment or "?" in url or "#" in url:
        raise AddressRefused("it holds a query or a fragment")
    host = (split.hostname or "").rstrip(".")
    if not _HOST.fullmatch(host) or port == 0 or any(sign in url for sign in "\\ \t\r\n"):
        raise AddressRefused("it names no host that can be read")
    return _Parts(split, host)


def _refuse_host(host: str) -> None:
    if host.lower() in _METADATA_HOSTS:
        raise AddressRefused("it is a metadata service")
    try:
        address = ip_address(host)
    except ValueError:
        # Old forms such as 2852039166 and 0xA9FEA9FE are addresses to a resolver, and to nobody's eye.
        if _NUMERIC_HOST.fullmatch(host):
            raise AddressRefused("it writes an address in an unusual form") from None
        return
    _refuse_address(address)


def _refuse_address(address: IPv4Address | IPv6Address) -> None:
    plain = address
    if isinstance(address, IPv6Address):
        plain = address.ipv4_mapped or address.sixtofour or _nat64(address) or address
    if plain.is_link_local or plain in _METADATA_ADDRESSES:
        raise AddressRefused("it is a link-local address or a metadata service")
    if plain.is_multicast or plain.is_unspecified:
        raise AddressRefused("it is no address of one host")


def _nat64(address: IPv6Address) -> IPv4Address | None:
    """The address embedded behind the well-known translation prefix."""
    if int(address) >> 32 == int(IPv6Address("64:ff9b::")) >> 32:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return None
