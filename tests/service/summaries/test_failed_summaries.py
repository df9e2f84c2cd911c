"""Summaries that a model does not write, or not well: nothing is changed, it is told, and the cut is made without one."""

from __future__ import annotations

from typing import Any

import pytest

from ctxengine.engine.compaction.soundness import Refusal
from ctxengine.engine.events import EventType
from ctxengine.ledger.models import SideCallRow
from ctxengine.providers.strict_local.script import Reply, ScriptedCall
from ctxengine.service.jobs.cancel import cancel_job
from ctxengine.service.jobs.context import JobContext
from ctxengine.service.summaries.ask import AnswerLater
from tests.cast import AT
from tests.shrinking import body, row_nine
from tests.summing import TOLD, Summing, asked, due_now, model_policy, provider_of, told

pytestmark = pytest.mark.django_db

LONG = "It went on and on about the sheets of each depot and their limits. " * 100


UNSOUND = [
    (told(truncate_after_tokens=5), Refusal.ABNORMAL_STOP),
    (told("  "), Refusal.EMPTY),
    (Reply(text=TOLD, plain=True, calls=(ScriptedCall("read"),)), Refusal.HOLDS_TOOL_CALL),
    (Reply(refuse=True), Refusal.ABNORMAL_STOP),
]


@pytest.mark.parametrize(("reply", "refusal"), UNSOUND)
def test_an_unsound_summary_changes_nothing_and_the_cut_is_made_without_a_model(
    reply: Reply, refusal: Refusal, settings: Any
) -> None:
    with provider_of(settings, reply) as provider:
        runtime = Summing()
        job = runtime.press()
        before = runtime.row.content_sequence
        assert runtime.work() == [("compaction.summary", "failed")]
        assert not runtime.events(EventType.COMPACTED, EventType.YIELD_APPLIED)
        (refused,) = runtime.events(EventType.COMPACTION_REFUSED)
        assert refused.payload["reason"] == refusal.value
        assert refused.payload["asked"]["job"] == str(job.id)
        assert refused.payload["asked"]["calls"] == 1
        assert runtime.row.content_sequence == before
        built = runtime.assemble()
        assert len(asked(provider)) == 1
    assert 'source="summary:deterministic"' in row_nine(body(built))
    assert len(runtime.events(EventType.COMPACTION_REFUSED)) == 1
    runtime.all_proven()


def test_a_summary_that_stays_too_long_when_asked_again_is_refused(settings: Any) -> None:
    with provider_of(settings, told(LONG), told(LONG)) as provider:
        runtime = Summing()
        runtime.press()
        assert runtime.work() == [("compaction.summary", "failed")]
        assert len(asked(provider)) == 2
    (refused,) = runtime.events(EventType.COMPACTION_REFUSED)
    assert refused.payload["reason"] == "summary_over_budget"


def test_a_summary_that_is_too_long_is_told_once_more_in_short(settings: Any) -> None:
    with provider_of(settings, told(LONG), told()):
        runtime = Summing()
        built = runtime.summed_up()
    assert TOLD in row_nine(body(built))


@pytest.mark.parametrize(
    "trouble", [Reply(status=429, retry_after=2), Reply(status=529), Reply(status=500)]
)
def test_a_failure_that_passes_is_tried_again_and_costs_no_summary(
    trouble: Reply, settings: Any
) -> None:
    with provider_of(settings, trouble, told()):
        runtime = Summing()
        job = runtime.press()
        assert runtime.work() == [("compaction.summary", "again")]
        assert not runtime.events(EventType.COMPACTION_REFUSED)
        with pytest.raises(AnswerLater):
            runtime.assemble()
        due_now(job)
        assert runtime.work() == [("compaction.summary", "done")]
        assert TOLD in row_nine(body(runtime.assemble()))
    (made,) = runtime.events(EventType.COMPACTED)
    assert made.payload["writer"]["calls"] == 2
    runtime.all_proven()


def test_a_failure_that_stays_is_told_and_the_cut_is_made_without_a_model(settings: Any) -> None:
    with provider_of(settings, *[Reply(status=529)] * 4):
        runtime = Summing()
        job = runtime.press()
        for attempt in range(4):
            due_now(job)
            assert runtime.work() == [("compaction.summary", "again" if attempt < 3 else "failed")]
        built = runtime.assemble()
    assert 'source="summary:deterministic"' in row_nine(body(built))
    (refused,) = runtime.events(EventType.COMPACTION_REFUSED)
    assert refused.payload["reason"] == "summariser_failed"
    assert refused.payload["asked"]["code"] == "transient"
    runtime.all_proven()


def test_an_input_that_the_provider_finds_too_long_is_split_by_its_own_numbers(
    settings: Any,
) -> None:
    windows = {"claude-haiku-5-5": 2_000}
    answers = [told(f"Part {number}.") for number in range(12)]
    with provider_of(settings, windows=windows, factor=1.3) as provider:
        runtime = Summing(window=14_000, policy=model_policy(summary_tokens=1_500))
        runtime.press()
        provider.script.add(answers)
        assert runtime.work() == [("compaction.summary", "done")], runtime.job().error
        sizes = [len(prompt) for prompt in asked(provider)]
        built = runtime.assemble()
    (made,) = runtime.events(EventType.COMPACTED)
    fragments = made.payload["writer"]["fragments"]
    assert fragments > 1
    assert sizes[0] > max(sizes[-fragments:])
    refused = SideCallRow.objects.filter(job_id=runtime.job().id, outcome="over_length")
    assert refused.exists()
    summary = row_nine(body(built))
    assert "Part 0.\n\nPart 1." in summary
    runtime.all_proven()


def test_a_job_that_is_cancelled_between_two_parts_changes_nothing(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    windows = {"claude-haiku-5-5": 2_000}
    with provider_of(settings, windows=windows, factor=1.3) as provider:
        runtime = Summing(window=14_000)
        job = runtime.press()
        provider.script.add([told(f"Part {number}.") for number in range(12)])
        report = JobContext.progress

        def reporting(context: JobContext, phase: str, percent: int) -> None:
            if "part 2" in phase:
                cancel_job(actor=runtime.actor, job_id=job.id)
            report(context, phase, percent)

        monkeypatch.setattr(JobContext, "progress", reporting)
        head = runtime.row.last_sequence
        assert runtime.work() == [("compaction.summary", "cancelled")]
        assert runtime.row.last_sequence == head
        built = runtime.assemble()
    assert 'source="summary:deterministic"' in row_nine(body(built))
    (refused,) = runtime.events(EventType.COMPACTION_REFUSED)
    assert refused.payload["asked"]["code"] == "cancelled"
    runtime.all_proven()


def test_without_a_key_nobody_waits_and_the_event_says_why(settings: Any) -> None:
    settings.CTX_PROVIDER_KEYS = {}
    runtime = Summing()
    while not runtime.events(EventType.COMPACTED):
        runtime.talk(1)
        assert runtime.row.runs < 40
    (refused,) = runtime.events(EventType.COMPACTION_REFUSED)
    assert refused.payload["reason"] == "no_summariser"
    assert refused.payload["asked"]["code"] == "no_key"
    (made,) = runtime.events(EventType.COMPACTED)
    assert made.payload["kind"] == "deterministic"
    runtime.all_proven()


def test_a_failed_summary_by_hand_leaves_the_next_request_byte_for_byte_as_it_was(
    settings: Any,
) -> None:
    with provider_of(settings, told(" ")):
        runtime = Summing(window=60_000)
        runtime.talk(3)
        through = runtime.row.content_sequence
        runtime.ask("And now?", now=AT)
        before = runtime.assemble()
        done = runtime.shrink(through=through, summariser="model")
        assert done.outcome == "queued"
        assert runtime.work() == [("compaction.summary", "failed")]
        after = runtime.assemble()
    assert after.body == before.body
    assert after.request_id == before.request_id
    runtime.all_proven()


def test_a_summary_that_cannot_say_so_in_its_job_is_not_installed(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with provider_of(settings, told()):
        runtime = Summing()
        job = runtime.press()
        conclude = JobContext.conclude

        def late(context: JobContext, result: dict[str, Any]) -> None:
            cancel_job(actor=runtime.actor, job_id=job.id)
            conclude(context, result)

        monkeypatch.setattr(JobContext, "conclude", late)
        head = runtime.row.last_sequence
        assert runtime.work() == [("compaction.summary", "cancelled")]
        assert runtime.row.last_sequence == head
        runtime.assemble()
    assert not [e for e in runtime.events(EventType.COMPACTED) if e.payload.get("writer")]
    runtime.all_proven()
