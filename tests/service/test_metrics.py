"""Metrics: sums with both parts, unknown kept apart from nought, and nothing beyond the range asked for."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from ctxengine.ledger.models import OpenRefusal, RequestRow, SideCallRow
from ctxengine.ledger.queries.metrics import BEFORE, SEEN, GroupBy, MetricsFilter
from ctxengine.service.cost_model import cost_model_today, price_starts
from ctxengine.service.import_transcript import import_file
from ctxengine.service.metrics.document import metrics_document
from ctxengine.service.metrics.figures import Cost, Figures
from ctxengine.service.metrics.fleet import last_day
from ctxengine.service.metrics.report import Metrics, MetricsSpec, metrics
from ctxengine.service.rotate_epoch import rotate_epoch
from ctxengine.service.specs import Actor, PolicySpec, ServiceError
from tests.cast import Runtime, answer, new_actor
from tests.factories import make_tenant, pressed_session
from tests.inspector.sessions import kept_session

pytestmark = pytest.mark.django_db


def usage(fresh: int, read: int, written: int, output: int = 10) -> str:
    return json.dumps(
        {
            "input_tokens": fresh,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": written,
            "output_tokens": output,
        }
    )


def answered(runtime: Runtime, *bills: tuple[int, int, int]) -> Runtime:
    """One run for each bill of (fresh, read, written)."""
    for number, bill in enumerate(bills):
        runtime.ask(f"Question {number}?")
        runtime.assemble()
        runtime.hear(answer(runtime.provider, f"Answer {number}."), usage_raw=usage(*bill))
    return runtime


def report(actor: Actor, **fields: Any) -> Metrics:
    return metrics(actor=actor, spec=MetricsSpec(**fields))


def moved(runtime: Runtime, number: int, **back: float) -> None:
    """Let one request of a session have been built earlier."""
    rows = RequestRow.objects.filter(session_id=runtime.session, number=number)
    rows.update(created_at=timezone.now() - timedelta(**back))


def test_cached_input_is_held_against_the_whole_input_of_the_call_before() -> None:
    runtime = answered(Runtime(), (1000, 0, 0), (100, 900, 0), (1000, 500, 0))
    found = report(runtime.actor).totals
    assert (found.cached_of_preceding.part, found.cached_of_preceding.whole) == (1400, 2000)
    assert (found.cached_share.part, found.cached_share.whole) == (1400, 3500)
    assert found.follows == 2


def test_the_call_before_counts_even_where_it_lies_before_the_range() -> None:
    runtime = answered(Runtime(), (1000, 0, 0), (100, 800, 0))
    moved(runtime, 1, days=20)
    found = report(runtime.actor).totals
    assert found.requests == 1
    assert (found.cached_of_preceding.part, found.cached_of_preceding.whole) == (800, 1000)


def test_calls_of_other_sessions_are_nobodys_predecessor() -> None:
    first = answered(Runtime(), (1000, 0, 0))
    answered(Runtime(actor=first.actor), (10, 990, 0))
    found = report(first.actor).totals
    assert found.cached_of_preceding.value is None
    assert found.cached_share.part == 990


def test_a_silent_provider_is_left_out_and_counted() -> None:
    runtime = answered(Runtime(), (1000, 0, 0))
    runtime.turn("And?", "Nothing.")
    found = report(runtime.actor).totals
    assert (found.requests, found.reported, found.unreported) == (2, 1, 1)
    assert found.prompt == 1000


def test_an_unknown_price_is_unknown_and_not_nought() -> None:
    runtime = answered(Runtime(provider="openai", model="nobody-has-priced-this"), (1000, 0, 0))
    found = report(runtime.actor)
    document = metrics_document(found)
    assert document["totals"]["cost"]["usd"] is None
    assert document["totals"]["cost"]["saved"] is None
    assert document["totals"]["cost"]["unpriced_requests"] == 1
    assert document["prices"]["unknown_models"] == ["openai/nobody-has-priced-this"]


def test_costs_add_up_and_savings_are_against_no_cache() -> None:
    runtime = answered(Runtime(), (1000, 0, 2000), (1000, 2000, 0))
    cost = report(runtime.actor).totals.cost
    assert cost.total == cost.fresh + cost.read + cost.write + cost.output
    assert cost.saved == cost.without_cache - cost.prompt
    assert cost.without_cache == 3 * 6000  # microdollars: three dollars a million


def test_a_request_costs_what_the_list_said_on_its_own_day() -> None:
    runtime = answered(Runtime(), (100_000, 0, 0), (400_000, 0, 0))
    key = runtime.provider, runtime.model
    (changed,) = price_starts(*key)
    assert changed < date(2026, 11, 1), "this test needs a model whose prices changed in the past"
    before, after = (
        datetime.combine(changed, datetime.min.time(), UTC) + timedelta(hours=hours)
        for hours in (-1, 1)
    )
    rows = RequestRow.objects.filter(session_id=runtime.session)
    costs = {}
    for moment in (before, after):
        rows.update(created_at=moment)
        prices = cost_model_today(*key, at=moment)
        assert prices is not None
        found = report(
            runtime.actor, since=before - timedelta(days=9), until=after + timedelta(days=9)
        )
        costs[moment] = found.totals.cost.total
        assert found.totals.cost.fresh == sum(
            tokens * prices.tier(tokens).input for tokens in (100_000, 400_000)
        )
        assert [row.cost_microdollars for row in found.worst.cost] == [costs[moment]]
    assert costs[before] != costs[after]
    # One range with a request on each side has one of each price.
    rows.filter(number=1).update(created_at=before)
    both = report(runtime.actor, since=before - timedelta(days=9), until=after + timedelta(days=9))
    assert both.totals.cost.total == both.worst.cost[0].cost_microdollars
    assert sum(figures.cost.total or 0 for _, figures in both.trend) == both.totals.cost.total


def test_what_server_side_iterations_took_is_billed_beside_the_prompt() -> None:
    plain = answered(Runtime(), (1_000, 500, 0))
    runtime = Runtime()
    runtime.ask("Question?")
    runtime.assemble()
    iterations = [
        {"type": "compaction", "input_tokens": 70_000, "output_tokens": 3_000},
        {"type": "message", "input_tokens": 1_000, "cache_read_input_tokens": 500, "output_tokens": 10},
    ]  # fmt: skip
    raw = {"input_tokens": 1_000, "cache_read_input_tokens": 500, "output_tokens": 10}
    runtime.hear(
        answer("anthropic", "Answer."), usage_raw=json.dumps({**raw, "iterations": iterations})
    )
    without, found = report(plain.actor), report(runtime.actor)
    assert found.totals.prompt == without.totals.prompt == 1_500
    assert (found.totals.billed_input, found.totals.billed_output) == (71_500, 3_010)
    extra = Decimal(70_000 * 3 + 3_000 * 15)  # microdollars: three and fifteen dollars a million
    assert found.totals.cost.total == (without.totals.cost.total or 0) + extra
    assert found.totals.cost.saved == without.totals.cost.saved
    assert [row.cost_microdollars for row in found.worst.cost] == [found.totals.cost.total]
    assert found.totals.estimator_error.whole == 1_500
    days = [figures for day in last_day() for figures in day.figures.values()]
    (figures,) = (figures for figures in days if figures.extra_input)
    assert (figures.cost.total, figures.extra_output) == (found.totals.cost.total, 3_000)
    tokens = metrics_document(found)["totals"]["tokens"]
    assert tokens["billed_input"] == tokens["prompt"] + tokens["extra_input"]
    assert tokens["billed_output"] == tokens["output"] + tokens["extra_output"]


@pytest.mark.parametrize(("share", "sign"), [(2, -1), (1, 0), (0.5, 1)])
def test_counting_too_little_is_a_negative_error(share: float, sign: int) -> None:
    runtime = Runtime()
    runtime.ask("Question?")
    counted = runtime.assemble().budget["request"]
    billed = int(counted * share)
    runtime.hear(answer("anthropic", "Answer."), usage_raw=usage(billed, 0, 0))
    found = report(runtime.actor)
    (row,) = found.estimates
    for error in (found.totals.estimator_error, row.error):
        assert (error.part, error.whole) == (counted - billed, billed)
    assert row.error.value is not None and row.learnt is not None
    for value in (row.error.value, row.learnt.last_error):
        assert (value > 0) - (value < 0) == sign or (sign >= 0 and value >= 0)


def test_the_worst_estimate_is_the_one_that_counts_least_of_what_is_billed() -> None:
    first = Runtime()
    runtimes = [first, Runtime(actor=first.actor, provider="openai")]
    for runtime, share in zip(runtimes, (1.2, 0.1), strict=True):
        runtime.ask("Question?")
        billed = int(runtime.assemble().budget["request"] * share)
        name = "input_tokens" if runtime.provider == "anthropic" else "prompt_tokens"
        runtime.hear(answer(runtime.provider, "Yes."), usage_raw=json.dumps({name: billed}))
    errors = [row.error.value or 0 for row in report(first.actor).estimates]
    assert errors == sorted(errors)
    assert errors[0] < 0 < abs(errors[0]) < errors[1]


TRANSCRIPT = json.dumps(
    {
        "messages": [
            {"role": "user", "content": "An imported question."},
            {"role": "assistant", "content": "An imported answer."},
        ]
    }
).encode()


def test_what_an_imported_session_does_later_is_live_in_requests_and_events_alike() -> None:
    actor = new_actor()
    outcome = import_file(actor=actor, name="chat.json", data=TRANSCRIPT)
    (session,) = outcome.session_ids
    before = report(actor).totals
    assert (before.requests, before.turns, before.rotations) == (0, 0, 0)
    runtime = Runtime(actor=actor)
    runtime.session = session
    runtime.ask("A live question?")
    runtime.assemble()
    rotate_epoch(actor=actor, session_id=session, reason="operator", note="Looked into.")
    live = report(actor).totals
    assert (live.requests, live.turns) == (1, 1)
    assert live.rotations >= 1
    assert live.sessions == 1
    whole = report(actor, imported=True).totals
    assert (whole.turns, whole.rotations) == (2, live.rotations)
    assert whole.requests >= 1


def test_a_longer_prompt_is_priced_by_its_own_length_and_not_by_the_sum_of_many() -> None:
    short = report(answered(Runtime(), *[(90_000, 0, 0)] * 4).actor).totals.cost
    assert short.fresh == 4 * 90_000 * 3


def test_groups_and_steps_add_up_to_the_totals() -> None:
    first = answered(Runtime(), (1000, 0, 0), (100, 900, 0))
    answered(Runtime(actor=first.actor, provider="openai"), (500, 0, 0))
    moved(first, 1, days=2)
    for by in GroupBy:
        found = report(first.actor, group_by=by)
        for parts in (found.groups, found.trend):
            assert sum(figures.requests for _, figures in parts) == found.totals.requests == 3
            assert sum(figures.prompt for _, figures in parts) == found.totals.prompt
            assert sum(figures.preceding for _, figures in parts) == found.totals.preceding


def test_filters_narrow_every_figure() -> None:
    first = answered(Runtime(), (1000, 0, 0))
    answered(Runtime(actor=first.actor, provider="openai"), (500, 0, 0))
    assert report(first.actor, provider="openai").totals.prompt == 500
    assert report(first.actor, model="anthropic/claude-sonnet-4-6").totals.prompt == 1000
    assert report(first.actor, agent="scout@1").totals.requests == 2
    assert report(first.actor, agent="scout@2").totals.requests == 0
    assert report(first.actor, engine="boundary").totals.requests == 0


def test_requests_of_imported_transcripts_count_only_when_asked_for() -> None:
    runtime = answered(Runtime(), (1000, 0, 0))
    RequestRow.objects.filter(session_id=runtime.session).update(reconstructed=True)
    assert report(runtime.actor).totals.requests == 0
    assert report(runtime.actor, imported=True).totals.requests == 1


def test_another_tenants_requests_are_not_counted() -> None:
    answered(Runtime(), (1000, 0, 0))
    assert report(Runtime().actor).totals.requests == 0


def test_rotations_compactions_and_turns_are_counted_with_their_reasons() -> None:
    session = kept_session(make_tenant())
    found = report(session.actor)
    assert found.totals.rotations == 1
    assert [row.reason for row in found.reasons] == ["operator"]
    assert found.totals.epochs_per_session.value == 2.0
    assert found.totals.compactions == 1
    assert found.depths == ((1, 1),)
    assert found.totals.turns == 6
    assert [row.session_id for row in found.worst.rotated] == [session.id]


def test_yields_are_summed_by_class_and_agree_with_the_requests_that_show_them() -> None:
    session = pressed_session(make_tenant())
    found = report(session.actor)
    rows = RequestRow.objects.filter(session_id=session.id)
    steps = [step for row in rows for step in row.manifest["yields"] if step["outcome"] == "ran"]
    assert found.totals.pressure == len({row.id for row in rows if _ran(row)})
    assert sum(row.steps for row in found.yields) == len(steps)
    assert sum(row.tokens for row in found.yields) == sum(
        step["tokens_before"] - step["tokens_after"] for step in steps
    )


def _ran(row: RequestRow) -> bool:
    return any(step["outcome"] == "ran" for step in row.manifest["yields"])


def test_a_step_that_does_not_fit_is_exceeded_and_no_request_under_pressure() -> None:
    runtime = Runtime(
        window=14_000, max_output=1_000, policy=PolicySpec(reserve=1_000, history_floor=500)
    )
    for number in range(4):
        runtime.turn(f"Question {number}?", "An answer. " * 200)
    fitted = report(runtime.actor)
    runtime.ask("x " * 20_000)
    with pytest.raises(ServiceError) as refused:
        runtime.assemble()
    assert refused.value.code == "budget_exceeded"
    found = report(runtime.actor)
    assert found.totals.exceeded == 1
    assert found.totals.pressure_share == fitted.totals.pressure_share
    assert found.yields == fitted.yields
    assert found.totals.pressure <= found.totals.requests


def test_failures_verdicts_and_misses_are_counted_and_missing_verdicts_are_unknown() -> None:
    runtime = answered(Runtime(), (1000, 0, 0), (100, 900, 0), (600, 400, 0))
    rows = RequestRow.objects.filter(session_id=runtime.session)
    rows.update(verdict={})
    rows.filter(number=3).update(
        verdict={
            "class": "shortfall",
            "expected_read": 950,
            "reported_read": 400,
            "cause": "ttl_gap",
            "provider_reason": "model_changed",
            "disagreement": True,
        }
    )
    runtime.ask("More?")
    runtime.assemble()
    runtime.fail(529)
    found = report(runtime.actor)
    assert found.totals.failed == 1
    assert sum(many for _, many in found.failures) == 1
    assert found.predictions.classes == (("shortfall", 1, 950, 400),)
    assert found.predictions.misses == (("ttl_gap", 1, 1, 550),)
    assert (found.predictions.disagreements, found.predictions.unknown) == (1, 2)


def test_refused_opens_and_side_calls_are_read_from_their_rows() -> None:
    actor = Runtime().actor
    now = timezone.now()
    for code, session in (("prefix_too_large", None), ("prefix_too_large", uuid.uuid4())):
        OpenRefusal.objects.create(
            tenant_id=actor.tenant_id, id=uuid.uuid4(), at=now, code=code, budget_class="tools",
            needed=9_500, available=9_000, engine="suffix", provider="anthropic",
            model="claude-sonnet-4-6", agent_name="scout", session_id=session,
        )  # fmt: skip
    for cost in (1_500, None):
        SideCallRow.objects.create(
            tenant_id=actor.tenant_id, id=uuid.uuid4(), at=now, provider="anthropic",
            model="claude-haiku-4-5", purpose="summary", outcome="completed", cost_microdollars=cost,
        )  # fmt: skip
    found = report(actor, until=now + timedelta(minutes=1))
    (refused,) = found.refused_opens
    assert (refused.budget_class, refused.opens, refused.rotations) == ("tools", 1, 1)
    (calls,) = found.side_calls
    assert (calls.calls, calls.cost_microdollars, calls.unpriced) == (2, 1_500, 1)


def test_the_worst_session_is_the_dearest_and_the_one_that_reads_least_back() -> None:
    cheap = answered(Runtime(), (10, 0, 0), (1, 9, 0))
    dear = answered(Runtime(actor=cheap.actor), (100_000, 0, 0), (100_000, 0, 0))
    worst = report(cheap.actor).worst
    assert [row.session_id for row in worst.cost] == [dear.session, cheap.session]
    assert worst.cached[0].session_id == dear.session


@pytest.mark.parametrize(("since", "until"), [(1, 2), (1, 1), (-500, 0)])
def test_an_impossible_range_is_refused_in_words(since: int, until: int) -> None:
    now = timezone.now()
    with pytest.raises(ServiceError) as refused:
        report(
            Runtime().actor,
            since=now + timedelta(days=since),
            until=now + timedelta(days=-until if until else 0),
        )
    assert refused.value.status == 400


def test_a_short_range_has_hours_and_a_long_one_days() -> None:
    actor, now = Runtime().actor, timezone.now()
    hours = report(actor, since=now - timedelta(hours=24), until=now)
    days = report(actor, since=now - timedelta(days=30), until=now)
    assert hours.where.bucket == "hour" and len(hours.trend) in (24, 25)
    assert days.where.bucket == "day" and len(days.trend) == 31


def test_the_number_of_queries_follows_neither_the_range_nor_the_fleet() -> None:
    first = answered(Runtime(), (1000, 0, 0))
    with CaptureQueriesContext(connection) as few:
        report(first.actor)
    for _ in range(3):
        answered(Runtime(actor=first.actor, policy=PolicySpec()), (500, 0, 0), (5, 500, 0))
    with CaptureQueriesContext(connection) as many:
        report(first.actor, since=timezone.now() - timedelta(days=300))
    assert len(few) == len(many)


def test_no_statement_has_to_read_whole_tables() -> None:
    now = timezone.now()
    actor = answered(Runtime(), (1000, 0, 0)).actor
    values = MetricsFilter(now - timedelta(days=1), now).parameters(actor.tenant_id)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("EXPLAIN " + SEEN + BEFORE + "SELECT sum(before) FROM follow", values)
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "Index Cond" in plan
    assert "Seq Scan" not in plan


def test_figures_without_a_denominator_have_no_value() -> None:
    document = Figures().as_json()
    assert document["cached_of_preceding"] == {"numerator": 0, "denominator": 0, "value": None}
    assert Cost().total is None and Cost().saved is None
