"""What happens around a compaction: cancelled, superseded, undone, erased, retried after its rest, asked for by hand."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from ctxengine.engine.events import EventType
from ctxengine.ledger.models import Event, Job
from ctxengine.providers.strict_local.script import Reply
from ctxengine.service.boundary import ask
from ctxengine.service.clock import utc_now
from ctxengine.service.compact import compact
from ctxengine.service.erase import erase_person
from ctxengine.service.jobs.cancel import cancel_job
from ctxengine.service.pin import set_presentation
from ctxengine.service.specs import (
    Compact,
    Present,
    PrincipalSpec,
    ServiceError,
    UndoCompaction,
)
from ctxengine.service.summaries.ask import AnswerLater
from ctxengine.service.undo_compaction import undo_compaction
from tests.cast import Runtime
from tests.service.boundary.talking import assembled, session, strict_provider, unproven
from tests.work_off import work_off

pytestmark = pytest.mark.django_db


def grown(provider: str, **policy: Any) -> Runtime:
    """A session just above its trigger."""
    runtime = session(provider, window=9_000, **policy)
    for number in range(99):
        runtime.ask(f"Item {number}: " + "it is as long as it is " * 40)
        try:
            runtime.assemble()
        except AnswerLater:
            return runtime
        runtime.say("Remembered, with all of its words. " * 30)
    raise AssertionError("never due")


def outcomes(runtime: Runtime) -> list[tuple[str, str | None]]:
    ended = runtime.events(EventType.BOUNDARY_FINISHED)
    return [(event.payload["outcome"], event.payload["code"]) for event in ended]


def test_a_cancelled_compaction_installs_nothing(settings: Any) -> None:
    with strict_provider(settings):
        runtime = grown("anthropic")
        job = Job.objects.get(kind="compaction.boundary")
        cancel_job(actor=runtime.actor, job_id=job.id)
        work_off(runtime.actor.tenant_id, kind="compaction.boundary")
        assert not runtime.events(EventType.COMPACTED)
        with pytest.raises(AnswerLater):
            runtime.assemble()


def test_an_act_on_covered_history_rejects_what_was_asked_before_it(settings: Any) -> None:
    with strict_provider(settings):
        runtime = grown("anthropic")
        first = runtime.events(EventType.RESPONSE_COMPLETED)[0].sequence
        spec = Present(target=f"{first}.0", form="excluded", scope="item")
        set_presentation(actor=runtime.actor, session_id=runtime.session, spec=spec)
        work_off(runtime.actor.tenant_id, kind="compaction.boundary")
        assert outcomes(runtime) == [("superseded", "superseded")]
        assert not runtime.events(EventType.COMPACTED)


def test_a_later_act_on_covered_history_lets_the_checkpoint_go(settings: Any) -> None:
    with strict_provider(settings):
        runtime = grown("anthropic")
        work_off(runtime.actor.tenant_id, kind="compaction.boundary")
        runtime.assemble()
        first = runtime.events(EventType.RESPONSE_COMPLETED)[0].sequence
        spec = Present(target=f"{first}.0", form="excluded", scope="item")
        set_presentation(actor=runtime.actor, session_id=runtime.session, spec=spec)
        runtime.assemble()
        assert [row.inputs["projection"] is None for row in runtime.requests[-2:]] == [False, True]
    assert not unproven(runtime)


def test_undoing_brings_the_history_back_and_replays_stay_identical(settings: Any) -> None:
    with strict_provider(settings):
        runtime = grown("anthropic", summarize_trigger=0.7)
        work_off(runtime.actor.tenant_id, kind="compaction.boundary")
        runtime.assemble()
        (made,) = runtime.events(EventType.COMPACTED)
        undo_compaction(
            actor=runtime.actor,
            session_id=runtime.session,
            event=made.sequence,
            spec=UndoCompaction(note="lost the thread"),
        )
        with pytest.raises(AnswerLater):
            runtime.assemble()
    assert not unproven(runtime)


def test_a_retryable_failure_is_tried_again_after_its_rest_and_no_more_than_thrice(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with strict_provider(settings) as strict:
        runtime = grown("anthropic")
        for attempt in range(3):
            strict.provider.script.add([Reply(status=529)])
            work_off(runtime.actor.tenant_id, kind="compaction.boundary")
            with pytest.raises(ServiceError) as caught:
                runtime.assemble()
            if attempt == 2:
                break
            assert caught.value.extra["retry_after_s"] > 0
            later = utc_now() + timedelta(hours=attempt + 1)
            monkeypatch.setattr(ask, "utc_now", lambda later=later: later)
            with pytest.raises(AnswerLater):
                runtime.assemble()
            monkeypatch.undo()
        assert caught.value.extra["reason"] == "attempts_exhausted"
        # An operator who has mended the cause may ask all the same.
        done = compact(actor=runtime.actor, session_id=runtime.session, spec=Compact())
        assert done.outcome == "queued"
        work_off(runtime.actor.tenant_id, kind="compaction.boundary")
        assert len(runtime.events(EventType.COMPACTED)) == 1
        runtime.assemble()


def test_nothing_opaque_is_stored_in_the_clear(settings: Any) -> None:
    with strict_provider(settings):
        runtime = grown("anthropic")
        work_off(runtime.actor.tenant_id, kind="compaction.boundary")
    made = Event.objects.get(session_id=runtime.session, type="context.compacted")
    text = runtime.log.body(str(made.body_id)) or ""
    assert "signature" not in text and "compaction" not in text


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_an_erased_person_takes_window_and_note_along(provider: str, settings: Any) -> None:
    with strict_provider(settings) as strict:
        runtime = grown(provider, principal=PrincipalSpec(id="ada"))
        strict.provider.script.add([Reply(text="Objective: items. Remaining work: all.")])
        work_off(runtime.actor.tenant_id, kind="compaction.boundary")
        runtime.assemble()
        runtime.say("Done.")
        erase_person(actor=runtime.actor, principal="ada", note="asked to")
        made = Event.objects.get(session_id=runtime.session, type="context.compacted")
        assert runtime.log.body(str(made.body_id)) is None
        runtime.ask("And now?")
        assembled(runtime)
        assert runtime.requests[-1].inputs["projection"] != made.sequence
    assert not unproven(runtime)
