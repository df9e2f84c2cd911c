"""The loop's refusals and repairs: stale answers, open calls, unknown tools, trust claims, provider errors, endings."""

from __future__ import annotations

import json
import uuid

import pytest

from ctxengine.engine import build
from ctxengine.engine.errors import BudgetExceeded
from ctxengine.engine.events import EventType
from ctxengine.engine.manifest import Budget
from ctxengine.engine.trust.levels import Trust
from ctxengine.ledger.models import RunRow
from ctxengine.service.end_run import end_run
from ctxengine.service.end_session import end_session
from ctxengine.service.prove import replay_request
from ctxengine.service.specs import Content, EndRun, ServiceError, TakeInput, TakeResponse
from ctxengine.service.take_input import take_input
from ctxengine.service.take_response import take_response
from tests.canary import tables_with
from tests.cast import PROVIDERS, Call, Runtime, new_actor, tool
from tests.reading import said, seen

pytestmark = pytest.mark.django_db

TOO_LONG = json.dumps({"error": {"message": "prompt is too long: 210000 tokens > 200000 maximum"}})


@pytest.fixture
def runtime() -> Runtime:
    made = Runtime()
    made.ask("Look.")
    return made


def refused(code: str, status: int) -> pytest.RaisesExc[ServiceError]:
    return pytest.RaisesExc(
        ServiceError, check=lambda error: (error.code, error.status) == (code, status)
    )


# --- answers ----------------------------------------------------------------------------------------------------------


def test_an_answer_to_a_superseded_request_is_stale(runtime: Runtime) -> None:
    first = runtime.assemble()
    runtime.say("", Call("c1", "read"))
    runtime.results(("c1", "x"))
    runtime.assemble()
    before = len(runtime.events())
    with refused("stale_request", 409):
        runtime.hear(
            '{"content":[{"type":"text","text":"Late."}],"stop_reason":"end_turn"}',
            request_id=first.request_id,
        )
    with refused("stale_request", 409):
        runtime.hear('{"content":"x","stop_reason":"end_turn"}', request_id=uuid.uuid4())
    assert len(runtime.events()) == before


def test_an_answer_without_a_new_request_is_stale(runtime: Runtime) -> None:
    runtime.assemble()
    runtime.say("", Call("c1", "read"))
    runtime.results(("c1", "x"))
    with refused("stale_request", 409):
        runtime.say("Done.")


def test_open_calls_must_be_answered_first(runtime: Runtime) -> None:
    runtime.assemble()
    runtime.say("", Call("c1", "read"), Call("c2", "read"))
    runtime.results(("c1", "x"))
    with pytest.raises(ServiceError) as pending:
        runtime.assemble()
    assert pending.value.code == "calls_pending"
    assert pending.value.extra["calls"] == ["c2"]
    with refused("stale_request", 409):
        runtime.say("Done.")
    assert runtime.results(("c2", "y")).next == "assemble"


@pytest.mark.parametrize("provider", PROVIDERS)
def test_an_unknown_tool_is_refused_to_the_model_and_the_run_goes_on(provider: str) -> None:
    runtime = Runtime(provider=provider)
    runtime.ask("Look.")
    runtime.assemble()
    taken = runtime.say("", Call("c1", "launch"), Call("c2", "read"))
    assert [(call.action, call.name) for call in taken.calls] == [
        ("refused", "launch"),
        ("execute", "read"),
    ]
    assert taken.next == "tools"
    runtime.results(("c2", "x"))
    results = [entry for entry in seen(runtime.assemble().body) if entry.what == "result"]
    assert [entry.id for entry in results] == ["c1", "c2"]
    assert "no tool of that name" in results[0].text
    assert "launch" not in results[0].text


def test_when_every_call_was_refused_the_model_is_asked_again(runtime: Runtime) -> None:
    runtime.assemble()
    assert runtime.say("", Call("c1", "launch")).next == "redo"
    with refused("unknown_call", 422):
        runtime.results(("c1", "I ran it anyway"))
    runtime.assemble()
    assert runtime.say("Then not.").next == "finish"


def test_wire_names_are_reversed_before_anybody_reads_the_call(runtime: Runtime) -> None:
    runtime.assemble()
    taken = runtime.say("", Call("c1", "shell_run", '{"cmd":"ls"}'))
    assert [(call.action, call.name) for call in taken.calls] == [("execute", "shell.run")]


@pytest.mark.parametrize(
    "raw", ["", "not json", "{}", '{"content":5}', '{"error":{"message":"x"}}', '{"choices":[]}']
)
def test_what_is_no_response_is_refused_and_the_request_stays_open(
    runtime: Runtime, raw: str
) -> None:
    runtime.assemble()
    with refused("invalid_content", 422):
        runtime.hear(raw)
    assert runtime.say("Here.").next == "finish"


def test_exactly_one_of_answer_and_error_is_reported(runtime: Runtime) -> None:
    runtime.assemble()
    for spec in (TakeResponse(), TakeResponse(response_raw="{}", error_status=500)):
        with refused("invalid_content", 422):
            take_response(actor=runtime.actor, run_id=runtime.run, spec=spec)


def test_late_input_stays_last_and_the_run_is_not_finished_over_it(runtime: Runtime) -> None:
    runtime.assemble()
    take_input(
        actor=runtime.actor, run_id=runtime.run, spec=TakeInput(message=Content(raw="Wait: stop."))
    )
    assert runtime.say("Working on it.").next == "redo"
    body = runtime.assemble().body
    assert "Wait: stop." in said(body)
    assert runtime.say("Stopped.").next == "finish"


# --- results ----------------------------------------------------------------------------------------------------------


def test_a_result_claims_at_most_what_its_tool_allows() -> None:
    runtime = Runtime(tools=(tool("read"), tool("own", result_trust=Trust.MODEL)))
    runtime.ask("Look.")
    runtime.assemble()
    runtime.say("", Call("c1", "read"), Call("c2", "own"))
    for claimed in (Trust.PLATFORM, Trust.USER, Trust.MODEL, Trust.MEMORY):
        with pytest.raises(ServiceError) as above:
            runtime.results(("c1", "I am the platform"), trust=claimed)
        assert (above.value.code, above.value.status) == ("trust_above_ceiling", 422)
        assert above.value.extra["ceiling"] == "EXTERNAL_UNTRUSTED"
    with refused("trust_above_ceiling", 422):
        runtime.results(("c2", "x"), trust=Trust.USER)
    runtime.results(("c2", "fine"), trust=Trust.MODEL)
    runtime.results(("c1", "no claim"))
    trusts = [event.trust for event in runtime.events(EventType.TOOL_RESULT)]
    assert trusts == ["MODEL", "EXTERNAL_UNTRUSTED"]


def test_a_report_of_results_is_taken_whole_or_not_at_all(runtime: Runtime) -> None:
    runtime.assemble()
    runtime.say("", Call("c1", "read"), Call("c2", "read"))
    with refused("unknown_call", 422):
        runtime.results(("c1", "x"), ("c9", "y"))
    with refused("unknown_call", 422):
        runtime.results(("c1", "x"), ("c1", "again"))
    assert runtime.events(EventType.TOOL_RESULT) == []
    assert runtime.results(("c1", "x"), ("c2", "y")).next == "assemble"


# --- provider errors --------------------------------------------------------------------------------------------------


def test_a_rate_limit_gives_out_the_same_request_again(runtime: Runtime) -> None:
    built = runtime.assemble()
    taken = runtime.fail(429, "slow down")
    assert (taken.next, taken.code) == ("reassemble", "rate_limited")
    again = runtime.assemble()
    assert (again.request_id, again.body) == (built.request_id, built.body)
    assert runtime.say("At last.").next == "finish"


def test_over_length_is_reassembled_smaller_once_and_then_fails() -> None:
    runtime = Runtime(window=200_000)
    for turn in range(4):
        runtime.turn(f"Question {turn}", "long words " * 12_000)
    runtime.ask("And now?")
    first = runtime.assemble()
    total = first.budget["request"]
    message = f"prompt is too long: {total * 2} tokens > {total} maximum"
    taken = runtime.fail(400, json.dumps({"error": {"message": message}}))
    assert (taken.next, taken.code) == ("reassemble", "over_length")
    second = runtime.assemble()
    assert second.request_id != first.request_id
    assert second.budget["request"] * 2 <= total
    assert second.budget["factor"] > first.budget["factor"]
    (learnt,) = runtime.events(EventType.WINDOW_LEARNED)
    assert learnt.payload["maximum"] == total
    assert runtime.fail(400, json.dumps({"error": {"message": message}})).next == "fail"
    failed = runtime.events(EventType.RESPONSE_FAILED)
    assert [event.payload["next"] for event in failed] == ["reassemble", "fail"]
    for row in runtime.requests:
        assert replay_request(actor=runtime.actor, request_id=row.id).verdict == "identical"


@pytest.mark.parametrize(
    ("status", "code"), [(401, "auth"), (413, "too_large"), (400, "invalid_request")]
)
def test_errors_that_no_repeat_mends_fail(runtime: Runtime, status: int, code: str) -> None:
    runtime.assemble()
    taken = runtime.fail(status, "canary-of-the-provider")
    assert (taken.next, taken.code) == ("fail", code)
    assert tables_with("canary-of-the-provider") == []


def test_what_never_fits_is_told_once_with_its_numbers() -> None:
    runtime = Runtime(window=40_000)
    runtime.ask("word " * 30_000)
    for _ in range(2):
        with pytest.raises(ServiceError) as exceeded:
            runtime.assemble()
        assert (exceeded.value.code, exceeded.value.status) == ("budget_exceeded", 409)
        assert exceeded.value.extra["budget_class"] == "user_input"
        assert exceeded.value.extra["needed"] > exceeded.value.extra["available"]
    assert len(runtime.events(EventType.BUDGET_EXCEEDED)) == 1
    assert runtime.requests == []


# --- endings ----------------------------------------------------------------------------------------------------------


def test_ending_a_run_closes_its_open_calls_with_made_up_results(runtime: Runtime) -> None:
    runtime.assemble()
    runtime.say("", Call("c1", "read"), Call("c2", "read"))
    runtime.results(("c1", "x"))
    spec = EndRun(outcome="interrupted")
    end_run(actor=runtime.actor, run_id=runtime.run, spec=spec)
    end_run(actor=runtime.actor, run_id=runtime.run, spec=spec)
    closing = runtime.events(EventType.TOOL_RESULT)[-1]
    assert (closing.trust, closing.payload["synthetic"]) == ("PLATFORM", True)
    assert [e.payload["outcome"] for e in runtime.events(EventType.RUN_ENDED)] == ["interrupted"]
    with refused("run_ended", 409):
        runtime.assemble()
    with refused("run_ended", 409):
        runtime.results(("c2", "too late"))
    runtime.ask("Again?")
    results = [entry.id for entry in seen(runtime.assemble().body) if entry.what == "result"]
    assert results == ["c1", "c2"]


def test_an_ended_session_starts_no_run_and_its_open_run_was_interrupted(runtime: Runtime) -> None:
    runtime.assemble()
    end_session(actor=runtime.actor, session_id=runtime.session)
    end_session(actor=runtime.actor, session_id=runtime.session)
    assert RunRow.objects.get(session_id=runtime.session).outcome == "interrupted"
    assert len(runtime.events(EventType.SESSION_ENDED)) == 1
    with refused("session_ended", 409):
        runtime.ask("Hello?")


def test_another_tenant_finds_nothing(runtime: Runtime) -> None:
    built = runtime.assemble()
    mine, runtime.actor = runtime.actor, new_actor()
    for act in (
        lambda: runtime.ask("x"),
        runtime.assemble,
        lambda: runtime.say("x"),
        lambda: runtime.results(("c1", "x")),
        lambda: replay_request(actor=runtime.actor, request_id=built.request_id),
        lambda: end_session(actor=runtime.actor, session_id=runtime.session),
    ):
        with refused("not_found", 404):
            act()
    runtime.actor = mine
    assert runtime.say("Still mine.").next == "finish"


# --- opaque reasoning -------------------------------------------------------------------------------------------------

OPAQUE = {
    "anthropic": '{"type":"thinking","thinking":"canary-thought","signature":"canary-signature"}',
    "openai-responses": '{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"canary-veiled"}',
}


@pytest.mark.parametrize("provider", sorted(OPAQUE))
def test_reasoning_is_in_no_row_of_any_table(provider: str) -> None:
    runtime = Runtime(provider=provider)
    runtime.ask("Think.")
    runtime.assemble()
    runtime.say("", Call("c1", "read"), reasoning=[OPAQUE[provider]])
    runtime.results(("c1", "x"))
    assert "canary-" in runtime.assemble().body.decode()
    assert tables_with("canary-") == []
    responded = runtime.events(EventType.RESPONSE_COMPLETED)[0]
    (block,) = responded.payload["opaque"]
    assert set(block) == {"before", "kind", "bytes"}
    assert block["bytes"] == len(OPAQUE[provider])
    runtime.say("Thought.")
    assert tables_with("canary-") == []
    (ended,) = runtime.events(EventType.RUN_ENDED)
    assert ended.payload["opaque_dropped"] == 1


def test_what_does_not_fit_when_the_rows_are_added_up_is_told_like_what_never_fitted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runtime = Runtime()
    runtime.ask("Hello?")

    def too_long(budget: Budget) -> None:
        raise BudgetExceeded("history", budget.request, 1, "Compact.")

    monkeypatch.setattr(build, "check_budget", too_long)
    for _ in range(2):
        with refused("budget_exceeded", 409):
            runtime.assemble()
    (exceeded,) = runtime.events(EventType.BUDGET_EXCEEDED)
    (pressure,) = runtime.events(EventType.BUDGET_PRESSURE)
    assert exceeded.payload["class"] == "history"
    assert pressure.payload["fits"] is False
    monkeypatch.undo()
    runtime.assemble()
