"""A response's cache figures are held against the prediction: agreement, shortfalls with a cause, the provider's own reason."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from ctxengine.engine.cache.causes import CAUSE_RULES, RULE_OF_CAUSE, Cause, contradicts
from ctxengine.engine.cache.verdict import Expected, Reported, judge
from ctxengine.engine.events import EventType
from ctxengine.ledger.models import RequestRow
from ctxengine.service.configure_session import configure_session
from ctxengine.service.plan_specs import Configure
from ctxengine.service.prove import replay_request
from ctxengine.service.specs import AgentRef, Content
from tests.cast import Call, Runtime, answer

pytestmark = pytest.mark.django_db

LONG = "Word by word. " * 600


def told(provider: str, text: str, usage: dict[str, Any], **more: Any) -> str:
    """A response with usage, and whatever else a provider says."""
    data = json.loads(answer(provider, text)) | {"usage": usage} | more
    return json.dumps(data)


def anthropic_usage(read: int, write: int, fresh: int = 40) -> dict[str, Any]:
    return {
        "input_tokens": fresh,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": write,
        "output_tokens": 5,
    }


def turn(runtime: Runtime, raw: str, question: str = "And now?") -> RequestRow:
    runtime.ask(question)
    runtime.assemble()
    runtime.hear(raw)
    return runtime.requests[-1]


def warmed(**fields: Any) -> Runtime:
    """A session whose prefix was written to the cache by its first turn."""
    runtime = Runtime(instructions=LONG, tools=(), **fields)
    turn(runtime, told("anthropic", "Yes.", anthropic_usage(0, 2_000)))
    return runtime


def test_a_first_request_that_reads_nothing_agrees_and_says_why() -> None:
    first = warmed().requests[0]
    assert (first.verdict["class"], first.verdict["cause"]) == ("agrees", "first_request")
    assert first.verdict["reported_write"] == 2_000


def test_what_was_written_is_expected_to_the_token_at_the_next_step() -> None:
    runtime = warmed()
    second = turn(runtime, told("anthropic", "Yes.", anthropic_usage(2_000, 60)))
    assert second.verdict["basis"] == "measured"
    assert second.verdict["expected_read"] == second.verdict["reported_read"] == 2_000
    assert second.verdict["class"] == "agrees"
    assert runtime.events(EventType.CACHE_SHORTFALL) == []


def test_a_shortfall_that_nothing_explains_is_an_event_with_its_numbers() -> None:
    runtime = warmed()
    second = turn(runtime, told("anthropic", "Yes.", anthropic_usage(0, 2_060)))
    assert (second.verdict["class"], second.verdict["cause"]) == ("shortfall", "unexplained")
    (event,) = runtime.events(EventType.CACHE_SHORTFALL)
    assert event.trust == "PLATFORM"
    assert event.payload["request"] == str(second.id)
    assert (event.payload["expected_read"], event.payload["reported_read"]) == (2_000, 0)
    # The event is no content: the same step is not opened again, and every request still proves.
    turn(runtime, told("anthropic", "Yes.", anthropic_usage(2_060, 60)))
    verdicts = {
        replay_request(actor=runtime.actor, request_id=r.id).verdict for r in runtime.requests
    }
    assert verdicts == {"identical"}


def test_a_loss_by_another_prefix_is_an_event_with_both_digests_though_it_was_foreseen() -> None:
    runtime = warmed()
    agent = AgentRef(name="scout", version="2", instructions="Otherwise. " * 600)
    configure_session(actor=runtime.actor, session_id=runtime.session, spec=Configure(agent=agent))
    second = turn(runtime, told("anthropic", "Yes.", anthropic_usage(0, 2_060)))
    assert (second.verdict["class"], second.verdict["cause"]) == ("agrees", "epoch_rotated")
    (event,) = runtime.events(EventType.CACHE_SHORTFALL)
    assert event.payload["foreseen"] is True
    first = runtime.requests[0]
    for name in ("prefix_sha256", "wire_prefix_sha256"):
        both = {"before": getattr(first, name), "after": getattr(second, name)}
        assert event.payload["changed"][name] == both
        assert both["before"] != both["after"]


def test_a_request_that_was_sent_after_its_entry_ran_out_is_told_from_the_providers_fault() -> None:
    runtime = warmed()
    runtime.ask("Later?")
    runtime.assemble()
    late = RequestRow.objects.filter(session_id=runtime.session, number=2)
    late.update(created_at=runtime.requests[1].created_at - timedelta(seconds=400))
    runtime.hear(told("anthropic", "Yes.", anthropic_usage(0, 2_060)))
    assert runtime.requests[1].verdict["cause"] == "ttl_gap_before_sending"


def test_another_model_in_the_answer_explains_a_shortfall() -> None:
    runtime = warmed()
    raw = told("anthropic", "Yes.", anthropic_usage(0, 2_060), model="claude-haiku-4-5")
    assert turn(runtime, raw).verdict["cause"] == "model_changed"


def test_a_dated_or_prefixed_name_is_the_same_model() -> None:
    runtime = warmed()
    raw = told(
        "anthropic", "Yes.", anthropic_usage(0, 2_060), model="strict/claude-sonnet-4-6-20260201"
    )
    assert turn(runtime, raw).verdict["cause"] == "unexplained"


def test_the_providers_own_reason_stands_beside_ours_and_a_contradiction_is_marked() -> None:
    runtime = warmed()
    reason = {"cache_miss_reason": {"type": "system_changed", "cache_missed_input_tokens": 2_040}}
    second = turn(runtime, told("anthropic", "Yes.", anthropic_usage(0, 2_060), diagnostics=reason))
    assert second.verdict["provider_reason"] == "system_changed"
    assert second.verdict["disagreement"] is True
    (event,) = runtime.events(EventType.CACHE_SHORTFALL)
    assert event.payload["disagreement"] is True


def test_a_reason_that_only_tells_of_moved_fresh_rows_contradicts_nothing() -> None:
    runtime = warmed()
    reason = {"cache_miss_reason": {"type": "messages_changed", "cache_missed_input_tokens": 30}}
    second = turn(
        runtime, told("anthropic", "Yes.", anthropic_usage(2_000, 60), diagnostics=reason)
    )
    assert (second.verdict["class"], second.verdict["disagreement"]) == ("agrees", False)


def test_openai_names_its_reason_in_a_place_of_its_own() -> None:
    runtime = Runtime(
        provider="openai-responses", model="gpt-5.6-terra", instructions=LONG, tools=()
    )
    usage = {
        "input_tokens": 2_040,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 2_000},
    }
    turn(runtime, told("openai-responses", "Yes.", usage))
    miss = {"type": "cache_miss", "reason": "tools_changed", "cache_missed_tokens": 2_000}
    second = turn(runtime, told("openai-responses", "Yes.", usage, prompt_cache_diagnostics=miss))
    assert second.verdict["class"] == "shortfall"
    assert second.verdict["provider_reason"] == "tools_changed"
    assert second.verdict["disagreement"] is True


@pytest.mark.parametrize("usage", [None, {"input_tokens": 2_040, "output_tokens": 5}])
def test_a_response_without_cache_figures_is_unreported_and_no_shortfall(usage: Any) -> None:
    runtime = warmed()
    raw = told("anthropic", "Yes.", usage) if usage else answer("anthropic", "Yes.")
    assert turn(runtime, raw).verdict["class"] == "unreported"
    assert runtime.events(EventType.CACHE_SHORTFALL) == []


def test_a_request_that_was_refused_leaves_nothing_to_be_read() -> None:
    runtime = Runtime(instructions=LONG, tools=())
    runtime.ask("One?")
    runtime.assemble()
    runtime.fail(400, "prompt is too long: 213462 tokens > 200000 maximum")
    runtime.assemble()
    assert runtime.requests[-1].cache["predicted"]["why"] == "first"


def test_the_first_picture_costs_the_cached_messages_but_not_the_prefix() -> None:
    runtime = warmed()
    turn(runtime, told("anthropic", "Yes.", anthropic_usage(2_000, 60)))
    data = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    block = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    runtime.ask(
        Content(format="blocks", raw=json.dumps([block, {"type": "text", "text": "This?"}]))
    )  # type: ignore[arg-type]
    predicted = runtime.assemble().cache["predicted"]
    assert predicted["cause"] == "images_changed"
    assert predicted["lost"] > 0
    assert predicted["read"] > 1_024
    runtime.hear(told("anthropic", "A dot.", anthropic_usage(1_900, 400)))
    again = runtime.turn("And?", "Still a dot.")
    assert (again.cache["predicted"]["cause"], again.cache["predicted"]["lost"]) == ("", 0)


def test_a_long_gap_is_a_loss_with_its_own_cause() -> None:
    runtime = warmed()
    RequestRow.objects.filter(session_id=runtime.session).update(
        created_at=runtime.requests[0].created_at - timedelta(seconds=600)
    )
    row = runtime.requests[0]
    entries = [entry | {"used_at": entry["used_at"] - 600} for entry in row.cache["entries"]]
    RequestRow.objects.filter(id=row.id).update(cache=row.cache | {"entries": entries})
    second = turn(runtime, told("anthropic", "Yes.", anthropic_usage(0, 2_060)))
    assert (second.verdict["class"], second.verdict["cause"]) == ("agrees", "ttl_gap")


def test_a_run_that_leaves_its_reasoning_behind_loses_up_to_there() -> None:
    runtime = Runtime(instructions=LONG)
    runtime.ask("Look.")
    runtime.assemble()
    thought = '{"type":"thinking","thinking":"","signature":"sig"}'
    raw = json.loads(answer("anthropic", "", [Call("toolu_1", "read")], reasoning=[thought]))
    runtime.hear(json.dumps(raw | {"usage": anthropic_usage(0, 2_100)}))
    runtime.results(("toolu_1", "Found it."))
    runtime.assemble()
    runtime.hear(told("anthropic", "Done.", anthropic_usage(2_100, 300)))
    runtime.ask("Next?")
    predicted = runtime.assemble().cache["predicted"]
    assert (predicted["why"], predicted["cause"]) == ("hit", "run_boundary")
    assert predicted["lost"] > 0


# --- the judge alone --------------------------------------------------------------------------------------------------


def expected(read: int = 1_000, **fields: Any) -> Expected:
    known = {"write": 100, "total": 1_200, "why": "hit", "cause": Cause.NONE}
    return Expected(read=read, **{**known, **fields})


def test_a_scaled_expectation_is_wider_than_a_measured_one() -> None:
    reported = Reported(read=880, write=300, total=1_200)
    assert judge(expected(), reported).outcome == "agrees"
    assert judge(expected(measured=1_000), reported).outcome == "shortfall"


def test_reading_more_than_predicted_is_a_surplus_and_has_no_cause() -> None:
    found = judge(expected(0, why="first", cause=Cause.FIRST), Reported(900, 0, 1_200))
    assert (found.outcome, found.cause) == ("surplus", Cause.NONE)


def test_one_step_more_or_less_is_no_shortfall_where_a_provider_serves_steps() -> None:
    found = judge(expected(10_000, total=12_000, step=2_048), Reported(8_000, 0, 12_000))
    assert found.outcome == "agrees"


def test_every_cause_has_one_line_in_the_table() -> None:
    assert [rule.cause for rule in CAUSE_RULES] == list(Cause)
    assert all(rule.words for rule in CAUSE_RULES)


def test_reasons_that_name_no_change_contradict_nothing() -> None:
    assert not contradicts(Cause.UNEXPLAINED, "unavailable")
    assert not contradicts(Cause.NONE, "messages_changed")
    assert not contradicts(Cause.EPOCH, "tools_changed")
    assert contradicts(Cause.EXPIRED, "tools_changed")
    assert RULE_OF_CAUSE[Cause.EXPIRED].words
