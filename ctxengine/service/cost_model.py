"""A plan's pinned prices: looked up when the plan is stored, read back wherever a cost is weighed (design 8)."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import ModelInfo, ModelPrice, StartDateConstraint, TieredPrices

from ctxengine.engine.cache.cost import CostModel, CostTier
from ctxengine.engine.cache.rules import CacheRules, cache_rules
from ctxengine.ledger.models import PlanRow
from ctxengine.service.prices import PRICE_SOURCE, PRICED_AS
from ctxengine.service.wiring import renderer_of

_STATED = (
    "input_mtok",
    "cache_read_mtok",
    "cache_write_mtok",
    "cache_write_1h_mtok",
    "output_mtok",
)

_Stated = Decimal | TieredPrices | None


def cost_model_of(plan_row: PlanRow) -> CostModel | None:
    """The prices a plan was pinned with; None where the price list did not know the model."""
    return CostModel.model_validate(plan_row.cost_model) if plan_row.cost_model else None


def cost_model_today(provider: str, model: str, *, at: datetime) -> CostModel | None:
    """The prices of a model at a time, from the bundled list; None for a model it does not know.

    No network is used. A price the list leaves out follows from the provider's cache rules: writing costs what uncached input
    costs times the rules' share, reading costs full price where nothing cheaper is stated.
    """
    info = _listed(provider, model)
    if info is None:
        return None
    stated = info.get_prices(at)
    rates: tuple[_Stated, ...] = tuple(getattr(stated, name, None) for name in _STATED)
    if rates[0] is None:
        return None
    rules = cache_rules(renderer_of(provider).api, provider, model)
    return CostModel(
        provider=provider,
        model=model,
        date=at.date().isoformat(),
        source=PRICE_SOURCE,
        tiers=tuple(_tier(rates, above, rules) for above in _starts(rates)),
    )


def price_starts(provider: str, model: str) -> tuple[date, ...]:
    """Days (UTC) on which the bundled list lets other prices of a model begin, rising; empty where it dates none."""
    info = _listed(provider, model)
    if info is None or isinstance(info.prices, ModelPrice):
        return ()
    dated = (price.constraint for price in info.prices)
    return tuple(sorted({at.start_date for at in dated if isinstance(at, StartDateConstraint)}))


def _listed(provider: str, model: str) -> ModelInfo | None:
    try:
        _, info = get_snapshot().find_provider_model(
            model, None, PRICED_AS.get(provider, provider), None
        )
    except (LookupError, ValueError):
        return None
    return info


def pinned_prices(provider: str, model: str, *, at: datetime) -> dict[str, Any]:
    """What a plan's row keeps; empty where the price is not known."""
    known = cost_model_today(provider, model, at=at)
    return known.as_json() if known else {}


def _starts(rates: tuple[_Stated, ...]) -> list[int]:
    tiered = [price for price in rates if isinstance(price, TieredPrices)]
    return sorted({0, *(tier.start for price in tiered for tier in price.tiers)})


def _tier(rates: tuple[_Stated, ...], above: int, rules: CacheRules) -> CostTier:
    base, read, write, long, output = (_at(price, above) for price in rates)
    base = base or Decimal(0)
    if write is None:
        write = base * rules.write_percent / 100
    if long is None:
        long = base * rules.long_write_percent / 100 if rules.long_life else write
    return CostTier(
        above=above,
        input=base,
        cache_read=base if read is None else read,
        cache_write=write,
        cache_write_long=long,
        output=output or Decimal(0),
    )


def _at(price: _Stated, above: int) -> Decimal | None:
    if not isinstance(price, TieredPrices):
        return price
    reached = [tier.price for tier in price.tiers if tier.start <= above]
    return reached[-1] if reached else price.base
