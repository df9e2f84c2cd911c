"""The boundary engine without native support: a whole history until the trigger, then a portable note."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ctxengine.engine.events import EventType
from ctxengine.providers.adapters.secret import Secret
from ctxengine.providers.strict_local.provider import StrictProvider
from ctxengine.providers.strict_local.script import Reply
from ctxengine.providers.strict_local.server import StrictServer
from ctxengine.service.specs import ServiceError
from ctxengine.service.summaries.ask import AnswerLater
from tests.cast import Runtime
from tests.work_off import work_off

pytestmark = pytest.mark.django_db


@pytest.fixture
def strict(settings: Any) -> Iterator[StrictServer]:
    with StrictServer(StrictProvider()) as running:
        settings.CTX_PROVIDER_URLS = {"anthropic": running.url, "openai": running.openai_url}
        settings.CTX_PROVIDER_KEYS = {"anthropic": Secret("k"), "openai": Secret("k")}
        yield running


def talkative(turns: int, **fields: Any) -> Runtime:
    given = {"provider": "openai", "window": 12_000, "max_output": 1_000} | fields
    runtime = Runtime(extra={"engine": "boundary"}, **given)
    for number in range(turns):
        runtime.ask(f"Question {number}: " + "words of the user about the plan " * 40)
        try:
            runtime.assemble()
        except AnswerLater:
            work_off(runtime.actor.tenant_id)
            runtime.assemble()
        runtime.say(f"Answer {number}: " + "what was decided and why " * 40)
    return runtime


def test_a_history_below_the_trigger_stands_whole() -> None:
    runtime = Runtime(provider="openai", extra={"engine": "boundary"})
    runtime.turn("one", "two")
    runtime.ask("three")
    built = runtime.assemble()
    assert b'"one"' in built.body and b'"two"' in built.body
    assert not runtime.events(EventType.COMPACTED)


def test_at_the_trigger_a_note_takes_the_place_of_settled_turns(strict: StrictServer) -> None:
    strict.provider.script.add(
        [Reply(text="Objective: the plan. Remaining work: all.") for _ in range(9)]
    )
    runtime = talkative(30)
    made = runtime.events(EventType.COMPACTED)
    assert made and {event.payload["kind"] for event in made} == {"note"}
    newest = runtime.requests[-1]
    assert any(span["reason"] == "in_note" for span in newest.manifest["spans"])
    ended = runtime.events(EventType.BOUNDARY_FINISHED)
    assert {event.payload["outcome"] for event in ended} == {"completed"}


def test_a_note_that_fails_stops_the_request_and_changes_nothing(strict: StrictServer) -> None:
    strict.provider.script.add([Reply(text="")])
    with pytest.raises(ServiceError) as refused:
        talkative(30)
    assert refused.value.code == "compaction_failed"
