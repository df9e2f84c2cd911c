"""A hosted family is measured on its cheapest model, unless the operator wants the very model asked (capacity spec 1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ctxengine.engine.capacity.ladder import horizon_of
from ctxengine.engine.capacity.profile import (
    CapacityProfile,
    Grade,
    Horizon,
    Observation,
    Provenance,
    measured,
    metadata_profile,
)
from ctxengine.ledger.models import SideCallRow
from ctxengine.providers.adapters.secret import Secret
from ctxengine.providers.strict_local.server import StrictServer
from ctxengine.service.probe import run_probe as probing
from ctxengine.service.probe.profiles import profile_of
from ctxengine.service.probe.run_probe import ProbeWanted, run_probe
from ctxengine.service.probe.sibling import (
    SIBLING_CONFIDENCE,
    carried_over,
    cheapest_of_family,
    family_of,
)
from ctxengine.service.summaries.model_choice import price_of_writing, text_models
from tests.cast import new_actor

OWN, CHEAPER = "claude-sonnet-4-6", "claude-haiku-4-5"
AT = "2026-03-01T12:00:00+00:00"


@pytest.mark.parametrize("provider", ["anthropic", "openai", "openai-responses", "google"])
def test_it_is_of_the_same_family_and_no_listed_one_costs_less(provider: str) -> None:
    models = {known.model: known for known in text_models(provider)}
    assert models
    for name in models:
        chosen = cheapest_of_family(provider, name)
        family = [known for known in models.values() if family_of(known.model) == family_of(name)]
        prices = {known.model: price_of_writing(known, 32_000, 96) for known in family}
        assert family_of(chosen) == family_of(name)
        assert prices[chosen] == min(price for price in prices.values() if price is not None)


@pytest.mark.parametrize(
    ("model", "listed", "chosen"),
    [
        (OWN, (), CHEAPER),
        (OWN, (CHEAPER, OWN), CHEAPER),
        (OWN, (f"{CHEAPER}-20251001",), f"{CHEAPER}-20251001"),
        (OWN, (OWN,), OWN),
        (CHEAPER, (), CHEAPER),
        ("a-model-of-nobody", (), "a-model-of-nobody"),
    ],
)
def test_only_what_the_provider_lists_is_asked(
    model: str, listed: tuple[str, ...], chosen: str
) -> None:
    assert cheapest_of_family("anthropic", model, listed=listed) == chosen


@pytest.fixture
def hosted(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The strict provider, taken for a paid service."""
    monkeypatch.setattr(probing, "is_local", lambda _provider: False)
    with StrictServer() as server:
        settings.CTX_PROVIDER_URLS = {"anthropic": server.url}
        settings.CTX_PROVIDER_KEYS = {"anthropic": Secret("k" * 20)}
        yield


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("hosted")
@pytest.mark.parametrize("exact", [False, True])
def test_samples_go_to_the_cheaper_model_and_the_profile_is_the_asked_one(exact: bool) -> None:
    actor = new_actor()
    wanted = ProbeWanted(provider="anthropic", model=OWN, largest=5_000, hosted=True, exact=exact)
    found = run_probe(actor=actor, wanted=wanted)
    calls = SideCallRow.objects.filter(tenant_id=actor.tenant_id, purpose="probe")
    assert set(calls.values_list("model", flat=True)) == {OWN if exact else CHEAPER}
    assert profile_of(actor.tenant_id, "anthropic", OWN) == found
    assert found.provenance.measured_on == ("" if exact else CHEAPER)
    assert found.declared_window == 1_000_000


@given(
    fell=st.booleans(),
    seen=st.integers(500, 180_000),
    window=st.integers(1_000, 2_000_000),
    confidence=st.floats(0, 1),
)
def test_a_horizon_is_carried_over_only_where_the_cheaper_one_lost_it(
    fell: bool, seen: int, window: int, confidence: float
) -> None:
    samples = [Observation(tokens=seen, actual_tokens=seen, grade=Grade.STRICT)]
    if fell:
        samples.append(Observation(tokens=seen + 9, actual_tokens=seen + 9, grade=Grade.FAIL))
    made = Provenance(source="probe", probed_at="2026-03-01T12:00:00+00:00")
    found = metadata_profile(provider="p", model="small", declared_window=200_000, max_output=1)
    found = found.model_copy(
        update={
            "horizon": Horizon(tokens=seen, confidence=confidence, confirmed_at=made.probed_at),
            "provenance": made.model_copy(update={"observations": tuple(samples)}),
            "verified_window": 190_000,
        }
    )
    target = metadata_profile(
        provider="p", model="large", declared_window=window, max_output=7, metadata_digest="d"
    )
    after: CapacityProfile = carried_over(target, found)
    assert (after.model, after.output_reserve, after.verified_window) == ("large", 7, None)
    assert after.provenance.metadata_digest == "d"
    assert after.horizon.tokens == (min(seen, window) if fell else window)
    assert after.horizon.confidence <= SIBLING_CONFIDENCE


def carried(*samples: tuple[int, int, Grade]) -> CapacityProfile:
    """What a large model gets of a small one's samples: rung, tokens as counted, grade."""
    seen = [
        Observation(tokens=rung, actual_tokens=real, grade=grade) for rung, real, grade in samples
    ]
    horizon = horizon_of(seen, at=AT)
    assert horizon is not None
    small = metadata_profile(provider="p", model="small", declared_window=200_000, max_output=1)
    made = Provenance(source="probe", probed_at=AT, observations=tuple(seen))
    found = small.model_copy(update={"horizon": horizon, "provenance": made})
    large = metadata_profile(provider="p", model="large", declared_window=900_000, max_output=1)
    return carried_over(large, found)


def test_one_failure_on_a_rung_that_held_loses_no_horizon() -> None:
    """Samples of one rung differ by some tokens: a failed one may be longer than the shortest that passed."""
    after = carried(
        (8_000, 7_900, Grade.STRICT), (8_000, 7_950, Grade.FAIL), (8_000, 7_920, Grade.LOOSE)
    )
    assert after.horizon.tokens == 900_000
    assert not measured(after)


def test_a_rung_that_mostly_failed_ends_it_whatever_the_provider_counted() -> None:
    after = carried(
        *[(8_000, 7_900, Grade.STRICT)] * 3,
        *[(16_000, 7_800, Grade.FAIL)] * 2,
        (16_000, 7_800, Grade.STRICT),
    )
    assert after.horizon.tokens == 7_900
    assert measured(after)


@given(seen=st.lists(st.tuples(st.integers(1, 4), st.sampled_from(Grade)), min_size=1, max_size=20))
def test_a_carried_horizon_is_measured_exactly_where_a_rung_failed(
    seen: list[tuple[int, Grade]],
) -> None:
    rungs = {rung: [grade.passed for at, grade in seen if at == rung] for rung, _ in seen}
    lost = any(sum(passed) * 2 <= len(passed) for passed in rungs.values())
    assume(sum(rungs[min(rungs)]) * 2 > len(rungs[min(rungs)]))
    after = carried(*((rung * 4_000, rung * 4_000, grade) for rung, grade in seen))
    assert measured(after) == lost
    assert (after.horizon.tokens == 900_000) != lost
