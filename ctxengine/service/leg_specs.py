"""What doors get back of fallback legs (design 5)."""

from __future__ import annotations

from typing import NamedTuple


class AssembledLeg(NamedTuple):
    """One fallback leg's request; empty `body`: some of its content is gone."""

    provider: str
    model: str
    body: bytes
    wire_prefix_sha256: str
    request_sha256: str
    tokens: int
