"""Telling an address of the operator's choice: a listed host, no redirect, a short answer, and nothing of what it says kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import httpx2

from ctxengine.providers.adapters.addresses import (
    AddressRefused,
    checked_address,
    is_of_ours,
    refuse_resolved,
)

_TIMEOUT_S = 5.0
MOST_CHARS = 500


class NotDelivered(Exception):
    """The address did not take it; the message says how far it came, and holds nothing that the other side wrote."""


def checked_webhook(url: str, hosts: Sequence[str]) -> str:
    """The address, when it may be told.

    Args:
        url: what was asked for.
        hosts: `host` or `host:port`, as the operator lists them.

    Raises:
        AddressRefused: too long, not http(s), with credentials, a query or a fragment, of a host that is not listed, or plain
            http beyond this machine and its private network.
    """
    if len(url) > MOST_CHARS:
        raise AddressRefused(f"it has more than {MOST_CHARS} characters")
    address = checked_address(url)
    parts = urlsplit(address)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    host = (parts.hostname or "").rstrip(".").lower()
    shown = f"[{host}]" if ":" in host else host
    listed = {entry.lower() for entry in hosts}
    if f"{shown}:{port}" not in listed and not (shown in listed and parts.port is None):
        raise AddressRefused("its host is not listed in CTX_WEBHOOK_HOSTS")
    if parts.scheme == "http" and not is_of_ours(address):
        raise AddressRefused("it is not https")
    return address


def deliver(url: str, document: Mapping[str, Any], hosts: Sequence[str]) -> int:
    """Post a document once; gives the status of the answer, 200 to 299.

    Raises:
        AddressRefused: the address may not be told any more, or its name stands for one that may not.
        NotDelivered: no answer in time, or another status. A redirect is one: where it leads is not listed.
    """
    address = checked_webhook(url, hosts)
    refuse_resolved(address)
    try:
        # Streamed and dropped: an answer of any length costs nothing.
        with (
            httpx2.Client(timeout=_TIMEOUT_S, follow_redirects=False, trust_env=False) as client,
            client.stream("POST", address, json=dict(document)) as response,
        ):
            status: int = response.status_code
    except (httpx2.HTTPError, OSError) as error:
        raise NotDelivered(f"no answer ({type(error).__name__})") from None
    if not 200 <= status < 300:
        raise NotDelivered(f"answered with {status}")
    return status
