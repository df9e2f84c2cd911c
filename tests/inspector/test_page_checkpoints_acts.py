"""Acts on checkpoints are offered where they can succeed, say what they take, and failures stand where they are looked for."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ctxengine.engine.events import EventType
from ctxengine.providers.strict_local.script import Reply
from ctxengine.service.compact import compact
from ctxengine.service.end_run import end_run
from ctxengine.service.specs import Actor, Compact, EndRun, ServiceError, UndoCompaction
from ctxengine.service.summaries.ask import AnswerLater
from ctxengine.service.undo_compaction import undo_compaction
from tests.cast import Runtime
from tests.inspector.conftest import Cast
from tests.inspector.test_page_checkpoints import until_due
from tests.service.boundary.talking import session, strict_provider
from tests.work_off import work_off

KIND = "compaction.boundary"
NOTE = "Objective: sort. Corrections: none. Decisions: none. Evidence: none. Remaining work: all."
UNDO = re.compile(r"/checkpoints/(\d+)/undo/")


def compacted(cast: Cast, settings: Any, *notes: str) -> Runtime:
    """A session with a checkpoint for each note, each resting on the one before."""
    with strict_provider(settings) as strict:
        runtime = until_due(cast, "openai")
        actor = runtime.actor
        for place, note in enumerate(notes):
            if place:
                for number in range(5):
                    end_run(actor=actor, run_id=runtime.run, spec=EndRun(outcome="completed"))
                    runtime.ask(f"More {number}: " + "it is as long as it is " * 60)
                compact(actor=actor, session_id=runtime.session, spec=Compact())
            strict.provider.script.add([Reply(text=note, plain=True)])
            work_off(actor.tenant_id, kind=KIND)
    return runtime


def test_undo_is_offered_where_it_succeeds_and_says_why_not_elsewhere(
    cast: Cast, settings: Any
) -> None:
    runtime = compacted(cast, settings, NOTE, NOTE)
    first, second = (event.sequence for event in runtime.events(EventType.COMPACTED))
    page = cast.page(f"sessions/{runtime.session}/checkpoints/")
    assert UNDO.findall(page) == [str(second)]
    assert f"checkpoint {second}</a> first" in page
    lines = cast.data(f"sessions/{runtime.session}/checkpoints.json")
    assert {line["event"]: line["undo_first"] for line in lines} == {first: second, second: None}
    barred = cast.page(f"sessions/{runtime.session}/checkpoints/{first}/undo/")
    assert f"Checkpoint {second} rests on this one" in barred and "<textarea" not in barred
    spec = UndoCompaction(note="Wrong.")
    # Whatever the page offers, REST does; whatever it does not offer, REST refuses.
    with pytest.raises(ServiceError) as refused:
        undo_compaction(actor=runtime.actor, session_id=runtime.session, event=first, spec=spec)
    assert refused.value.code == "compaction_covered"
    for event in (second, first):
        offered = UNDO.findall(cast.page(f"sessions/{runtime.session}/checkpoints/"))
        assert offered == [str(event)]
        undo_compaction(actor=runtime.actor, session_id=runtime.session, event=event, spec=spec)
    assert not UNDO.findall(cast.page(f"sessions/{runtime.session}/checkpoints/"))


@pytest.mark.parametrize(
    ("provider", "words", "called"),
    [
        ("anthropic", "makes a window of its own", "anthropic/claude-sonnet-4-6"),
        ("openai", "writes a portable note", "openai/gpt-5-nano"),
    ],
)
def test_compacting_by_hand_says_who_is_called_and_what_is_not_known(
    cast: Cast, settings: Any, provider: str, words: str, called: str
) -> None:
    with strict_provider(settings):
        runtime = until_due(cast, provider)
        address = f"sessions/{runtime.session}/compactions/new/"
        page = cast.page(address)
        for text in (
            words,
            called,
            "not known before the provider answers",
            "at most ≈ $",
            "A job does it",
        ):
            assert text in page, text
        for text in ("→ 0", "merge the summaries", "only where it pays", "low water"):
            assert text not in page, text
        done = cast.operator.post(cast.url(address), {"reason": "It grows."})
        assert done.status_code in {302, 303}
        assert "/checkpoints/?done=queued" in done["Location"]
        assert "A job asks the provider" in cast.operator.get(done["Location"]).content.decode()
    answer = compact(actor=runtime.actor, session_id=runtime.session, spec=Compact(preview=True))
    assert answer.as_json()["tokens_after"] is None and answer.tokens_before > 0


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_without_a_key_the_failure_is_typed_seen_and_over_once_it_is_set(
    cast: Cast, settings: Any, provider: str
) -> None:
    settings.CTX_PROVIDER_KEYS, settings.CTX_PROVIDER_URLS = {}, {}
    runtime = session(provider, window=9_000, actor=Actor(cast.tenant.id, "system"))
    refused = None
    for number in range(60):
        runtime.ask(f"Item {number}: " + "it is as long as it is " * 40)
        try:
            runtime.assemble()
        except ServiceError as error:
            refused = error
            break
        runtime.say("Remembered, with all of its words. " * 30)
    assert refused is not None and refused.code == "compaction_failed"
    assert refused.extra["reason"] == "missing_configuration" and refused.extra["remedy"]
    with pytest.raises(ServiceError):
        runtime.assemble()
    # Told every time, written once: another try of the same history is no other failure.
    (ended,) = runtime.events(EventType.BOUNDARY_FINISHED)
    assert (ended.payload["outcome"], ended.payload["code"]) == ("failed", "missing_configuration")
    assert not runtime.events(EventType.COMPACTED)
    page = cast.page(f"sessions/{runtime.session}/checkpoints/")
    for text in (
        "The newest compaction failed",
        "Set its key",
        "✕ failed",
        "missing_configuration",
    ):
        assert text in page, text
    preview = cast.page(f"sessions/{runtime.session}/compactions/new/")
    assert "Set its key" in preview and "<textarea" not in preview
    with strict_provider(settings) as strict:
        with pytest.raises(AnswerLater):
            runtime.assemble()
        strict.provider.script.add([Reply(text=NOTE, plain=True)])
        work_off(runtime.actor.tenant_id, kind=KIND)
        runtime.assemble()
    assert "The newest compaction failed" not in cast.page(
        f"sessions/{runtime.session}/checkpoints/"
    )


def test_a_note_names_its_writer_and_what_it_lacks(cast: Cast, settings: Any) -> None:
    runtime = compacted(cast, settings, "Objective: sort the post.\n**Evidence**: three letters.")
    (made,) = runtime.events(EventType.COMPACTED)
    assert made.payload["gaps"] == ["Corrections", "Decisions", "Remaining work"]
    page = cast.page(f"sessions/{runtime.session}/checkpoints/")
    for text in (
        "openai/gpt-5-nano", "has no part for: corrections, decisions, remaining work", "shown again",
        "by our count",
    ):  # fmt: skip
        assert text in page, text
    with strict_provider(settings):
        body = runtime.assemble().body.decode()
    assert "It has no part for: corrections, decisions, remaining work" in body
