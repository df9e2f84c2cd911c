"""A reported cache read held against the predicted one (design 8).

Predictions are raw counts, reports are the provider's own tokens. Where an earlier report told the provider's count at the very
entry that is read, the two are held against each other exactly; elsewhere the prediction is scaled by the size of the whole
prompt, and the tolerance is wider.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ctxengine.engine.cache.causes import Cause, contradicts

VerdictClass = Literal["agrees", "shortfall", "surplus", "unpredicted", "unreported"]

_EXACT_SHARE, _SCALED_SHARE = 0.01, 0.15
_EXACT_TOKENS, _SCALED_TOKENS = 32, 256


@dataclass(frozen=True, slots=True)
class Expected:
    """What was predicted of a request, in raw counts."""

    read: int
    write: int
    total: int
    """The whole prompt."""
    why: str
    cause: Cause
    """Why less is read than the request before left; `NONE` where nothing is lost."""
    measured: int | None = None
    """The provider's own count of what is read."""
    step: int = 1
    """The provider serves whole steps of this many tokens, or may end a read so many early."""
    back: int | None = None
    """What is read in the provider's tokens, counted back from a request that it counted."""
    behind: int = 0
    """Raw counts that may be read beyond what is foreseen: a cache of bytes knows no segments, and may hold its own words."""


@dataclass(frozen=True, slots=True)
class Reported:
    """What the provider said, in its own tokens."""

    read: int
    write: int | None
    """None where the provider has no such figure."""
    total: int
    reason: str = ""
    """Its own reason for a miss."""
    missed: int | None = None
    """Tokens it says were missed."""


@dataclass(frozen=True, slots=True)
class CacheVerdict:
    """One request's cache, judged. Tokens are the provider's."""

    outcome: VerdictClass
    expected_read: int | None = None
    reported_read: int | None = None
    expected_write: int | None = None
    reported_write: int | None = None
    tolerance: int = 0
    basis: Literal["measured", "scaled", ""] = ""
    """Where the expected read comes from: the provider's earlier figure for that entry, or our count to scale."""
    cause: Cause = Cause.NONE
    provider_reason: str = ""
    provider_missed: int | None = None
    disagreement: bool = False


def judge(expected: Expected, reported: Reported, seen: Cause = Cause.UNEXPLAINED) -> CacheVerdict:
    """Hold a report against a prediction.

    Args:
        seen: what we saw since that explains a shortfall, where the prediction itself has no cause.
    """
    scale = reported.total / expected.total if expected.total else 1.0
    exact = expected.measured is not None and expected.step == 1
    read = expected.measured if exact else round(expected.read * scale)
    if expected.back is not None and expected.read:
        # Two ways to put our count into its tokens: only what both contradict is a fault.
        read = min(read or 0, expected.back, key=lambda way: abs(way - reported.read))
    read = min(read or 0, reported.total)
    share, least = (_EXACT_SHARE, _EXACT_TOKENS) if exact else (_SCALED_SHARE, _SCALED_TOKENS)
    tolerance = max(least, round(share * read), expected.step if expected.step > 1 else 0)
    if not read and expected.why != "hit":
        tolerance = least
    outcome: VerdictClass = "agrees"
    if read - reported.read > tolerance:
        outcome = "shortfall"
    elif reported.read > read:
        tolerance += round(expected.behind * scale)
        outcome = "surplus" if reported.read - read > tolerance else "agrees"
    cause = expected.cause
    if outcome == "shortfall" and cause is Cause.NONE:
        cause = seen
    if outcome == "surplus":
        cause = Cause.NONE
    return CacheVerdict(
        outcome,
        read,
        reported.read,
        max(0, round((expected.read + expected.write) * scale) - read),
        reported.write,
        tolerance,
        "measured" if exact else "scaled",
        cause,
        reported.reason,
        reported.missed,
        _disagrees(cause, reported, read, tolerance),
    )


def _disagrees(cause: Cause, reported: Reported, read: int, tolerance: int) -> bool:
    """Whether both sides have a reason and they differ.

    Every step moves its fresh rows, which a provider that compares whole requests reports as a change; a miss no larger than
    what stands behind the expected read is that, and explains nothing.
    """
    if not contradicts(cause, reported.reason):
        return False
    behind = max(0, reported.total - read)
    return reported.missed is None or reported.missed > behind + tolerance
