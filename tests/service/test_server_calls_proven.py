"""Calls of a provider's own tools that stand as notes: the same from a warm process, a new one, and after an erasure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ctxengine.engine.events import EventType
from ctxengine.ledger.models import RequestRow, SessionRow
from ctxengine.service import warm
from ctxengine.service.end_run import end_run
from ctxengine.service.erase import erase_person
from ctxengine.service.pin import set_presentation
from ctxengine.service.prove import prove_all
from ctxengine.service.rebuild import rebuild_request
from ctxengine.service.specs import EndRun, PolicySpec, Present, PrincipalSpec
from tests.cast import Call, Runtime, answer
from tests.service.test_server_calls_late import FOUND, SEARCH, THOUGHT, kinds, late

pytestmark = pytest.mark.django_db

FOUND_KIND = "web_search_tool_result"


def searching(*blocks: str, text: str = "", **fields: Any) -> Runtime:
    """A run whose newest answer holds these blocks and calls a tool of ours, which has answered."""
    runtime = Runtime(**fields)
    runtime.ask("What does copper cost?")
    runtime.assemble()
    runtime.hear(answer("anthropic", text, [Call("toolu_1", "read")], reasoning=list(blocks)))
    runtime.results(("toolu_1", "nine"))
    return runtime


def small(engine: str) -> dict[str, Any]:
    policy = PolicySpec(history_floor=0, low_water=1.0)
    return {"extra": {"engine": engine}, "window": 9000, "max_output": 1000, "policy": policy}


def verdicts(runtime: Runtime) -> set[tuple[str, str | None]]:
    return {
        (proof.verdict, proof.first_difference) for proof in prove_all(session_id=runtime.session)
    }


def turns(runtime: Runtime, count: int, size: int) -> Iterator[Any]:
    for number in range(count):
        runtime.ask(f"Item {number}: " + "it is long " * size)
        yield runtime.assemble()
        runtime.say(f"Remembered {number}. " * size)


@pytest.mark.parametrize("engine", ["suffix", "working_set"])
def test_a_pinned_open_call_stands_as_a_note_before_and_after_a_restart(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = searching(SEARCH, **small(engine))
    end_run(actor=runtime.actor, run_id=runtime.run, spec=EndRun(outcome="interrupted"))
    target = runtime.events(EventType.RESPONSE_COMPLETED)[0].sequence
    pin = Present(target=f"{target}", form="pinned", scope="unit")
    set_presentation(actor=runtime.actor, session_id=runtime.session, spec=pin)
    for number, built in enumerate(turns(runtime, 4, 280)):
        assert "server_tool_use" not in kinds(built)
        assert "[elided] provider block" in built.body.decode()
        if number == 2:
            monkeypatch.setattr(warm, "_SESSIONS", warm._Sessions(warm.SESSIONS_KEPT))
    assert built.manifest["cut"]["at_sequence"] > target
    assert verdicts(runtime) == {("identical", None)}


@pytest.mark.parametrize("engine", ["suffix", "boundary"])
def test_an_erased_session_proves_what_it_sent_before_and_after_the_user_spoke(engine: str) -> None:
    who = PrincipalSpec(id="mara")
    runtime = searching(SEARCH, THOUGHT, extra={"engine": engine}, principal=who)
    assert "server_tool_use" in kinds(runtime.assemble())
    late(runtime)
    assert "server_tool_use" not in kinds(runtime.assemble())
    runtime.hear(answer("anthropic", "Found.", [Call("toolu_2", "read")], reasoning=[FOUND]))
    runtime.results(("toolu_2", "ten"))
    assert FOUND_KIND not in kinds(runtime.assemble())
    assert {verdict for verdict, _ in verdicts(runtime)} <= {"identical", "identical_except"}
    erase_person(actor=runtime.actor, principal="mara", note="asked for it")
    assert {verdict for verdict, _ in verdicts(runtime)} == {"identical_except"}


def test_a_result_whose_call_was_cut_away_is_a_note_but_in_requests_recorded_before_that() -> None:
    runtime = searching(SEARCH, text="Let me see about it. " * 250, **small("suffix"))
    runtime.assemble()
    runtime.hear(answer("anthropic", "Copper is nine. " * 250, [], reasoning=[FOUND]))
    sent = list(turns(runtime, 5, 110))
    shown = [("server_tool_use" in kinds(built), FOUND_KIND in kinds(built)) for built in sent]
    assert shown[0] == (True, True)
    assert all(call or not result for call, result in shown)
    noted = next(built for built in sent if "[elided] provider block" in built.body.decode())
    assert any("is not in view" in warning for warning in noted.manifest["warnings"])
    assert verdicts(runtime) == {("identical", None)}

    row = RequestRow.objects.get(id=noted.request_id)
    old = {key: value for key, value in row.inputs.items() if key not in {"lone_results", "unsent"}}
    row.inputs = old | {"marked": {}}
    built = rebuild_request(SessionRow.objects.get(id=runtime.session), row)
    assert FOUND_KIND in built.body.decode() and "server_tool_use" not in built.body.decode()
    RequestRow.objects.filter(id=row.id).update(
        inputs=row.inputs, request_sha256=built.request_sha256
    )
    assert verdicts(runtime) == {("identical", None)}


@pytest.mark.parametrize("model", ["claude-haiku-4-5", "claude-opus-5-5"])
def test_reasoning_that_goes_with_an_abandoned_call_is_counted_once(model: str) -> None:
    runtime = searching(THOUGHT, SEARCH, model=model)
    runtime.assemble()
    late(runtime)
    built = runtime.assemble()
    assert "thinking" not in kinds(built)
    runtime.hear(answer("anthropic", "", [Call("toolu_2", "read")], reasoning=[THOUGHT]))
    runtime.results(("toolu_2", "ten"))
    assert kinds(runtime.assemble()).count("thinking") == 1
    told = [
        event.payload["reasoning_dropped"]
        for event in runtime.events()
        if "reasoning_dropped" in event.payload
    ]
    assert told == [1]
    row = RequestRow.objects.get(id=built.request_id)
    assert row.inputs["opaque_tokens"] == 0
    assert {verdict for verdict, _ in verdicts(runtime)} <= {"identical", "identical_except"}
