"""A plan is measured by its provider's counting endpoint, once a job has asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ctxengine.ledger.models import Job, PlanRow, SideCallRow
from ctxengine.providers.adapters.secret import Secret
from ctxengine.providers.strict_local.provider import StrictProvider
from ctxengine.providers.strict_local.server import StrictServer
from ctxengine.service.measure_plan import ask_to_measure
from tests.cast import MODELS, Runtime, tool
from tests.work_off import work_off

pytestmark = pytest.mark.django_db


@pytest.fixture
def strict(settings: Any) -> Iterator[StrictServer]:
    with StrictServer(StrictProvider(instance="t")) as running:
        settings.CTX_PROVIDER_URLS = {
            "anthropic": running.url, "openai": running.openai_url, "openai-responses": running.openai_url,
        }  # fmt: skip
        settings.CTX_PROVIDER_KEYS = {
            name: Secret("key-of-a-test") for name in ("anthropic", "openai", "openai-responses")
        }
        yield running


def asked(runtime: Runtime) -> Job | None:
    session = runtime.row
    return ask_to_measure(
        actor=runtime.actor,
        session_id=session.id,
        epoch=1,
        provider=session.provider,
        cause="opened",
    )


@pytest.mark.parametrize("provider", ["anthropic", "openai-responses"])
def test_the_measurement_stands_beside_the_plan_and_changes_nothing_of_it(
    provider: str, strict: StrictServer
) -> None:
    runtime = Runtime(provider=provider, tools=(tool("read"), tool("write")))
    before = PlanRow.objects.get(session_id=runtime.row.id)
    job = asked(runtime)
    assert job is not None
    assert asked(runtime) == job
    assert work_off(runtime.actor.tenant_id, kind="plan.measure") == [("plan.measure", "done")]
    after = PlanRow.objects.get(session_id=runtime.row.id)
    assert after.measured["tokens"] > 50
    assert after.measured["model"] == MODELS[provider]
    assert (after.prefix_tokens, after.prefix_sha256) == (
        before.prefix_tokens,
        before.prefix_sha256,
    )
    calls = SideCallRow.objects.filter(job_id=job.id)
    assert [(call.purpose, call.outcome) for call in calls] == [("count", "completed")] * 2


def test_a_provider_that_counts_nothing_leaves_the_plan_unmeasured(strict: StrictServer) -> None:
    runtime = Runtime(provider="openai")
    asked(runtime)
    assert work_off(runtime.actor.tenant_id, kind="plan.measure") == [("plan.measure", "done")]
    assert PlanRow.objects.get(session_id=runtime.row.id).measured == {}


def test_without_a_key_nobody_asks() -> None:
    assert asked(Runtime(provider="anthropic")) is None
