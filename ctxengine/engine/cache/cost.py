"""What tokens cost on one model, as pinned with a plan (design 8: a dated cost model).

US dollars per million tokens are microdollars per token, so that a price times a count is an amount in microdollars.
`build()` never sees a price: services weigh costs before a build and record their verdict in an event.
"""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from ctxengine.engine.canonical import digest_of

_VERSION_DIGITS = 12


class CostTier(BaseModel):
    """Prices of every token of a prompt longer than `above` tokens; US dollars per million."""

    model_config = ConfigDict(frozen=True)

    above: int = 0
    input: Decimal = Field(ge=0)
    cache_read: Decimal = Field(ge=0)
    cache_write: Decimal = Field(ge=0)
    """The short life: five minutes, or the provider's only one."""
    cache_write_long: Decimal = Field(ge=0)
    """The longer life; the short one's price where there is none."""
    output: Decimal = Field(ge=0)


class CostModel(BaseModel):
    """One model's prices on one day. Amounts are whole microdollars, rounded half up.

    Every amount takes the length of the whole prompt, since some providers charge all its tokens more above a length.
    """

    model_config = ConfigDict(frozen=True)

    provider: str
    model: str
    date: str
    """Day the prices were read, ISO."""
    source: str
    """The price list and its version."""
    tiers: tuple[CostTier, ...] = Field(min_length=1)
    """By rising `above`; the first begins at 0."""

    @property
    def version(self) -> str:
        """Names these prices: equal versions mean equal amounts."""
        tiers = [tier.model_dump(mode="json") for tier in self.tiers]
        return digest_of([self.provider, self.model, tiers])[:_VERSION_DIGITS]

    def tier(self, prompt_tokens: int = 0) -> CostTier:
        """The prices that apply to a prompt of that length."""
        reached = [tier for tier in self.tiers if tier.above < prompt_tokens]
        return reached[-1] if reached else self.tiers[0]

    def input_microdollars(self, tokens: int, *, prompt_tokens: int = 0) -> int:
        """Tokens read without any cache."""
        return _amount(tokens, self.tier(prompt_tokens).input)

    def read_microdollars(self, tokens: int, *, prompt_tokens: int = 0) -> int:
        """Tokens served from the cache."""
        return _amount(tokens, self.tier(prompt_tokens).cache_read)

    def write_microdollars(self, tokens: int, *, prompt_tokens: int = 0, long: bool = False) -> int:
        """Tokens written to the cache, for the short life or the long one."""
        tier = self.tier(prompt_tokens)
        return _amount(tokens, tier.cache_write_long if long else tier.cache_write)

    def output_microdollars(self, tokens: int, *, prompt_tokens: int = 0) -> int:
        """Tokens the model wrote."""
        return _amount(tokens, self.tier(prompt_tokens).output)

    def as_json(self) -> dict[str, Any]:
        """Plain data for the plan's row; `CostModel.model_validate` reads it back."""
        return self.model_dump(mode="json")


def _amount(tokens: int, price: Decimal) -> int:
    return int((tokens * price).quantize(Decimal(1), rounding=ROUND_HALF_UP))
