"""Silent no-cache said aloud: each warning names the cause and the remedy (design 8)."""

from __future__ import annotations

from ctxengine.engine.cache.predict import Prediction
from ctxengine.engine.cache.rules import CacheRules
from ctxengine.engine.cache.ttl import TtlAdvice
from ctxengine.engine.wire.markers import Ttl


def cache_warnings(
    prediction: Prediction,
    *,
    rules: CacheRules,
    advice: TtlAdvice | None,
    gap: float | None,
    life: Ttl = "5m",
) -> list[str]:
    """Warnings of one request, most costly first.

    Args:
        gap: seconds since the session's previous request, None for the first.
        life: what the request asks for its history.
    """
    found = []
    if prediction.why == "below_minimum":
        found.append(
            f"Nothing is cached: what could be used again is below this model's minimum of {rules.minimum:,} tokens. "
            "A longer stable prefix, or a model with a lower minimum, would be cached."
        )
    if prediction.why == "lookback":
        found.append(
            f"The cache entry lies more than {rules.lookback} positions back and is not found. "
            "Assemble more often inside a run, or report results in fewer blocks."
        )
    if prediction.why == "expired" and gap is not None:
        longer = rules.long_life is not None and life == "5m" and gap < rules.long_life
        remedy = (
            "The longer life would have kept it." if longer else "Nothing keeps it longer here."
        )
        found.append(
            f"The cache entry expired: {gap:,.0f} s passed since the request before. {remedy}"
        )
    if advice is not None and advice.ttl == "1h" and life == "5m":
        found.append(
            f"{advice.missed} of {advice.gaps} gaps were longer than five minutes: a one-hour life would cost less. "
            "Set history_ttl to 1h in the session's policy; no epoch rotates for it."
        )
    return found
