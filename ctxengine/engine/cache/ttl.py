"""How long entries should live, advised from the gaps a session really had (design 7.18; field note 24)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ctxengine.engine.cache.rules import CacheRules
from ctxengine.engine.wire.base import Marker
from ctxengine.engine.wire.markers import Ttl

LONG_SECONDS = 3600
_ENOUGH_GAPS = 5


class TtlAdvice(NamedTuple):
    """Which life would have cost less, in thousandths of one uncached read of the prefix per gap."""

    ttl: Ttl
    gaps: int
    missed: int
    """Gaps longer than the short life and within the long one: what the longer life would have saved."""
    short_cost: int
    long_cost: int


def advise_ttl(gaps: Sequence[float], rules: CacheRules) -> TtlAdvice | None:
    """Compare both lives over the measured gaps (seconds between consecutive requests).

    None while there are too few gaps, or where no marker can ask for an hour.
    """
    if rules.long_life != LONG_SECONDS or rules.kind != "markers" or len(gaps) < _ENOUGH_GAPS:
        return None
    read, short, long = rules.read_percent, rules.write_percent, rules.long_write_percent
    short_cost = sum(short if gap >= rules.short_life else read for gap in gaps)
    long_cost = long - short + sum(long if gap >= LONG_SECONDS else read for gap in gaps)
    missed = sum(rules.short_life <= gap < LONG_SECONDS for gap in gaps)
    return TtlAdvice(
        "1h" if long_cost < short_cost else "5m",
        len(gaps),
        missed,
        short_cost * 10 // len(gaps),
        long_cost * 10 // len(gaps),
    )


def asked_life(markers: Sequence[Marker]) -> Ttl:
    """The life that a request asks for its history: the operator's setting, as the markers carry it."""
    history = [marker.ttl for marker in markers if marker.after_fragment is not None]
    return "1h" if history and all(ttl == "1h" for ttl in history) else "5m"
