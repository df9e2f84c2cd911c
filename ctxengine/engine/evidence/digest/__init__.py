"""Digests: the short form of a result in a closed turn, made from its shape (capacity spec 3)."""

from __future__ import annotations

from ctxengine.engine.evidence.digest.make import (
    CURRENT_DIGESTS,
    FIRST_DIGESTS,
    Digest,
    Shape,
    digest_of,
)

__all__ = ["CURRENT_DIGESTS", "FIRST_DIGESTS", "Digest", "Shape", "digest_of"]
