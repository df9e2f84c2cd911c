"""Gate: boundary strictness. A compaction that fails changes nothing, says why by a typed code, and starts no storm."""

from __future__ import annotations

from typing import Any

import pytest

from ctxengine.engine.boundary.failures import FAILURE_OF, CompactionError
from ctxengine.engine.boundary.native import checked
from ctxengine.engine.boundary.work import NativeAnswer
from ctxengine.engine.events import EventType
from ctxengine.engine.wire.base import WireApi
from ctxengine.ledger.models import SideCallRow
from ctxengine.providers.strict_local.script import Reply, ScriptedCall
from ctxengine.providers.strict_local.server import StrictServer
from ctxengine.service.specs import ServiceError
from ctxengine.service.summaries.ask import AnswerLater
from tests.cast import Runtime
from tests.service.boundary.talking import session, strict_provider, unproven
from tests.work_off import work_off

pytestmark = [pytest.mark.gate, pytest.mark.django_db]

LONG = "The note goes on and on about everything that was ever said. " * 560


def history(runtime: Runtime, turns: int = 9, words: int = 60) -> None:
    """Turns that were never assembled: they weigh, and nothing was compacted while they came."""
    for number in range(turns):
        runtime.ask(f"Remember item {number}: " + "it is as long as it is " * words)
        runtime.assemble()
        runtime.say(f"Item {number} is remembered, with all of its words. " * words)


def grown(provider: str, **policy: Any) -> Runtime:
    """A session just above its trigger, an open run asking for the next request."""
    runtime = session(provider, window=9_000, **policy)
    number = 0
    while True:
        runtime.ask(f"Remember item {number}: " + "it is as long as it is " * 40)
        try:
            runtime.assemble()
        except AnswerLater:
            return runtime
        runtime.say(f"Item {number} is remembered, with all of its words. " * 30)
        number += 1


def refused(runtime: Runtime) -> ServiceError:
    """The refusal of the next request, its compaction tried by a worker."""
    work_off(runtime.actor.tenant_id, kind="compaction.boundary")
    with pytest.raises(ServiceError) as caught:
        runtime.assemble()
    assert not isinstance(caught.value, AnswerLater)
    return caught.value


def told(runtime: Runtime) -> list[tuple[int, str]]:
    """The canonical messages: every content event with what it commits to."""
    kinds = (EventType.USER_MESSAGE, EventType.RESPONSE_COMPLETED, EventType.TOOL_RESULT)
    return [(event.sequence, event.hash) for event in runtime.events(*kinds)]


SCRIPTED: list[tuple[str, str, Reply]] = [
    ("anthropic", "compaction_unavailable", Reply(status=529)),
    ("anthropic", "native_refused", Reply(refuse=True)),
    ("anthropic", "transient", Reply(status=503)),
    ("anthropic", "rate_limited", Reply(status=429, retry_after=40)),
    ("anthropic", "auth", Reply(status=401)),
    ("openai", "summary_output_limit", Reply(text=LONG, truncate_after_tokens=20)),
    ("openai", "summary_abnormal_stop", Reply(refuse=True)),
    ("openai", "not_reducing", Reply(text=LONG)),
    ("openai", "rate_limited", Reply(status=429)),
    ("openai", "transient", Reply(status=500)),
]


@pytest.mark.parametrize(
    ("provider", "code", "reply"), SCRIPTED, ids=[f"{p}-{c}" for p, c, _ in SCRIPTED]
)
def test_a_failure_is_typed_changes_nothing_and_is_not_repeated(
    provider: str, code: str, reply: Reply, settings: Any
) -> None:
    with strict_provider(settings) as strict:
        runtime = grown(provider)
        before, requests = told(runtime), [row.request_sha256 for row in runtime.requests]
        strict.provider.script.add([reply])
        problem = refused(runtime)
        assert (problem.code, problem.status) == ("compaction_failed", 409)
        assert problem.extra["reason"] == code
        assert problem.extra["retryable"] is FAILURE_OF[code].retryable
        assert problem.extra["remedy"] == FAILURE_OF[code].remedy
        assert "strict" not in problem.detail
        assert nothing_changed(runtime, before, requests)
        asked = SideCallRow.objects.count()
        with pytest.raises(ServiceError) as again:
            runtime.assemble()
        assert again.value.extra["reason"] == code
        assert work_off(runtime.actor.tenant_id, kind="compaction.boundary") == []
        assert SideCallRow.objects.count() == asked
    ended = runtime.events(EventType.BOUNDARY_FINISHED)
    assert [(event.payload["outcome"], event.payload["code"]) for event in ended] == [
        ("failed", code)
    ]


def nothing_changed(runtime: Runtime, before: list[Any], requests: list[str]) -> bool:
    return (
        told(runtime) == before
        and not runtime.events(EventType.COMPACTED)
        and [row.request_sha256 for row in runtime.requests] == requests
        and not unproven(runtime)
    )


def test_an_empty_note_and_a_note_that_is_a_call_are_no_notes(settings: Any) -> None:
    for reply, code in (
        (Reply(text="", plain=True), "summary_empty"),
        (Reply(calls=(ScriptedCall("read"),)), "summary_tool_call"),
    ):
        with strict_provider(settings) as strict:
            runtime = grown("openai")
            strict.provider.script.add([reply])
            assert refused(runtime).extra["reason"] == code
            assert not runtime.events(EventType.COMPACTED)


def test_a_provider_that_cannot_be_asked_stops_the_request_before_anything_starts(
    settings: Any,
) -> None:
    settings.CTX_PROVIDER_KEYS = {}
    runtime = session("anthropic", window=9_000)
    with pytest.raises(ServiceError) as caught:
        history(runtime, turns=30)
    assert caught.value.extra["reason"] == "missing_configuration"
    assert not runtime.events(EventType.BOUNDARY_STARTED)


def test_a_count_that_cannot_be_had_admits_no_window(settings: Any) -> None:
    with strict_provider(settings):
        runtime = grown("anthropic")
    # The provider is gone: an estimate would be at hand, and must not be used.
    problem = refused(runtime)
    assert problem.extra["reason"] == "count_unavailable"
    assert [row.purpose for row in SideCallRow.objects.filter(purpose="compaction")] == []


def test_a_window_of_another_provider_instance_is_refused_by_its_own_code(settings: Any) -> None:
    with strict_provider(settings):
        runtime = grown("anthropic")
        work_off(runtime.actor.tenant_id, kind="compaction.boundary")
        assert len(runtime.events(EventType.COMPACTED)) == 1
        runtime.assemble()
        runtime.say("done")
    with strict_provider(settings, secret=b"another") as strict:
        assert isinstance(strict, StrictServer)
        number = 0
        with pytest.raises(ServiceError) as caught:
            while True:
                runtime.ask(f"More of {number}: " + "it is as long as it is " * 40)
                try:
                    runtime.assemble()
                except AnswerLater:
                    work_off(runtime.actor.tenant_id, kind="compaction.boundary")
                    runtime.assemble()
                runtime.say("Remembered, with all of its words. " * 30)
                number += 1
    assert caught.value.extra["reason"] == "compaction_signature_invalid"
    assert len(runtime.events(EventType.COMPACTED)) == 1


def test_a_history_larger_than_the_provider_compacts_stops_and_starts_no_note(
    settings: Any,
) -> None:
    with strict_provider(settings):
        runtime = session("anthropic", window=9_000)
        unassembled(runtime, turns=30)
        runtime.ask("And now?")
        with pytest.raises(AnswerLater):
            runtime.assemble()
        assert refused(runtime).extra["reason"] == "native_input_oversized"
    assert not runtime.events(EventType.COMPACTED, EventType.BOUNDARY_FRAGMENT)
    assert not SideCallRow.objects.filter(purpose__in=["note", "summary", "compaction"]).exists()


def unassembled(runtime: Runtime, turns: int) -> None:
    """Turns that ended without a request, so that nothing was compacted while the history grew."""
    from ctxengine.service.end_run import end_run
    from ctxengine.service.specs import EndRun

    for number in range(turns):
        runtime.ask(f"Remember item {number}: " + "it is as long as it is " * 80)
        end_run(actor=runtime.actor, run_id=runtime.run, spec=EndRun(outcome="completed"))


def test_a_request_that_does_not_fit_fails_whole(settings: Any) -> None:
    with strict_provider(settings):
        runtime = session("anthropic", window=9_000)
        runtime.ask("One huge message. " + "it is as long as it is " * 3_000)
        with pytest.raises(ServiceError) as caught:
            runtime.assemble()
    assert (caught.value.code, caught.value.status) == ("context_length_exceeded", 409)
    assert caught.value.extra["needed"] > caught.value.extra["available"]


REPORTED: list[tuple[int, str, str, str]] = [
    (400, "compaction_block_misplaced", "fail", "compaction_block_misplaced"),
    (400, "compaction_content_mismatch", "fail", "compaction_content_mismatch"),
    (400, "compaction_tool_changes_mismatch", "fail", "compaction_tool_changes_mismatch"),
    (400, "compaction_too_many_tool_references", "fail", "compaction_too_many_tool_references"),
    (529, "compaction_unavailable", "reassemble", "compaction_unavailable"),
    (400, "prompt is too long: 300000 tokens > 200000 maximum", "fail", "context_length_exceeded"),
]


@pytest.mark.parametrize(("status", "words", "following", "code"), REPORTED)
def test_what_a_runtime_reports_keeps_its_code(
    status: int, words: str, following: str, code: str
) -> None:
    runtime = session("anthropic", window=9_000)
    runtime.ask("Hello.")
    sent = runtime.assemble()
    answer = runtime.fail(status, f'{{"error":{{"code":"{words}","message":"{words}"}}}}')
    assert (answer.next, answer.code) == (following, code)
    assert runtime.assemble().request_sha256 == sent.request_sha256


BAD_ANSWERS: list[tuple[WireApi, tuple[str, ...], str]] = [
    (WireApi.ANTHROPIC, ('{"type":"text","text":"a"}',), "compaction"),
    (WireApi.ANTHROPIC, ('{"type":"compaction","content":"a"}',), "compaction"),
    (WireApi.ANTHROPIC, ('{"type":"compaction","content":"","signature":"s"}',), "compaction"),
    (WireApi.ANTHROPIC, ('{"type":"compaction","content":"a","signature":"s"}',), "end_turn"),
    (WireApi.ANTHROPIC, ('{"type":"compaction","content":"a","signature":"s"}',) * 2, "compaction"),
    (WireApi.OPENAI_RESPONSES, ('{"type":"message","role":"user"}',), "response.compaction"),
    (WireApi.OPENAI_RESPONSES, ('{"type":"compaction"}',), "response.compaction"),
    (WireApi.OPENAI_RESPONSES, ('{"type":"compaction","encrypted_content":"e"}',), "response"),
    (WireApi.OPENAI_RESPONSES, ("no json",), "response.compaction"),
]


@pytest.mark.parametrize(("api", "items", "stop"), BAD_ANSWERS)
def test_what_is_no_window_of_its_contract_is_not_taken(
    api: WireApi, items: tuple[str, ...], stop: str
) -> None:
    with pytest.raises(CompactionError) as caught:
        checked(api, NativeAnswer(items, stop))
    assert caught.value.reason == "invalid_native_output"


def test_every_code_has_a_remedy_and_says_what_happened() -> None:
    for kind in FAILURE_OF.values():
        assert kind.says.endswith(".") and kind.remedy.endswith("."), kind
