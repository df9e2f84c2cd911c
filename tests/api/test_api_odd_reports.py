"""What runtimes and providers report by mistake is answered, kept and believed by nobody; and names are never guessed."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.tokens.factors import CalibrationFactor
from ctxengine.engine.tokens.usage import MAX_PLAUSIBLE_TOKENS, Usage, normalise
from ctxengine.ledger.models import Calibration, PlanRow
from tests.api.door import MODEL, Door, key_for, new_tenant

INT4 = 2**31 - 1
TOKENS = st.integers(0, INT4)


@pytest.fixture
def tenant() -> uuid.UUID:
    return new_tenant("odd")


@pytest.fixture
def door(tenant: uuid.UUID) -> Door:
    return Door(key_for(tenant))


def reported(door: Door, usage: dict[str, Any], message: str = "word " * 5_000) -> Any:
    """One whole run whose answer reports these figures; gives the request as it is kept."""
    run = door.run(door.open(), message)
    request = door.assemble(run)["request_id"]
    door.says(run, "Done.", usage=usage)
    return door.get(f"requests/{request}").ok()


@given(st.lists(st.tuples(TOKENS, TOKENS), min_size=1, max_size=6))
def test_no_receipt_teaches_a_figure_that_no_column_holds(receipts: list[tuple[int, int]]) -> None:
    factor = CalibrationFactor("m")
    for estimated, actual in receipts:
        factor = factor.reconcile(estimated, Usage(fresh=actual, prompt_total=actual))
        factor = factor.raised_to(estimated, actual)
        assert 0 < factor.millionths <= INT4
        assert abs(factor.last_error_millionths) <= INT4


@given(st.lists(st.integers(0, 2**40), min_size=4, max_size=4))
def test_figures_that_add_up_to_more_than_can_be_kept_are_flagged(buckets: list[int]) -> None:
    names = (
        "input_tokens",
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
        "output_tokens",
    )
    usage = normalise("anthropic", dict(zip(names, buckets, strict=True)))
    if usage.calibrates:
        assert usage.prompt_total <= MAX_PLAUSIBLE_TOKENS


@pytest.mark.django_db
@pytest.mark.parametrize("tokens", [1, 2, 3, INT4, 2**40])
def test_a_report_however_far_from_the_estimate_is_taken(door: Door, tokens: int) -> None:
    assert reported(door, {"input_tokens": tokens, "output_tokens": 1})["usage"] is not None
    row = Calibration.objects.filter(model=MODEL["name"]).first()
    assert row is None or abs(row.last_error_millionths) <= 10_000_000


@pytest.mark.django_db
@pytest.mark.parametrize("value", [-1, 2**31, 2**60])
def test_a_latency_that_is_none_is_refused_and_the_answer_can_still_be_reported(
    door: Door, value: int
) -> None:
    run = door.run(door.open())
    door.assemble(run)
    body = {"response": {"content": [{"type": "text", "text": "x"}], "stop_reason": "end_turn"}}
    refused = door.post(f"runs/{run}/responses", {**body, "latency_ms": value})
    assert refused.status in (400, 422)
    assert door.post(f"runs/{run}/responses", body).ok()["next"] == "finish"


@pytest.mark.django_db
def test_figures_that_cannot_be_right_are_part_of_no_sum(door: Door) -> None:
    reported(door, {"input_tokens": 100, "output_tokens": 10}, "Hi")
    before = door.get("metrics").ok()["totals"]
    for odd in (
        {"input_tokens": 1_500_000_000, "output_tokens": 1},
        {"input_tokens": 10, "output_tokens": -5},
        {"input_tokens": 5, "cache_read_input_tokens": 2**50, "output_tokens": 7},
    ):
        reported(door, odd, "Hi")
    after = door.get("metrics").ok()["totals"]
    assert after["requests"]["unusable"] == 3
    assert (after["requests"]["reported"], after["requests"]["unreported"]) == (1, 0)
    for same in ("tokens", "cost", "estimator_error", "cached_of_preceding"):
        assert after[same] == before[same]


@pytest.mark.django_db
@pytest.mark.parametrize(
    "said",
    ["213462 tokens > 200000 maximum", "5 tokens > 3 maximum", "2000 tokens > 7 maximum", "by far"],
)
def test_one_odd_refusal_makes_the_model_small_for_nobody_else(door: Door, said: str) -> None:
    session = door.open()
    run = door.run(session, "word " * 2_000)
    wide = door.assemble(run)["budget"]
    error = {"status": 400, "body": f"prompt is too long: {said}"}
    taken = door.post(f"runs/{run}/responses", {"error": error}).ok()
    assert (taken["next"], taken["code"]) == ("reassemble", "over_length")
    (learnt,) = [
        e["payload"] for e in door.events(session) if e["type"] == "context.window.learned"
    ]
    assert learnt["taught"] is False
    other = door.assemble(door.run(door.open(), "word " * 2_000))["budget"]
    assert (other["window"], other["factor"]) == (wide["window"], wide["factor"])


@pytest.mark.django_db
def test_an_answer_to_no_request_is_refused(door: Door) -> None:
    run = door.run(door.open())
    response = {"content": [{"type": "text", "text": "Hi"}], "stop_reason": "end_turn"}
    for body in ({"response": response}, {"error": {"status": 500, "body": ""}}):
        refused = door.post(f"runs/{run}/responses", body)
        assert (refused.status, refused.code) == (409, "not_assembled")
    door.assemble(run)
    assert door.says(run, "Hi")["next"] == "finish"


@pytest.mark.django_db
def test_a_model_nobody_knows_is_said_to_have_an_assumed_window(door: Door) -> None:
    agent = {"name": f"a-{uuid.uuid4().hex}", "version": "1", "instructions": "Help."}

    def warned(**model: Any) -> bool:
        fields = {"model": {"provider": "openai", **model}, "agent": agent}
        warnings = door.post("sessions", fields).ok()["plan"]["warnings"]
        return any("model.window" in w and "128,000" in w for w in warnings)

    assert warned(name="nobody-knows-it")
    assert not warned(name="nobody-knows-it", window=64_000)
    assert not warned(name="gpt-5.4")


@pytest.mark.django_db
def test_a_model_chosen_later_is_held_to_the_same(door: Door) -> None:
    session = door.open()
    door.send(
        "PATCH", f"sessions/{session}", {"model": {"provider": "anthropic", "name": "nobody-knows"}}
    ).ok()
    door.assemble(door.run(session))
    door.post(f"sessions/{session}/epochs", {"reason": "operator", "note": "once more"}).ok()
    warnings = PlanRow.objects.filter(session_id=session).order_by("epoch")
    told = [any("model.window" in line for line in row.warnings) for row in warnings]
    assert told == [False, True, True]


@pytest.mark.django_db
def test_blanks_around_a_models_name_make_no_other_model(door: Door) -> None:
    session = door.open(model={"provider": "anthropic ", "name": "  claude-sonnet-4-6\n"})
    request = door.assemble(door.run(session))
    assert request["request"]["model"] == MODEL["name"]
    empty = door.post(
        "sessions",
        {
            "model": {"provider": "anthropic", "name": "   "},
            "agent": {"name": "x", "version": "1", "instructions": "i"},
        },
    )
    assert (empty.status, empty.code) == (422, "invalid_field")


@pytest.mark.django_db
def test_nobodys_model_is_not_probed(door: Door) -> None:
    for hosted in (True, False):
        wanted = {"provider": "nobody", "model": "x", "hosted": hosted}
        refused = door.post("capacity-profiles", wanted)
        assert (refused.status, refused.code) == (422, "unsupported_provider")


@pytest.mark.django_db
def test_erasing_somebody_unknown_does_not_look_done(door: Door) -> None:
    door.run(door.open(principal={"id": "ada"}), "I am Ada.")
    unknown = door.post("people/adda/erase", {"note": "asked"})
    assert (unknown.status, unknown.code) == (404, "not_found")
    assert door.post("people/ada/erase", {"note": "asked"}).ok()["bodies"] > 0
    assert door.post("people/ada/erase", {"note": "asked again"}).ok()["bodies"] == 0
