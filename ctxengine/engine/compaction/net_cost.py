"""Whether rewriting bytes already sent pays (design 8): what it saves against what it re-caches.

In money where the plan was pinned with prices, in tokens where not. The verdict is reached beside the build, which never sees
a price, and stands in the event of the rewrite.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from ctxengine.engine.cache.cost import CostModel

EXPECTED_STEPS = 20
"""Requests a session is expected to live on for, where a policy says nothing else."""

MIN_GAIN = 0.05
"""A rewrite that frees less than this share of what it rewrites is no progress (field note 6)."""


class NetCost(BaseModel):
    """The verdict, with the figures it rests on."""

    model_config = ConfigDict(frozen=True)

    saved_tokens: int
    """Fewer tokens in each later request."""
    expected_steps: int
    recached_tokens: int
    """What stands behind the first changed byte and is written to the cache anew."""
    pays: bool
    forced_by: str = ""
    """What makes it happen whether it pays or not: `budget`, `operator` or nothing."""
    saved_microdollars: int | None = None
    """Over all expected requests, read from the cache; None where no price is known."""
    recached_microdollars: int | None = None
    """What writing it anew costs beyond reading it once more."""
    cost_model: str = ""
    """Version of the pinned prices it was weighed with; empty where tokens were weighed."""


def net_cost(
    *,
    saved_tokens: int,
    recached_tokens: int,
    expected_steps: int = EXPECTED_STEPS,
    forced_by: str = "",
    prices: CostModel | None = None,
    prompt_tokens: int = 0,
) -> NetCost:
    """Weigh a rewrite. Without prices, a token saved in one request is set against a token cached once.

    Args:
        prices: the plan's pinned prices.
        prompt_tokens: length of the whole request, on which prices may depend.
    """
    verdict = NetCost(
        saved_tokens=saved_tokens,
        expected_steps=expected_steps,
        recached_tokens=recached_tokens,
        pays=saved_tokens * expected_steps > recached_tokens,
        forced_by=forced_by,
    )
    return verdict if prices is None else priced(verdict, prices, prompt_tokens)


def priced(verdict: NetCost, prices: CostModel, prompt_tokens: int = 0) -> NetCost:
    """The same rewrite weighed in money.

    What is saved would have been read from the cache in each request. What is re-cached would have been read once more, so only
    what writing costs beyond that counts against the rewrite.
    """
    spared = abs(verdict.saved_tokens) * verdict.expected_steps
    each = prices.read_microdollars(spared, prompt_tokens=prompt_tokens)
    saved = each if verdict.saved_tokens >= 0 else -each
    written = prices.write_microdollars(verdict.recached_tokens, prompt_tokens=prompt_tokens)
    read = prices.read_microdollars(verdict.recached_tokens, prompt_tokens=prompt_tokens)
    cost = max(0, written - read)
    return verdict.model_copy(
        update={
            "pays": saved > cost,
            "saved_microdollars": saved,
            "recached_microdollars": cost,
            "cost_model": prices.version,
        }
    )


def is_progress(before: int, after: int, least: float = MIN_GAIN) -> bool:
    """Whether a rewrite from `before` to `after` tokens shrinks enough to be worth installing."""
    return before - after > before * least
