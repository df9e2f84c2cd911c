"""Summaries that a model writes: asked for under pressure, made by a job, installed by compare-and-set, proven ever after."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ctxengine.engine.events import EventType
from ctxengine.ledger.models import Job, JobState, SideCallRow
from ctxengine.service.compactions import compactions_of
from ctxengine.service.jobs.context import JobContext
from ctxengine.service.jobs.sweep import sweep
from ctxengine.service.side_calls import side_call
from ctxengine.service.specs import Content, TakeInput
from ctxengine.service.summaries import asking as summary_asking
from ctxengine.service.summaries import job as summary_job
from ctxengine.service.summaries.ask import AnswerLater
from ctxengine.service.take_input import take_input
from tests.shrinking import body, row_nine
from tests.summing import TOLD, Summing, asked, model_policy, provider_of, told

pytestmark = pytest.mark.django_db


def texts(runtime: Summing) -> list[str]:
    """Summaries of the session, newest first."""
    found = compactions_of(actor=runtime.actor, session_id=runtime.session).as_json()
    return [line["summary"] for line in found["items"]]


def meanwhile(monkeypatch: pytest.MonkeyPatch, act: Callable[[], Any]) -> None:
    """Let something happen while the model is being asked, once."""
    left = [act]

    def asking(**call: Any) -> Any:
        answer = side_call(**call)
        while left:
            left.pop()()
        return answer

    monkeypatch.setattr(f"{summary_asking.__name__}.side_call", asking)


def test_under_pressure_a_job_sums_up_first_and_the_next_assemble_projects(settings: Any) -> None:
    with provider_of(settings, told()) as provider:
        runtime = Summing()
        job = runtime.press()
        before = runtime.row.last_sequence
        with pytest.raises(AnswerLater) as again:
            runtime.assemble()
        assert again.value.job.id == job.id
        assert runtime.row.last_sequence == before
        assert runtime.work() == [("compaction.summary", "done")]
        built = runtime.assemble()
        assert len(asked(provider)) == 1
    summary = row_nine(body(built))
    assert f'source="summary:model" id="1-{job.arguments["below"] - 1}" trust="MODEL"' in summary
    assert TOLD in summary
    assert "[elided] tool.result" in summary
    assert summary.endswith("[end of summary]")
    (made,) = runtime.events(EventType.COMPACTED)
    assert made.payload["compactor"] == "model-summary@1 anthropic/claude-haiku-5-5 summary@1"
    writer = made.payload["writer"]
    assert (writer["job"], writer["fragments"], writer["calls"]) == (str(job.id), 1, 1)
    assert writer["session_window"] == 9_000 < writer["window"]
    (call,) = SideCallRow.objects.filter(job_id=job.id)
    assert (call.purpose, call.outcome, call.prompt_version) == (
        "summary",
        "completed",
        "summary@1",
    )
    assert writer["cost_microdollars"] == call.cost_microdollars
    assert made.payload["came_with"]
    assert made.payload["tokens_after"] <= job.arguments["body_tokens"] // 8
    runtime.all_proven()


@pytest.mark.parametrize("provider", ["openai", "openai-responses"])
def test_each_provider_sums_up_its_own_sessions(provider: str, settings: Any) -> None:
    with provider_of(settings, told()):
        runtime = Summing(provider=provider)
        built = runtime.summed_up()
    assert TOLD in built.body.decode()
    (made,) = runtime.events(EventType.COMPACTED)
    assert made.payload["writer"]["model"].startswith(f"{provider}/gpt-")
    assert made.payload["writer"]["cost_microdollars"] > 0
    runtime.all_proven()


def test_a_message_that_arrives_meanwhile_stands_in_the_request_exactly_once(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = "One more thing: count the southern depot as well."
    with provider_of(settings, told()):
        runtime = Summing()
        runtime.press()
        spec = TakeInput(message=Content(raw=late))
        meanwhile(
            monkeypatch,
            lambda: take_input(actor=runtime.actor, run_id=runtime.run, spec=spec),
        )
        assert runtime.work() == [("compaction.summary", "done")]
        built = runtime.assemble()
    assert built.body.decode().count(late) == 1
    assert "[summary]" in row_nine(body(built))
    runtime.all_proven()


@pytest.mark.parametrize("act", ["excluded", "undone", "compacted"])
def test_a_summary_of_what_has_changed_meanwhile_is_thrown_away(
    act: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with provider_of(settings, told(), told(), told()):
        runtime = Summing()
        runtime.talk(1)
        earlier = runtime.shrink(through=runtime.row.content_sequence)
        runtime.press()

        def change() -> None:
            if act == "excluded":
                said = runtime.events(EventType.RESPONSE_COMPLETED)
                inside = [e.sequence for e in said if e.sequence > earlier.replaced_through]
                runtime.mark(f"{inside[1]}.0", "excluded", "item")
            elif act == "undone":
                runtime.undo(earlier.event)
            else:
                runtime.shrink()

        meanwhile(monkeypatch, change)
        assert runtime.work() == [("compaction.summary", "failed")]
        made = runtime.events(EventType.COMPACTED)
        assert all(event.payload["kind"] == "deterministic" for event in made)
        refused = runtime.events(EventType.COMPACTION_REFUSED)[-1]
        assert refused.payload["reason"] == "source_changed"
        assert runtime.job().error["code"] == "source_changed"
        # What has changed is asked about anew, where it still does not fit.
        try:
            runtime.assemble()
        except AnswerLater as later:
            assert later.job.state == JobState.QUEUED
            runtime.work()
            runtime.assemble()
    runtime.all_proven()


def test_constraints_survive_three_summaries_word_for_word_and_summaries_merge_once(
    settings: Any,
) -> None:
    rules = ["never write to prod ☃  (two  blanks)", "Antworte stets auf «Deutsch»"]
    with provider_of(settings, answer=lambda _: told()) as provider:
        runtime = Summing()
        runtime.ask("Two rules: " + " / ".join(rules))
        runtime.note(add_constraints=rules)
        runtime.assemble()
        runtime.say("Noted.")
        for _ in range(3):
            runtime.summed_up()
            runtime.say("Done with that.")
        prompts = asked(provider)
    found = compactions_of(actor=runtime.actor, session_id=runtime.session).as_json()["items"]
    standing = [line for line in found if line["state"] == "standing"]
    assert [line["depth"] for line in reversed(found)] == [1, 1, 2, 1]
    assert {line["kind"] for line in found} == {"model"}
    assert all(line["constraints"] == rules for line in found)
    assert [constraint.text for constraint in runtime.state.constraints] == rules
    assert len(standing) == 2
    assert any("notes about neighbouring parts" in prompt for prompt in prompts)
    sources = {
        number for line in found if line["depth"] == 1 for number in line["source_event_ids"]
    }
    assert set(next(line for line in found if line["depth"] == 2)["source_event_ids"]) <= sources
    runtime.all_proven()


def test_by_hand_a_model_sums_up_the_range_that_is_named_and_tells_summaries_as_one(
    settings: Any,
) -> None:
    with provider_of(settings, told("First half."), told("Second half."), told("Both halves.")):
        runtime = Summing(window=60_000)
        for _ in range(2):
            runtime.talk(3)
            through = runtime.row.content_sequence
            runtime.shrink(through=through, summariser="model", note="too long")
            assert runtime.work() == [("compaction.summary", "done")]
            assert runtime.job().result["replaced_through"] == through
        runtime.shrink(merge=True, summariser="model")
        assert runtime.work() == [("compaction.summary", "done")]
        runtime.ask("And now?")
        summary = row_nine(body(runtime.assemble()))
    assert "Both halves." in summary
    assert "First half." not in summary
    assert texts(runtime)[0].startswith("Both halves.")
    runtime.undo(runtime.job().result["event"])
    runtime.all_proven()


def test_a_summary_stands_together_with_its_jobs_outcome_even_in_the_last_attempt(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker is killed right after the commit: no later attempt is needed to say that the job is done."""

    class Killed(BaseException):
        pass

    with provider_of(settings, told()) as provider:
        runtime = Summing()
        job = runtime.press()
        Job.objects.filter(id=job.id).update(max_attempts=1)
        run = summary_job.run

        def dying(context: JobContext) -> dict[str, Any]:
            run(context)
            raise Killed

        monkeypatch.setattr(summary_job, "run", dying)
        with pytest.raises(Killed):
            runtime.work()
        assert sweep(waiting=lambda _: 0).ended == 0
        assert runtime.work() == []
        assert len(asked(provider)) == 1
        runtime.assemble()
    (installed,) = runtime.events(EventType.COMPACTED)
    assert runtime.job().state == JobState.DONE
    assert runtime.job().result["event"] == installed.sequence
    runtime.all_proven()


@pytest.mark.parametrize("listed", [(), ("ollama",)])
def test_a_plan_that_names_another_providers_model_sends_it_nothing_unless_the_operator_lists_it(
    settings: Any, listed: tuple[str, ...]
) -> None:
    """A rule that changed since the plan was pinned, too, holds when the summary is written."""
    with provider_of(settings, told()) as provider:
        settings.CTX_PROVIDER_URLS = {
            **settings.CTX_PROVIDER_URLS,
            "ollama": settings.CTX_PROVIDER_URLS["anthropic"],
        }
        settings.CTX_SUMMARY_PROVIDERS = ("ollama",)
        runtime = Summing(policy=model_policy(summary_model="ollama/strict/horizon-16k"))
        runtime.press()
        settings.CTX_SUMMARY_PROVIDERS = listed
        (ended,) = runtime.work()
        assert ended == ("compaction.summary", "done" if listed else "failed")
        assert len(asked(provider)) == len(listed)
        runtime.assemble()
    if not listed:
        (refused,) = runtime.events(EventType.COMPACTION_REFUSED)
        assert refused.payload["asked"]["code"] == "not_allowed"
    runtime.all_proven()


def test_secrets_reach_neither_the_model_nor_the_summary(settings: Any) -> None:
    secret = "sk" + "-proj-" + "Ab3dEf6hIj" * 4
    with provider_of(settings, told(f"{TOLD} The key is {secret}.")) as provider:
        runtime = Summing()
        runtime.ask(f"Use {secret} for the upload.")
        runtime.assemble()
        runtime.say("It is used.")
        built = runtime.summed_up()
        assert not any(secret in prompt for prompt in asked(provider))
    assert secret not in row_nine(body(built))
    (made,) = runtime.events(EventType.COMPACTED)
    assert made.payload["masked"] == 2
    assert made.payload["detector"].startswith("secrets@")
