"""Prices of the models of a range, with the prompt lengths at which they change."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache

from ctxengine.engine.cache.cost import CostModel
from ctxengine.ledger.queries.metrics_outcomes import Rate
from ctxengine.service.cost_model import cost_model_today
from ctxengine.service.prices import PRICE_SOURCE


class PriceList:
    """Rates by model and size class, from the bundled list at one time."""

    source = PRICE_SOURCE

    def __init__(self, models: Iterable[tuple[str, str]], at: datetime) -> None:
        known = {
            key: _priced(*key, at.replace(minute=0, second=0, microsecond=0)) for key in models
        }
        found = {key: model for key, model in known.items() if model is not None}
        above = {tier.above for model in found.values() for tier in model.tiers if tier.above}
        self.lengths = tuple(sorted(above))
        """Prompt lengths at which some model's prices change, rising."""
        self.unknown = tuple(sorted(f"{key[0]}/{key[1]}" for key in known if key not in found))
        """Models without a known price."""
        self.rates = tuple(
            _rate(model, size, length + 1)
            for model in found.values()
            for size, length in enumerate((0, *self.lengths))
        )
        self._by_key = {(rate.provider, rate.model, rate.size): rate for rate in self.rates}

    def rate(self, provider: str, model: str, size: int) -> Rate | None:
        """The prices of a cell; None where they are not known."""
        return self._by_key.get((provider, model, size))


@lru_cache(maxsize=512)
def _priced(provider: str, model: str, at: datetime) -> CostModel | None:
    return cost_model_today(provider, model, at=at)


def _rate(model: CostModel, size: int, length: int) -> Rate:
    tier = model.tier(length)
    return Rate(
        model.provider,
        model.model,
        size,
        tier.input,
        tier.cache_read,
        tier.cache_write,
        tier.cache_write_long,
        tier.output,
    )
