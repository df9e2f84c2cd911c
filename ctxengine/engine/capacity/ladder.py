"""The horizon ladder: which prompt size to try next, and what the samples say (capacity spec 1).

Pure: given every sample so far, `next_sample` names the next one or ends the ladder. Rungs grow geometrically until one fails;
then the edge between the last that passed and the first that failed is halved until it is narrow, and sampled more often.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ctxengine.engine.capacity.profile import Grade, Horizon, Observation

FIRST_RUNG = 4_000
GROWTH = 2
TOP_SHARE = 0.9
"""The highest rung, as a share of the declared window."""
SAMPLES = 3
"""Samples of a rung; two equal verdicts decide it."""
EDGE_SAMPLES = 5
"""Samples of the two rungs at the edge: three cannot tell two in three from three in three."""
EDGE_WIDTH = 0.125
"""The edge is narrow enough when it is this share of its lower end, or `MIN_EDGE` tokens."""
MIN_EDGE = 500
_Z = 1.0
"""One standard deviation: the Wilson bound is a confidence to compare with, not a proof."""


class Sample(NamedTuple):
    """What to send next."""

    tokens: int
    number: int
    """Place among the samples of this rung, from 1."""


class Verdict(NamedTuple):
    """What the samples of one rung say."""

    tokens: int
    passed: int
    samples: int

    @property
    def decided(self) -> bool | None:
        """True or False once a majority of `SAMPLES` stands, else None."""
        needed = SAMPLES // 2 + 1
        if self.passed >= needed and self.passed * 2 > self.samples:
            return True
        if (self.samples - self.passed) >= needed and self.passed * 2 < self.samples:
            return False
        return None


def rungs(declared_window: int, *, largest: int | None = None) -> tuple[int, ...]:
    """The rungs of a window, smallest first: doubling from 4,000 tokens up to nine tenths of it.

    Args:
        largest: highest prompt to try (tokens), where somebody limits it.
    """
    top = math.floor(declared_window * TOP_SHARE)
    if largest is not None:
        top = min(top, largest)
    sizes: list[int] = []
    size = min(FIRST_RUNG, top)
    while size < top:
        sizes.append(size)
        size *= GROWTH
    return (*sizes, top) if top > 0 else ()


def next_sample(
    seen: Sequence[Observation], *, declared_window: int, largest: int | None = None
) -> Sample | None:
    """What to try next; None when the horizon is found.

    Args:
        seen: every sample so far, refused prompts left out.
        largest: highest prompt to try (tokens): a limit of the operator, or just below what the provider refused.
    """
    ladder = rungs(declared_window, largest=largest)
    passed, failed = 0, 0
    for size in ladder:
        verdict = _verdict(seen, size)
        if verdict.decided is None:
            return Sample(size, verdict.samples + 1)
        if not verdict.decided:
            failed = size
            break
        passed = size
    if not failed:
        return _edge(seen, passed, 0) if passed else None
    return _halve(seen, passed, failed)


def _halve(seen: Sequence[Observation], passed: int, failed: int) -> Sample | None:
    low, high = passed, failed
    while high - low > max(MIN_EDGE, math.floor(low * EDGE_WIDTH)):
        middle = (low + high) // 2
        verdict = _verdict(seen, middle)
        if verdict.decided is None:
            return Sample(middle, verdict.samples + 1)
        low, high = (middle, high) if verdict.decided else (low, middle)
    return _edge(seen, low, high)


def _edge(seen: Sequence[Observation], low: int, high: int) -> Sample | None:
    for size in (low, high):
        if size <= 0:
            continue
        count = _verdict(seen, size).samples
        if count < EDGE_SAMPLES:
            return Sample(size, count + 1)
    return None


def horizon_of(seen: Sequence[Observation], *, at: str) -> Horizon | None:
    """The largest rung below the lowest failing one that the samples carry; None when not even one passes.

    Its size is what the provider counted; its confidence is the Wilson lower bound of its pass rate.

    Args:
        at: time of the latest sample, ISO 8601 with offset.
    """
    verdicts = sorted(_verdict(seen, size) for size in {sample.tokens for sample in seen})
    best: Verdict | None = None
    for verdict in verdicts:
        if verdict.passed * 2 <= verdict.samples:
            break
        best = verdict
    if best is None:
        return None
    passing = [s for s in seen if s.tokens == best.tokens and s.grade.passed]
    return Horizon(
        tokens=min(sample.actual_tokens for sample in passing),
        confidence=round(wilson_low(best.passed, best.samples), 3),
        native_calls=any(sample.grade is Grade.STRICT for sample in passing),
        confirmed_at=at,
    )


def wilson_low(passed: int, samples: int) -> float:
    """Lower end of the Wilson interval of a pass rate."""
    if samples == 0:
        return 0.0
    rate = passed / samples
    spread = _Z * math.sqrt(rate * (1 - rate) / samples + _Z**2 / (4 * samples**2))
    return max(0.0, (rate + _Z**2 / (2 * samples) - spread) / (1 + _Z**2 / samples))


def _verdict(seen: Sequence[Observation], size: int) -> Verdict:
    mine = [sample for sample in seen if sample.tokens == size]
    return Verdict(size, sum(sample.grade.passed for sample in mine), len(mine))
