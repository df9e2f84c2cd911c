"""Prices pinned with a plan: from the bundled list, dated, read back as a value that weighs costs."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from ctxengine.engine.cache.cost import CostModel, CostTier
from ctxengine.ledger.models import PlanRow
from ctxengine.service.cost_model import cost_model_of, cost_model_today, pinned_prices
from ctxengine.service.rotate_epoch import rotate_epoch
from tests.cast import Runtime

AT = datetime(2026, 11, 30, tzinfo=UTC)


def test_prices_of_a_model_with_cache_writes_and_two_lives() -> None:
    known = cost_model_today("anthropic", "claude-sonnet-4-6", at=AT)
    assert known is not None
    assert known.date == "2026-11-30"
    assert "genai-prices" in known.source
    tokens = 1_000_000
    assert known.input_microdollars(tokens) == 3_000_000
    assert known.read_microdollars(tokens) == 300_000
    assert known.write_microdollars(tokens) == 3_750_000
    assert known.write_microdollars(tokens, long=True) == 6_000_000
    assert known.output_microdollars(tokens) == 15_000_000


def test_a_provider_that_does_not_charge_for_writing_writes_at_the_price_of_input() -> None:
    known = cost_model_today("openai", "gpt-4o", at=AT)
    assert known is not None
    assert known.write_microdollars(1_000) == known.input_microdollars(1_000)
    assert known.read_microdollars(1_000) < known.input_microdollars(1_000)


def test_a_long_prompt_pays_the_tier_it_reaches_for_every_token() -> None:
    known = cost_model_today("anthropic", "claude-sonnet-4-5", at=AT)
    assert known is not None
    short, long = (known.input_microdollars(1_000, prompt_tokens=n) for n in (200_000, 200_001))
    assert (short, long) == (3_000, 6_000)


def test_an_unknown_model_has_no_prices_and_no_guess() -> None:
    assert cost_model_today("compatible", "house-model", at=AT) is None
    assert pinned_prices("compatible", "house-model", at=AT) == {}


def test_amounts_are_rounded_half_up_and_the_version_names_the_prices() -> None:
    tier = CostTier(
        input=Decimal("0.5"),
        cache_read=Decimal("0.05"),
        cache_write=Decimal("0.625"),
        cache_write_long=Decimal(1),
        output=Decimal(2),
    )
    model = CostModel(provider="p", model="m", date="2026-01-01", source="s", tiers=(tier,))
    assert (model.input_microdollars(1), model.read_microdollars(9)) == (1, 0)
    later = model.model_copy(update={"date": "2026-02-01", "source": "t"})
    assert later.version == model.version
    dearer = model.model_copy(update={"tiers": (tier.model_copy(update={"output": Decimal(3)}),)})
    assert dearer.version != model.version
    assert CostModel.model_validate(model.as_json()) == model


@pytest.mark.django_db
def test_every_epoch_is_pinned_with_its_prices() -> None:
    runtime = Runtime()
    rotate_epoch(actor=runtime.actor, session_id=runtime.session, reason="operator", note="Why.")
    rows = PlanRow.objects.filter(tenant_id=runtime.actor.tenant_id, session_id=runtime.session)
    assert [row.epoch for row in rows.order_by("epoch")] == [1, 2]
    for row in rows:
        known = cost_model_of(row)
        assert known is not None
        assert known.model == runtime.model
        assert known.read_microdollars(1_000) < known.input_microdollars(1_000)


@pytest.mark.django_db
def test_a_plan_of_a_model_without_prices_says_so() -> None:
    runtime = Runtime(provider="compatible", model="house-model", window=64_000)
    (row,) = PlanRow.objects.filter(tenant_id=runtime.actor.tenant_id, session_id=runtime.session)
    assert row.cost_model == {}
    assert cost_model_of(row) is None
