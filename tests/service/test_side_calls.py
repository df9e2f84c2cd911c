"""Our own calls to a provider: each leaves one row, with what it cost where a price is known, whatever comes of it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from ctxengine.engine.tokens.usage import Usage
from ctxengine.ledger.models import SideCallRow
from ctxengine.providers.adapters.contract import Prompt, PromptMessage, ProviderError
from ctxengine.providers.adapters.registry import adapter_for
from ctxengine.providers.adapters.secret import Secret
from ctxengine.providers.strict_local.provider import StrictProvider
from ctxengine.providers.strict_local.script import Reply
from ctxengine.providers.strict_local.server import StrictServer
from ctxengine.service.prices import usage_cost
from ctxengine.service.side_calls import counting_call, side_call

TENANT = uuid.UUID("11111111-0000-4000-8000-000000000001")
AT = datetime(2026, 11, 1, tzinfo=UTC)
MILLION = 1_000_000


@pytest.fixture
def strict(settings: Any) -> Iterator[StrictServer]:
    with StrictServer(StrictProvider()) as running:
        settings.CTX_PROVIDER_URLS = {"anthropic": running.url, "openai": running.openai_url}
        settings.CTX_PROVIDER_KEYS = {"anthropic": Secret("k"), "openai": Secret("k")}
        yield running


def call(provider: str = "anthropic", model: str = "claude-sonnet-4-6", **fields: Any) -> Any:
    given: dict[str, Any] = {"purpose": "summary", "timeout_s": 10.0} | fields
    asked = Prompt(model, (PromptMessage("user", "a private question"),))
    return side_call(tenant_id=TENANT, provider=provider, prompt=asked, **given)


@pytest.mark.django_db
def test_a_call_leaves_what_it_cost_and_for_whom(strict: StrictServer) -> None:
    session, job = uuid.uuid4(), uuid.uuid4()
    answer = call(prompt_version="summary-3", session_id=session, job_id=job)
    row = SideCallRow.objects.get()
    assert (row.tenant_id, row.session_id, row.job_id) == (TENANT, session, job)
    assert (row.provider, row.model) == ("anthropic", "claude-sonnet-4-6")
    assert (row.purpose, row.prompt_version) == ("summary", "summary-3")
    assert row.outcome == "completed" and row.latency_ms >= 0
    assert row.usage["fresh"] == answer.usage.fresh
    assert row.cost_microdollars == usage_cost(row.provider, row.model, answer.usage, at=row.at)
    assert row.cost_microdollars > 0


@pytest.mark.django_db
def test_a_model_without_a_price_costs_nobody_knows_what(strict: StrictServer) -> None:
    call(model="strict/horizon-4k")
    assert SideCallRow.objects.get().cost_microdollars is None


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("provider", "status", "code"),
    [
        ("anthropic", 529, "transient"),
        ("openai", 429, "rate_limited"),
        ("google", None, "no_key"),
        ("carrier-pigeon", None, "not_supported"),
        ("compatible", None, "not_allowed"),
    ],
)
def test_a_call_that_fails_leaves_a_row_with_its_code(
    provider: str, status: int | None, code: str, strict: StrictServer
) -> None:
    strict.provider.script.add([Reply(status=status)])
    with pytest.raises(ProviderError, match=code):
        call(provider, "gpt-5.4" if provider == "openai" else "claude-sonnet-4-6")
    row = SideCallRow.objects.get()
    assert (row.outcome, row.usage, row.cost_microdollars) == (code, {}, None)


@pytest.mark.django_db
def test_a_cancelled_call_leaves_one_too(strict: StrictServer) -> None:
    with pytest.raises(ProviderError, match="cancelled"):
        call(cancelled=lambda: True)
    assert SideCallRow.objects.get().outcome == "cancelled"
    assert strict.provider.log.entries() == []


@pytest.mark.django_db
def test_a_call_that_another_fault_ends_leaves_one_too(strict: StrictServer) -> None:
    def broken() -> bool:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        call(cancelled=broken)
    assert SideCallRow.objects.get().outcome == "interrupted"


@pytest.mark.django_db
def test_a_count_is_recorded_and_a_missing_endpoint_says_none(strict: StrictServer) -> None:
    asked = Prompt("claude-sonnet-4-6", (PromptMessage("user", "Hello"),))
    body = adapter_for("anthropic").render(asked)
    counted = counting_call(tenant_id=TENANT, provider="anthropic", body=body, timeout_s=10)
    assert counted is not None and counted > 0
    assert counting_call(tenant_id=TENANT, provider="openai", body={}, timeout_s=10) is None
    assert [row.purpose for row in SideCallRow.objects.all()] == ["count", "count"]


@pytest.mark.parametrize(
    ("provider", "model", "usage", "dollars"),
    [
        ("anthropic", "claude-sonnet-4-6", Usage(fresh=MILLION), 3.0),
        ("anthropic", "claude-sonnet-4-6", Usage(cache_read=MILLION), 0.3),
        ("anthropic", "claude-sonnet-4-6", Usage(cache_write_5m=MILLION), 3.75),
        ("anthropic", "claude-sonnet-4-6", Usage(cache_write_1h=MILLION), 6.0),
        ("anthropic", "claude-sonnet-4-6", Usage(output=MILLION), 15.0),
        ("anthropic", "claude-sonnet-4-6", Usage(extra_input=MILLION), 3.0),
        ("anthropic", "claude-sonnet-4-6", Usage(extra_output=MILLION), 15.0),
        ("openai-responses", "gpt-5.4", Usage(fresh=100_000, output=MILLION), 15.25),
        ("openai", "gpt-4.1", Usage(fresh=500_000, cache_read=500_000), 1.25),
    ],
)
def test_each_bucket_has_its_price(provider: str, model: str, usage: Usage, dollars: float) -> None:
    assert usage_cost(provider, model, usage, at=AT) == pytest.approx(dollars * MILLION, abs=1)


@pytest.mark.parametrize(("provider", "model"), [("ollama", "gemma"), ("compatible", "mine")])
def test_no_price_is_no_price(provider: str, model: str) -> None:
    assert usage_cost(provider, model, Usage(fresh=10), at=AT) is None
