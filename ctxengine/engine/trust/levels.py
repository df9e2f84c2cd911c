"""The trust order and its joins (design 7.15; frozen-prefix spec, Trust labeling)."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Trust(StrEnum):
    """How far content may be believed; members are listed from most to least trusted."""

    PLATFORM = "PLATFORM"
    TRUSTED_CONFIGURATION = "TRUSTED_CONFIGURATION"
    USER = "USER"
    MODEL = "MODEL"
    MEMORY = "MEMORY"
    EXTERNAL_UNTRUSTED = "EXTERNAL_UNTRUSTED"

    @property
    def rank(self) -> int:
        """0 for the most trusted level, growing as trust falls."""
        return _RANK[self]


_RANK = {level: rank for rank, level in enumerate(Trust)}


def lowest(levels: Iterable[Trust]) -> Trust:
    """Trust of content derived from several sources: that of the least trusted one.

    Raises:
        ValueError: no source was given; derived content always has one.
    """
    return max(levels, key=lambda level: level.rank)


def may_claim(claimed: Trust, ceiling: Trust) -> bool:
    """Whether a result may carry `claimed` when its pinned tool allows at most `ceiling`."""
    return claimed.rank >= ceiling.rank


def needs_envelope(level: Trust) -> bool:
    """Whether content of this level is rendered in an envelope: all below configuration trust."""
    return level.rank > Trust.TRUSTED_CONFIGURATION.rank
