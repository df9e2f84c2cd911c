"""Prices of the models of a range, each for as long as it held, with the prompt lengths at which they change."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from itertools import pairwise

from ctxengine.engine.cache.cost import CostModel
from ctxengine.ledger.queries.metrics_outcomes import Rate
from ctxengine.service.cost_model import cost_model_today, price_starts
from ctxengine.service.prices import PRICE_SOURCE

_Period = tuple[datetime, datetime, CostModel]
"""Prices with the time from which they hold and the time at which they no longer do."""


class PriceList:
    """Rates by model, size class and day, from the bundled list.

    A request costs what the list says of its own day (UTC), so that a change of prices leaves earlier figures alone. No step
    of a trend is longer than a day, so each has one price.
    """

    source = PRICE_SOURCE

    def __init__(self, models: Iterable[tuple[str, str]], since: datetime, until: datetime) -> None:
        first, last = (moment.astimezone(UTC).date() for moment in (since, until))
        periods = [period for key in models for period in _periods(*key, first, last)]
        above = {tier.above for *_, model in periods for tier in model.tiers if tier.above}
        self.lengths = tuple(sorted(above))
        """Prompt lengths at which some model's prices change, rising."""
        self.rates = tuple(
            _rate(period, size, length + 1)
            for period in periods
            for size, length in enumerate((0, *self.lengths))
        )
        self._by_key: dict[tuple[str, str, int], list[Rate]] = {}
        for rate in self.rates:
            self._by_key.setdefault((rate.provider, rate.model, rate.size), []).append(rate)

    def rate(self, provider: str, model: str, size: int, at: datetime) -> Rate | None:
        """The prices of a cell; None where they are not known.

        Args:
            at: the start of the cell's step of time, which may lie before the range.
        """
        rates = self._by_key.get((provider, model, size), ())
        return next((rate for rate in rates if rate.since <= at < rate.until), None)


@lru_cache(maxsize=512)
def _periods(provider: str, model: str, first: date, last: date) -> tuple[_Period, ...]:
    days = [first, *(day for day in price_starts(provider, model) if first < day <= last)]
    found = []
    for begins, ends in pairwise([*days, last + timedelta(days=1)]):
        since, until = (datetime.combine(day, time(), UTC) for day in (begins, ends))
        prices = cost_model_today(provider, model, at=since)
        if prices is not None:
            found.append((since, until, prices))
    return tuple(found)


def _rate(period: _Period, size: int, length: int) -> Rate:
    since, until, model = period
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
        since,
        until,
    )
