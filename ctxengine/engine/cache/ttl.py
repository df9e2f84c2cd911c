"""How long entries should live, advised from the gaps a session really had (design 7.18; field note 24)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from ctxengine.engine.cache.rules import CacheRules

SHORT_SECONDS = 300
LONG_SECONDS = 3600
_ENOUGH_GAPS = 5


class TtlAdvice(NamedTuple):
    """Which life would have cost less, in thousandths of one uncached read of the prefix per gap."""

    ttl: Literal["5m", "1h"]
    gaps: int
    missed: int
    """Gaps longer than the short life and within the long one: what the longer life would have saved."""
    short_cost: int
    long_cost: int


def advise_ttl(gaps: Sequence[float], rules: CacheRules) -> TtlAdvice | None:
    """Compare both lives over the measured gaps (seconds between consecutive requests).

    None while there are too few gaps, or where the provider has one life only.
    """
    if rules.long_life is None or rules.kind != "markers" or len(gaps) < _ENOUGH_GAPS:
        return None
    read, short, long = rules.read_percent, rules.write_percent, rules.long_write_percent
    short_cost = sum(short if gap >= SHORT_SECONDS else read for gap in gaps)
    long_cost = long - short + sum(long if gap >= LONG_SECONDS else read for gap in gaps)
    missed = sum(SHORT_SECONDS <= gap < LONG_SECONDS for gap in gaps)
    return TtlAdvice(
        "1h" if long_cost < short_cost else "5m",
        len(gaps),
        missed,
        short_cost * 10 // len(gaps),
        long_cost * 10 // len(gaps),
    )
