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
from ctxengine.providers.strict_local.server import StrictServer
from ctxengine.service.specs import ServiceError
from ctxengine.service.summaries.ask import AnswerLater
from tests.cast import Runtime
from tests.service.boundary.talking import session, strict_provider
from tests.work_off import work_off

pytestmark = [pytest.mark.gate, pytest.mark.django_db]

LONG = "The note goes on and on about everything that was ever said. " * 560


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


def test_a_request_that_does_not_fit_fails_whole(settings: Any) -> None:
    with strict_provider(settings):
        runtime = session("anthropic", window=9_000)
        runtime.ask("One huge message. " + "it is as long as it is " * 3_000)
        with pytest.raises(ServiceError) as caught:
            runtime.assemble()
    assert (caught.value.code, caught.value.status) == ("context_length_exceeded", 409)
    assert caught.value.extra["needed"] > caught.value.extra["available"]


REPORTED: list[tuple[int, str, str, str]] = [
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
