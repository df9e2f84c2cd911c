"""A `working_set` session driven through the use cases: planned at each start, projected, proven (capacity spec 4 and 10)."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from ctxengine.engine.capacity.profile import Horizon, metadata_profile
from ctxengine.engine.events import EventType
from ctxengine.engine.history.working_set_record import planned_of
from ctxengine.ledger.models import CapacityRow
from ctxengine.service.erase import erase_person
from ctxengine.service.pin import set_presentation
from ctxengine.service.probe.profiles import keep_profile
from ctxengine.service.prove import replay_row
from ctxengine.service.rebuild import rebuild_request
from ctxengine.service.rotate_epoch import rotate_epoch
from ctxengine.service.specs import PolicySpec, Present, PrincipalSpec
from tests.cast import PROVIDERS, Call, Runtime
from tests.made_once import made_once

pytestmark = pytest.mark.django_db


def opened(horizon: int | None = None, **fields: Any) -> Runtime:
    """A session; its model's measured horizon is this one."""
    runtime = Runtime(extra={"engine": "working_set"}, **fields)
    if horizon is not None:
        profile = metadata_profile(
            provider=runtime.provider,
            model=runtime.model,
            declared_window=200_000,
            max_output=8_192,
        )
        measured = profile.model_copy(update={"horizon": Horizon(tokens=horizon, confidence=1.0)})
        keep_profile(tenant_id=runtime.actor.tenant_id, profile=measured)
    return runtime


def live(runtime: Runtime, count: int, *, first: int = 0, lines: int = 40) -> None:
    """Turns of one call each."""
    for number in range(first, first + count):
        runtime.ask(f"What does file number {number} hold? It is called part{number}.txt.")
        runtime.look(f"call{number}", f"part{number} says {number * 7}\n" + "one line\n" * lines)
        runtime.assemble()
        runtime.say(f"File part{number}.txt holds the value {number * 7}.")


def lived(count: int) -> Runtime:
    """A session of so many turns of one call each, of a model whose horizon is small; lived once in each process."""
    return made_once(f"working set of {count} turns", partial(_lived, count))


def _lived(count: int) -> Runtime:
    shorter = max((turns for turns in (12, 20, 24, 31) if turns < count), default=0)
    runtime = lived(shorter) if shorter else opened(6_500)
    live(runtime, count - shorter, first=shorter)
    return runtime


def plans(runtime: Runtime) -> list[dict[str, Any]]:
    """What each plan of the session says."""
    return [event.payload for event in runtime.events(EventType.WORKING_SET_PLANNED)]


def sent(plan: dict[str, Any]) -> list[int]:
    """The turns that a plan shows as they were sent."""
    return [*planned_of(plan).sent_numbers]


def body(runtime: Runtime, place: int = -1) -> str:
    """One recorded request's body."""
    return rebuild_request(runtime.row, runtime.requests[place]).body.decode()


def verdicts(runtime: Runtime) -> set[str]:
    """How all recorded requests prove."""
    return {replay_row(runtime.row, row).verdict for row in runtime.requests}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_twelve_turns_are_planned_shown_whole_and_proven(provider: str) -> None:
    runtime = opened(provider=provider)
    live(runtime, 12)
    assert [plan["turns"] for plan in plans(runtime)] == list(range(12))
    assert {plan["reason"] for plan in plans(runtime)} == {"start"}
    last = runtime.requests[-1].manifest
    (history,) = [s for s in last["spans"] if s["reason"] == "sent_earlier" and s["units"]]
    assert (history["form"], history["units"]) == ("whole", 33)
    assert last["cut"]["left_out_turns"] == 0
    assert verdicts(runtime) == {"identical"}


def test_a_profile_without_a_probe_is_the_declared_window_with_low_confidence() -> None:
    runtime = opened(window=90_000)
    runtime.turn("Hello.", "Hello to you.")
    (plan,) = plans(runtime)
    assert plan["profile"] == {
        "id": None,
        "provider": "anthropic",
        "model": runtime.model,
        "source": "metadata",
        "declared_window": 90_000,
        "verified_window": None,
        "horizon": 90_000,
        "confidence_thousandths": 300,
    }


def test_thirty_one_turns_on_a_small_model_take_under_three_thousand_tokens() -> None:
    runtime = lived(31)
    for row in runtime.requests[-8:]:
        shown = [s for s in row.manifest["spans"] if s["reason"] == "closed_turn"]
        nine = next(entry for entry in row.manifest["rows"] if entry["row"] == 9)
        assert sum(span["tokens"] for span in shown) + nine["tokens"] < 3_000
    last = runtime.requests[-1].manifest
    reasons = {span["reason"] for span in last["spans"]}
    assert "in_packet" in reasons
    # Every fact is a call away: each turn by its number, each result by its id.
    runtime.ask("Now read all of it again.")
    runtime.assemble()
    for number in range(31):
        raw = json.dumps({"turn": str(number + 1)})
        taken = runtime.say("", Call(f"r{number}", "recall", raw))
        (answered,) = taken.calls
        assert f"holds the value {number * 7}." in json.dumps(answered.result)
        runtime.assemble()
    assert verdicts(runtime) == {"identical"}


def test_values_and_reasons_stand_in_the_manifest_as_numbers() -> None:
    runtime = lived(20)
    runtime.ask("What did part3.txt hold?")
    runtime.assemble()
    spans = runtime.requests[-1].manifest["spans"]
    valued = {s["numbers"]["turn"]: s for s in spans if "relevance" in s["numbers"]}
    assert valued[4]["reason"] == "promoted"
    assert valued[4]["numbers"]["relevance"] == 1_000
    assert "part3 says 21" in body(runtime)


def test_the_stable_history_only_grows_between_two_batches() -> None:
    runtime = lived(24)
    forms = [(p["packet_through"], p["full_from"], p["rewritten"]) for p in plans(runtime)]
    changed = [n for n in range(1, 24) if forms[n][:2] != forms[n - 1][:2]]
    assert all(forms[n][2] for n in changed)
    assert not any(forms[n][2] for n in range(24) if n not in changed)
    assert len(changed) <= 5


def test_a_pinned_turn_comes_back_whole() -> None:
    runtime = lived(20)
    (first, *_) = runtime.events(EventType.USER_MESSAGE)
    spec = Present(target=str(first.sequence), scope="turn", form="pinned", note="needed")
    set_presentation(actor=runtime.actor, session_id=runtime.session, spec=spec)
    live(runtime, 1, first=20)
    plan = plans(runtime)[-1]
    assert plan["by_hand"] == [1]
    assert "part0 says 0" in body(runtime)
    assert verdicts(runtime) == {"identical"}


def test_what_an_operator_excluded_stands_on_no_card() -> None:
    runtime = lived(12)
    assert any(span["reason"] == "as_card" for span in runtime.requests[-1].manifest["spans"])
    assert "part1.txt" in body(runtime)
    for event in runtime.events(EventType.USER_MESSAGE, EventType.RESPONSE_COMPLETED):
        if event.sequence < 30 and event.type != EventType.RESPONSE_COMPLETED:
            spec = Present(
                target=f"{event.sequence}.0", scope="item", form="excluded", note="private"
            )
            set_presentation(actor=runtime.actor, session_id=runtime.session, spec=spec)
    runtime.ask("Go on.")
    runtime.assemble()
    assert "What does file number 1 hold?" not in body(runtime)
    assert verdicts(runtime) == {"identical"}


def test_what_was_erased_is_gone_and_what_was_sent_still_proves() -> None:
    runtime = opened(6_500, principal=PrincipalSpec(id="mara"))
    live(runtime, 18)
    before = len(runtime.requests)
    erase_person(actor=runtime.actor, principal="mara", note="asked for it")
    assert verdicts(runtime) <= {"identical", "identical_except"}
    live(runtime, 3, first=18)
    assert "part5.txt" not in body(runtime)
    assert verdicts(runtime) <= {"identical", "identical_except"}
    # A step is handed out again with a body after the erasure too.
    again = runtime.requests[before:]
    assert all(rebuild_request(runtime.row, row).body for row in again)


def test_a_growing_turn_takes_from_closed_history_before_its_own_results() -> None:
    runtime = opened(window=16_000, max_output=1_000)
    live(runtime, 12, lines=90)
    runtime.ask("Go on with many files now.")
    for number in range(9):
        runtime.look(f"x{number}", f"big {number}\n" + "some words of output here\n" * 150)
    reasons = [plan["reason"] for plan in plans(runtime)]
    assert "pressure" in reasons
    spans = [s["reason"] for row in runtime.requests for s in row.manifest["spans"]]
    assert "active_too_large" not in spans
    assert verdicts(runtime) == {"identical"}


def test_and_its_own_results_only_when_none_is_left() -> None:
    runtime = opened(window=16_000, max_output=1_000)
    live(runtime, 6, lines=90)
    runtime.ask("Go on with many files now.")
    for number in range(14):
        runtime.look(f"x{number}", f"big {number}\n" + "some words of output here\n" * 150)
    spans = [s["reason"] for row in runtime.requests for s in row.manifest["spans"]]
    assert "active_too_large" in spans
    assert plans(runtime)[-1]["full_from"] == 7
    assert verdicts(runtime) == {"identical"}


REFUSED = json.dumps(
    {
        "type": "error",
        "error": {
            "type": "invalid_request_error",
            "message": "prompt is too long: 9000 tokens > 5000 maximum",
        },
    }
)


def test_a_refusal_as_too_long_replans_once_and_teaches_the_profile() -> None:
    runtime = opened(window=100_000, max_output=1_000)
    live(runtime, 16, lines=90)
    runtime.ask("Once more, please.")
    runtime.assemble()
    before = runtime.requests[-1].total_tokens
    assert runtime.fail(400, REFUSED).next == "reassemble"
    runtime.assemble()
    plan = plans(runtime)[-1]
    assert plan["reason"] == "over_length"
    assert plan["profile"]["verified_window"] == 5_000
    assert runtime.requests[-1].total_tokens < before
    (kept,) = CapacityRow.objects.filter(tenant_id=runtime.actor.tenant_id)
    assert kept.profile["verified_window"] == 5_000
    assert runtime.fail(400, REFUSED).next == "fail"
    assert verdicts(runtime) == {"identical"}


def test_a_turn_over_the_horizon_is_a_warning_and_closed_history_is_none() -> None:
    runtime = opened(4_000)
    live(runtime, 5)
    runtime.ask("Read this: " + "many words " * 2_500)
    runtime.assemble()
    row = runtime.requests[-1]
    assert any("horizon is 4,000" in warning for warning in row.manifest["warnings"])
    runtime.say("That was long.")
    assert verdicts(runtime) == {"identical"}


def test_a_security_rotation_replans_inside_the_run() -> None:
    runtime = opened()
    live(runtime, 3)
    runtime.ask("And now?")
    runtime.assemble()
    rotate_epoch(
        actor=runtime.actor,
        session_id=runtime.session,
        reason="tool_removed_for_security",
        note="it leaks",
        tools=("shell.run",),
    )
    runtime.assemble()
    assert [plan["reason"] for plan in plans(runtime)][-2:] == ["start", "security"]
    assert verdicts(runtime) == {"identical"}


def test_a_policy_that_wants_a_model_is_no_reason_for_a_warning() -> None:
    for engine in ("working_set", "suffix"):
        runtime = Runtime(policy=PolicySpec(compaction="model"), extra={"engine": engine})
        assert not runtime.opened.plan.warnings
