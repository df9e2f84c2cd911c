"""Whether rewriting bytes already sent pays (design 8): what it saves against what it re-caches, in tokens."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

EXPECTED_STEPS = 20
"""Requests a session is expected to live on for, where a policy says nothing else."""

MIN_GAIN = 0.05
"""A rewrite that frees less than this share of what it rewrites is no progress (field note 6)."""


class NetCost(BaseModel):
    """The verdict, with the figures it rests on; all in tokens."""

    model_config = ConfigDict(frozen=True)

    saved_tokens: int
    """Fewer tokens in each later request."""
    expected_steps: int
    recached_tokens: int
    """What stands behind the first changed byte and is written to the cache anew."""
    pays: bool
    forced_by: str = ""
    """What makes it happen whether it pays or not: `budget`, `operator` or nothing."""


def net_cost(
    *,
    saved_tokens: int,
    recached_tokens: int,
    expected_steps: int = EXPECTED_STEPS,
    forced_by: str = "",
) -> NetCost:
    """Weigh a rewrite. Without prices, a token saved in one request is set against a token cached once."""
    return NetCost(
        saved_tokens=saved_tokens,
        expected_steps=expected_steps,
        recached_tokens=recached_tokens,
        pays=saved_tokens * expected_steps > recached_tokens,
        forced_by=forced_by,
    )


def is_progress(before: int, after: int, least: float = MIN_GAIN) -> bool:
    """Whether a rewrite from `before` to `after` tokens shrinks enough to be worth installing."""
    return before - after > before * least
