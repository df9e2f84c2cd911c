"""The provider's cache routing key of a session (frozen-prefix spec, Session identity)."""

from __future__ import annotations

from ctxengine.engine.canonical import canonical_bytes, sha256_hex

KEY_DIGITS = 32


def session_key(tenant_id: str, session_id: str) -> str:
    """`session-` and 32 hex digits: the same for all runs, steps and epochs, another for any other session or tenant."""
    digest = sha256_hex(canonical_bytes([tenant_id, session_id]))
    return f"session-{digest[:KEY_DIGITS]}"
