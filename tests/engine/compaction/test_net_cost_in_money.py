"""The net-cost test in money where a price is pinned, in tokens where not (design 8)."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.cache.cost import CostModel, CostTier
from ctxengine.engine.compaction.net_cost import net_cost

TOKENS = st.integers(0, 2_000_000)


def prices(read: str, write: str) -> CostModel:
    tier = CostTier(
        input=Decimal(3),
        cache_read=Decimal(read),
        cache_write=Decimal(write),
        cache_write_long=Decimal(write),
        output=Decimal(15),
    )
    return CostModel(provider="p", model="m", date="2026-11-29", source="test", tiers=(tier,))


def test_what_pays_in_tokens_may_not_pay_in_money() -> None:
    in_tokens = net_cost(saved_tokens=3_000, recached_tokens=6_000)
    in_money = net_cost(saved_tokens=3_000, recached_tokens=6_000, prices=prices("0.3", "3.75"))
    assert (in_tokens.pays, in_tokens.cost_model, in_tokens.saved_microdollars) == (True, "", None)
    assert (in_money.saved_microdollars, in_money.recached_microdollars) == (18_000, 20_700)
    assert not in_money.pays


def test_where_reading_costs_as_much_as_writing_any_saving_pays() -> None:
    free = net_cost(saved_tokens=1, recached_tokens=100_000, prices=prices("3", "3"))
    assert free.recached_microdollars == 0
    assert free.pays


@given(saved=TOKENS, recached=TOKENS)
def test_saving_more_never_makes_it_pay_less(saved: int, recached: int) -> None:
    known = prices("0.3", "3.75")
    less = net_cost(saved_tokens=saved, recached_tokens=recached, prices=known)
    more = net_cost(saved_tokens=saved + 1_000, recached_tokens=recached, prices=known)
    assert more.pays or not less.pays


@given(given_back=st.integers(1, 2_000_000), recached=TOKENS)
def test_what_makes_requests_longer_never_pays(given_back: int, recached: int) -> None:
    for known in (None, prices("0.3", "3.75")):
        assert not net_cost(saved_tokens=-given_back, recached_tokens=recached, prices=known).pays
