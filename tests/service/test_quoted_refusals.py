"""A refusal that quotes the request, or states a maximum alone, teaches no window that the request does not bear out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxengine.engine.events import EventType
from ctxengine.ledger.models import Calibration
from ctxengine.service.learnt_window import learnt_window
from tests.cast import Runtime

pytestmark = pytest.mark.django_db

ASKED = "Why does my server say that the maximum context length is 4096 tokens?"
FAULTS = [{"type": "string_type", "loc": ("body", 1), "msg": "Input is no text", "input": ASKED}]


def told(message: Any) -> str:
    return json.dumps(
        {"object": "error", "message": message, "type": "BadRequestError", "code": 400}
    )


def sent(words: int = 2_000) -> tuple[Runtime, int]:
    runtime = Runtime()
    runtime.ask(f"{ASKED} {'word ' * words}")
    return runtime, runtime.assemble().budget["request"]


def taught(runtime: Runtime) -> int | None:
    return learnt_window(runtime.actor.tenant_id, runtime.provider, runtime.model)


@pytest.mark.parametrize(
    "body",
    [
        told(str(FAULTS)),
        told(f"Invalid value: '{ASKED}'."),
        json.dumps({"detail": FAULTS}),
        json.dumps({"error": {"message": "Invalid role.", "param": ASKED}}),
    ],
    ids=["a message of faults", "a quotation", "a list of faults", "a parameter"],
)
def test_a_request_that_is_quoted_is_refused_as_it_is_and_teaches_nothing(body: str) -> None:
    runtime, _ = sent()
    taken = runtime.fail(400, body)
    assert (taken.next, taken.code) == ("fail", "invalid_request")
    assert not runtime.events(EventType.WINDOW_LEARNED)
    assert taught(runtime) is None and not Calibration.objects.exists()


def test_words_of_the_request_without_quotes_may_cost_one_build_and_teach_nothing() -> None:
    runtime, size = sent(800)
    assert size < 3_500, "shorter than what is stated"
    assert runtime.fail(400, told(f"Invalid message: {ASKED}")).next == "reassemble"
    (learnt,) = runtime.events(EventType.WINDOW_LEARNED)
    assert (learnt.payload["maximum"], learnt.payload["taught"]) == (4_096, False)
    assert taught(runtime) is None and not Calibration.objects.exists()
    runtime.assemble()
    assert runtime.fail(400, told(f"Invalid message: {ASKED}")).next == "fail"


@pytest.mark.parametrize(
    ("hundredths", "believed"),
    [(51, True), (70, True), (99, True), (108, True), (112, False), (48, False)],
)
def test_a_maximum_alone_is_believed_where_what_was_sent_was_longer_and_not_by_far(
    hundredths: int, believed: bool
) -> None:
    runtime, size = sent(9_000)
    maximum = size * hundredths // 100
    runtime.fail(400, f"exceeded model token limit: {maximum}")
    assert taught(runtime) == (maximum if believed else None)


@pytest.mark.parametrize("above", [0, 1_000])
@pytest.mark.parametrize("counted", [True, False])
def test_a_maximum_that_the_prompt_did_not_reach_is_no_size_to_try_again(
    above: int, counted: bool
) -> None:
    """The answer was counted in, or our count is low: the second build is smaller, and not the same once more."""
    runtime = Runtime(window=200_000)
    for turn in range(4):
        runtime.turn(f"Question {turn}", "long words " * 12_000)
    runtime.ask("And now?")
    first = runtime.assemble()
    maximum = first.budget["request"] + above
    stated = f"This model's maximum context length is {maximum} tokens."
    if counted:
        stated += f" However, your request has {first.budget['request']} input tokens."
    assert runtime.fail(400, told(stated)).next == "reassemble"
    second = runtime.assemble()
    assert second.request_id != first.request_id
    assert second.budget["factor"] > first.budget["factor"]
