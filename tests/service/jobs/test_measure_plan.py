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
from ctxengine.service.rotate_epoch import rotate_epoch
from ctxengine.service.specs import PolicySpec
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


def test_nobody_asks_a_provider_that_counts_nothing(strict: StrictServer) -> None:
    runtime = Runtime(provider="openai")
    assert asked(runtime) is None
    assert causes(runtime) == []


def test_without_a_key_nobody_asks() -> None:
    runtime = Runtime(provider="anthropic")
    assert asked(runtime) is None
    assert causes(runtime) == []


def test_each_epoch_is_measured_once_it_stands(strict: StrictServer) -> None:
    runtime = Runtime(provider="anthropic")
    rotate_epoch(
        actor=runtime.actor,
        session_id=runtime.session,
        reason="tool_removed_for_security",
        note="It leaks.",
        tools=("web.fetch",),
    )
    assert causes(runtime) == ["session opened", "epoch rotated: tool_removed_for_security"]
    done = [("plan.measure", "done")] * 2
    assert work_off(runtime.actor.tenant_id, kind="plan.measure") == done
    told = PlanRow.objects.filter(session_id=runtime.session).order_by("epoch")
    first, second = (row.measured["tokens"] for row in told)
    assert 0 < second < first


def test_definitions_kept_aside_are_not_measured_before_they_are_found(
    strict: StrictServer,
) -> None:
    kept = tuple(tool(f"later_{number}", deferred=True) for number in range(12))
    native = PolicySpec(deferral="native")
    with_them = Runtime(tools=(tool("read"), *kept), policy=native)
    with_one = Runtime(tools=(tool("read"), kept[0]), policy=native)
    for runtime in (with_them, with_one):
        work_off(runtime.actor.tenant_id, kind="plan.measure")
    rows = PlanRow.objects.filter(session_id__in=[with_them.session, with_one.session])
    assert len({row.prefix_tokens for row in rows}) == 1
    assert len({row.measured["tokens"] for row in rows}) == 1


def causes(runtime: Runtime) -> list[str]:
    rows = Job.objects.filter(tenant_id=runtime.actor.tenant_id, kind="plan.measure")
    return list(rows.order_by("created_at").values_list("cause", flat=True))
