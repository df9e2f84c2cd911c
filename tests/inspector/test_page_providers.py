"""The page of providers, and the cache panel of a request: what was predicted, reported and why."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime, timedelta

import pytest

from ctxengine.engine.cache.causes import CAUSE_RULES
from ctxengine.ledger.models import RequestRow, SideCallRow
from ctxengine.ledger.queries.metrics import MetricsFilter
from ctxengine.ledger.queries.metrics_events import side_calls
from ctxengine.service.specs import Actor
from inspector.cachepanel import cause_words
from tests.cast import Runtime, answer
from tests.inspector.conftest import Cast

pytestmark = pytest.mark.django_db


def usage(read: int, write: int) -> dict[str, int]:
    return {
        "input_tokens": 40,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": write,
        "output_tokens": 5,
    }


def hear(runtime: Runtime, read: int, write: int, **more: object) -> None:
    runtime.ask("And?")
    runtime.assemble()
    said = json.loads(answer("anthropic", "Yes."))
    runtime.hear(json.dumps(said | {"usage": usage(read, write)} | more))


@pytest.fixture
def talked(cast: Cast) -> Runtime:
    """A session whose second request read nothing, for a reason that its provider names."""
    runtime = Runtime(
        actor=Actor(cast.tenant.id, "system"), instructions="Word by word. " * 600, tools=()
    )
    hear(runtime, 0, 2_000)
    reason = {"type": "system_changed", "cache_missed_input_tokens": 2_040}
    hear(runtime, 0, 2_060, diagnostics={"cache_miss_reason": reason})
    return runtime


def test_the_cache_panel_says_what_was_lost_and_both_reasons(cast: Cast, talked: Runtime) -> None:
    page = cast.page(f"requests/{talked.requests[1].id}/")
    for words in (
        "2,000 tokens less were read than predicted",
        "nothing on our side explains it",
        "system_changed",
        "The two do not agree",
        "what the provider itself measured",
    ):
        assert words in page
    first = cast.page(f"requests/{talked.requests[0].id}/")
    assert "The provider read what was predicted." in first
    assert "none given" in first


def test_an_unanswered_request_has_a_panel_too(cast: Cast, talked: Runtime) -> None:
    talked.ask("Wait.")
    talked.assemble()
    page = cast.page(f"requests/{talked.requests[2].id}/")
    assert "Not answered yet." in page


def test_providers_are_listed_with_their_failures_by_code(cast: Cast, talked: Runtime) -> None:
    talked.ask("Once more.")
    talked.assemble()
    talked.fail(529, "Overloaded")
    SideCallRow.objects.create(
        tenant_id=cast.tenant.id,
        id=uuid.uuid4(),
        at=datetime.now(UTC),
        provider="anthropic",
        model="claude-haiku-4-5",
        purpose="summary",
        outcome="auth",
    )
    page = cast.page("providers/")
    assert "transient" in page
    assert "claude-haiku-4-5" in page
    lines = {line["model"]: line for line in cast.data("providers.json")}
    line = lines["claude-sonnet-4-6"]
    # The tenant has another session on this model, whose made-up usage figures have surprises of their own.
    mine = RequestRow.objects.filter(session_id=talked.session)
    assert mine.filter(verdict__class="shortfall").count() == 1
    assert (line["failed"], line["disagreements"]) == (1, 1)
    assert line["answered"] > 2
    assert line["shortfalls"] > 1
    assert lines["claude-haiku-4-5"]["faults"][0]["code"] == "auth"
    rows = b"".join(cast.viewer.get(cast.url("providers.csv?w=7d"))).decode()
    assert rows.splitlines()[0].startswith("provider,model,answered")


def test_a_call_that_was_cancelled_is_no_failure_of_its_provider(cast: Cast) -> None:
    for outcome in ("completed", "cancelled"):
        SideCallRow.objects.create(
            tenant_id=cast.tenant.id,
            id=uuid.uuid4(),
            at=datetime.now(UTC),
            provider="anthropic",
            model="claude-haiku-4-5",
            purpose="probe",
            outcome=outcome,
        )
    lines = {line["model"]: line for line in cast.data("providers.json")}
    line = lines["claude-haiku-4-5"]
    assert (line["side_calls"], line["side_failed"], line["faults"]) == (2, 0, [])
    today = datetime.now(UTC)
    where = MetricsFilter(since=today - timedelta(days=1), until=today + timedelta(minutes=1))
    (probes,) = side_calls(cast.tenant.id, where)
    assert (probes.calls, probes.failed) == (2, 0)


def test_without_traffic_the_page_says_where_figures_come_from(cast: Cast) -> None:
    RequestRow.objects.update(created_at=datetime(2026, 1, 1, tzinfo=UTC))
    assert "Nothing was sent to any provider" in cast.page("providers/", w="1h")
    assert cast.viewer.get(cast.url("providers/?w=2h")).status_code == 400


def test_every_cause_has_words_and_an_unknown_one_stands_as_it_is() -> None:
    assert all(cause_words(rule.cause.value) == rule.words for rule in CAUSE_RULES if rule.cause)
    assert cause_words("of_another_version") == "of_another_version"
