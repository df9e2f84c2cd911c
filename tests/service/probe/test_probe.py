"""The probe against the strict local provider, whose models follow instructions up to a horizon that their name sets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from ctxengine.engine.capacity.profile import CacheBehaviour, CapacityProfile
from ctxengine.ledger.models import CapacityRow, SideCallRow, Tenant
from ctxengine.providers.adapters.secret import Secret
from ctxengine.providers.strict_local.server import StrictServer
from ctxengine.service.probe.profiles import profile_of
from ctxengine.service.probe.run_probe import ProbeWanted, run_probe
from ctxengine.service.specs import Actor, ServiceError
from tests.factories import make_tenant

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module")
def strict() -> Iterator[StrictServer]:
    with StrictServer() as server:
        yield server


@pytest.fixture(autouse=True)
def reached(settings: Any, strict: StrictServer) -> None:
    settings.CTX_PROVIDER_URLS = {
        "anthropic": strict.url,
        "openai": strict.openai_url,
        "openai-responses": strict.openai_url,
        "ollama": strict.url,
    }
    settings.CTX_PROVIDER_KEYS = {
        "anthropic": Secret("k" * 20),
        "openai": Secret("k" * 20),
        "openai-responses": Secret("k" * 20),
    }


@pytest.fixture
def tenant() -> Tenant:
    return make_tenant()


def probe(tenant: Tenant, model: str, provider: str = "openai", **more: Any) -> CapacityProfile:
    wanted = ProbeWanted(provider=provider, model=model, **more)
    return run_probe(actor=Actor(tenant.id, "user:ann"), wanted=wanted)


@pytest.mark.parametrize("provider", ["anthropic", "openai", "openai-responses", "ollama"])
@pytest.mark.parametrize("horizon", [6_000, 8_000])
def test_a_set_horizon_is_found_within_one_rung(
    tenant: Tenant, provider: str, horizon: int
) -> None:
    found = probe(tenant, f"strict/horizon-{horizon}", provider, largest=18_000)
    assert found.horizon.tokens < horizon
    assert horizon - found.horizon.tokens <= horizon * 0.2
    assert found.horizon.native_calls
    assert found.horizon.confidence > 0.7


def test_the_cache_is_known_by_what_the_provider_reports(tenant: Tenant) -> None:
    assert probe(tenant, "strict/horizon-6000", largest=8_000).cache is CacheBehaviour.REPORTED


def test_every_sample_is_a_recorded_side_call_and_the_profile_is_kept(tenant: Tenant) -> None:
    found = probe(tenant, "strict/horizon-6000", largest=8_000)
    calls = SideCallRow.objects.filter(tenant_id=tenant.id, purpose="probe")
    assert calls.count() >= len(found.provenance.observations)
    assert profile_of(tenant.id, "openai", "strict/horizon-6000") == found
    assert CapacityRow.objects.filter(tenant_id=tenant.id).count() == 1


def test_a_model_that_was_never_probed_has_its_declared_window_with_low_confidence(
    tenant: Tenant,
) -> None:
    known = profile_of(tenant.id, "anthropic", "claude-sonnet-4-6")
    assert (known.horizon.tokens, known.horizon.confidence) == (1_000_000, 0.3)


def test_a_hosted_model_is_probed_only_where_somebody_agreed(tenant: Tenant, settings: Any) -> None:
    settings.CTX_PROVIDER_URLS = {}
    with pytest.raises(ServiceError) as refused:
        probe(tenant, "gpt-5")
    assert refused.value.code == "probe_not_allowed"


def test_a_provider_without_a_key_says_so(tenant: Tenant, settings: Any) -> None:
    settings.CTX_PROVIDER_KEYS = {}
    with pytest.raises(ServiceError) as refused:
        probe(tenant, "strict/horizon-6000")
    assert refused.value.extra["provider_code"] == "no_key"


def test_the_command_prints_the_profile_as_one_json_object(tenant: Tenant) -> None:
    out = StringIO()
    call_command(
        "probe",
        "openai/strict/horizon-6000",
        "--max=8000",
        "--json",
        f"--tenant={tenant.slug}",
        stdout=out,
        stderr=StringIO(),
    )
    data = json.loads(out.getvalue())
    assert 4_000 <= data["horizon"]["tokens"] < 6_000


@pytest.mark.parametrize(
    "arguments",
    [["nonsense"], ["openai/"], ["openai/x", "--max=3"], ["openai/x", "--tenant=nobody"]],
)
def test_the_command_says_what_is_wrong_with_its_arguments(arguments: list[str]) -> None:
    with pytest.raises(CommandError):
        call_command("probe", *arguments, stdout=StringIO(), stderr=StringIO())
