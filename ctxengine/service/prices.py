"""What re-caching and whole calls cost, from the bundled price list (frozen-prefix spec, Prefix epochs; design 8)."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from importlib.metadata import version
from math import ceil
from typing import NamedTuple

from genai_prices import Usage as PricedUsage
from genai_prices import calc_price

from ctxengine.engine.tokens.usage import Usage

PRICED_AS = {
    "openai-responses": "openai",
    "openrouter-responses": "openrouter",
    "bedrock": "aws",
}
"""Our provider names as the price list spells them, where they differ."""
PRICE_SOURCE = f"genai-prices {version('genai-prices')}"


class Price(NamedTuple):
    """A price with where it comes from."""

    usd: str
    """Decimal text."""
    source: str


@lru_cache(maxsize=512)
def recache_price(provider: str, model: str, tokens: int) -> Price | None:
    """What writing a prefix of so many tokens to the provider's cache costs; None for models without a known price."""
    if tokens <= 0:
        return None
    usage = PricedUsage(input_tokens=tokens, cache_write_tokens=tokens)
    try:
        priced = calc_price(usage, model_ref=model, provider_id=PRICED_AS.get(provider, provider))
    except (LookupError, ValueError):
        return None
    return Price(f"{priced.total_price:f}", PRICE_SOURCE)


def usage_cost(provider: str, model: str, usage: Usage, *, at: datetime) -> int | None:
    """What a call cost, in millionths of a US dollar, rounded up; None where no price is known.

    What server-side iterations read and wrote is charged as fresh input and output.

    Args:
        usage: disjoint buckets of the call.
        at: when the call was made; prices are dated.
    """
    fresh = usage.fresh + usage.extra_input
    written = usage.cache_write_5m + usage.cache_write_1h
    buckets = PricedUsage(
        input_tokens=fresh + usage.cache_read + written,
        cache_read_tokens=usage.cache_read,
        cache_write_tokens=written,
        cache_write_1h_tokens=usage.cache_write_1h,
        output_tokens=usage.billed_output,
    )
    try:
        priced = calc_price(
            buckets,
            model_ref=model,
            provider_id=PRICED_AS.get(provider, provider),
            genai_request_timestamp=at,
        )
    except (LookupError, ValueError):
        return None
    return ceil(priced.total_price * 1_000_000)
