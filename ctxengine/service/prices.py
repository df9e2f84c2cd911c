"""What re-caching costs, from the bundled price list (frozen-prefix spec, Prefix epochs)."""

from __future__ import annotations

from functools import lru_cache
from importlib.metadata import version
from typing import NamedTuple

from genai_prices import Usage, calc_price

_PRICED_AS = {
    "openai-responses": "openai",
    "openrouter-responses": "openrouter",
    "bedrock": "aws",
}
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
    usage = Usage(input_tokens=tokens, cache_write_tokens=tokens)
    try:
        priced = calc_price(usage, model_ref=model, provider_id=_PRICED_AS.get(provider, provider))
    except (LookupError, ValueError):
        return None
    return Price(f"{priced.total_price:f}", PRICE_SOURCE)
