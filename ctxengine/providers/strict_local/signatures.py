"""Sealed values: opaque text that only this provider makes and that shows any change.

They stand for signatures, encrypted reasoning and compaction blocks. They are authenticated and not secret: nothing
here hides what it holds, and nobody's content but the caller's own is in it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json

from ctxengine.providers.strict_local.exchange import Json, dump

_MAC_BYTES = 32
DEFAULT_SECRET = b"strict local provider"
"""Fixed, so that blocks stay good when the server is started again, as a real provider's do."""


class Seal:
    """Makes and opens sealed values under one secret."""

    def __init__(self, secret: bytes = DEFAULT_SECRET) -> None:
        """Keep the secret."""
        self._secret = secret

    def close(self, kind: str, payload: Json) -> str:
        """Seal a payload under a kind; a value of one kind never opens as another."""
        data = dump({"kind": kind, **payload})
        return base64.b64encode(self._mac(data) + data).decode()

    def open(self, kind: str, text: object) -> Json | None:
        """The payload, or None when the text was not made here, was changed, or is of another kind."""
        if not isinstance(text, str):
            return None
        try:
            raw = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            return None
        mac, data = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac(data)):
            return None
        payload: Json = json.loads(data)
        return payload if payload.pop("kind", None) == kind else None

    def _mac(self, data: bytes) -> bytes:
        return hmac.new(self._secret, data, hashlib.sha256).digest()


def digest(*parts: str | bytes) -> str:
    """A hex digest over parts whose borders count."""
    made = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else part.encode("utf-8", "surrogatepass")
        made.update(b"%d:" % len(data))
        made.update(data)
    return made.hexdigest()
