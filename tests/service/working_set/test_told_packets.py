"""Packets that a model writes ahead of the plan that wants them: a cache that moves no byte on its arrival (design 7.9)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxengine.engine.capacity.profile import Horizon, metadata_profile
from ctxengine.engine.events import EventType
from ctxengine.ledger.models import JobState
from ctxengine.providers.strict_local.script import Reply
from ctxengine.service.configure_session import configure_session
from ctxengine.service.erase import erase_person
from ctxengine.service.jobs.cancel import cancel_job
from ctxengine.service.plan_specs import Configure
from ctxengine.service.probe.profiles import keep_profile
from ctxengine.service.specs import ModelRef, PolicySpec, PrincipalSpec, ServiceError
from tests.canary import tables_with
from tests.summing import TOLD, asked, provider_of, told
from tests.telling import (
    FIRST,
    KIND,
    LATER,
    NEXT,
    Telling,
    change,
    nine,
    page_of,
    states,
    timeless,
    wished,
)

pytestmark = pytest.mark.django_db

CANARY = "the southern tower answers to nobody but the keeper of the seventh bell"


def test_growth_stands_on_the_packet_that_a_model_wrote_ahead(settings: Any) -> None:
    with provider_of(settings, told(), told(LATER)) as provider:
        runtime = Telling()
        runtime.go_on(4)
        runtime.over()
        assert runtime.plan["packet"] is None and not runtime.jobs
        before = runtime.go_on(FIRST - 5)
        (job,) = runtime.jobs
        assert (job.subject, runtime.plan["packet_through"]) == ("turns 1 to 24", 16)
        assert runtime.work() == [(KIND, "done")]
        assert timeless(runtime.assemble().body.decode()) == timeless(before)
        (prompt,) = asked(provider)
        notes, first, *_ = (
            json.loads(line)
            for line in json.loads(prompt)["messages"][0]["content"][0]["text"].splitlines()
        )
        assert notes["by"] == "notes" and "harbour number4." in notes["text"]
        assert first["text"].startswith("Tell me about harbour number16.")
        runtime.over()
        after = runtime.go_on(NEXT - 1)
        assert runtime.plan["packet_through"] == 24
        packet = runtime.packet().payload
        assert 'source="summary:model"' in nine(after) and TOLD in nine(after)
        assert "number23" in nine(after)
        assert (packet["writer"]["job"], packet["writer"]["prompt"]) == (str(job.id), "packet@1")
        assert packet["tokens_after"] <= runtime.plan["room"]["packet"]
        assert runtime.jobs[-1].subject == "turns 1 to 32"
        assert runtime.work() == [(KIND, "done")]
        second = asked(provider)[-1]
        assert TOLD in second and "number23" not in json.loads(second)["messages"][0]
        assert runtime.plan["reason"] == "start"
    runtime.all_proven()


def test_one_that_comes_too_late_moves_no_byte_and_what_grows_keeps_its_prose(
    settings: Any,
) -> None:
    with provider_of(settings, told()):
        runtime = wished()
        (first,) = runtime.jobs
        runtime.over()
        shown = runtime.go_on(NEXT - 1)
        standing = runtime.packet()
        assert standing.payload["kind"] == "deterministic"
        cancel_job(actor=runtime.actor, job_id=runtime.jobs[-1].id)
        assert runtime.work() == [(KIND, "done")]
        late = runtime.packets[-1]
        assert late.payload["writer"]["job"] == str(first.id)
        assert timeless(runtime.assemble().body.decode()) == timeless(shown)
        assert states(runtime)[late.sequence] == "reserve"
        assert states(runtime)[standing.sequence] == "standing"
        runtime.over()
        again = runtime.go_on()
        assert runtime.plan["packet"] == standing.sequence
        assert nine(again) == nine(shown)
        runtime.over()
        grown = runtime.go_on(NEXT - 2)
        packet = runtime.packet()
        assert packet.payload["compactor"].endswith("packet@1 + ledger-summary@2")
        assert (packet.payload["kind"], packet.payload["turns"]) == ("model", 32)
        assert TOLD in nine(grown) and "number31" in nine(grown)
        # Its prose stands in the longer one, which goes along.
        preview = page_of(runtime, f"{late.sequence}/undo/")
        assert f"{packet.sequence}" in preview.partition("Goes along")[2][:300]
        runtime.undo(late.sequence)
        assert TOLD not in runtime.assemble().body.decode()
        assert states(runtime)[packet.sequence] == "held_out"
    runtime.all_proven()


@pytest.mark.parametrize("reply", [told("  "), told(truncate_after_tokens=5), Reply(status=401)])
def test_a_failure_is_told_once_and_changes_nothing(reply: Reply, settings: Any) -> None:
    with provider_of(settings, reply) as provider:
        runtime = Telling()
        before = runtime.go_on(FIRST)
        assert runtime.work() == [(KIND, "failed")]
        (refused,) = runtime.events(EventType.COMPACTION_REFUSED)
        assert refused.payload["asked"]["job"] == str(runtime.jobs[0].id)
        assert timeless(runtime.assemble().body.decode()) == timeless(before)
        runtime.over()
        runtime.go_on()
        runtime.over()
        assert runtime.work() == [] and len(asked(provider)) == 1
    assert [event.payload["kind"] for event in runtime.packets] == ["deterministic"]


def test_nothing_untrusted_reaches_the_model_though_the_assistant_says_it_again(
    settings: Any,
) -> None:
    with provider_of(settings, told()) as provider:
        runtime = Telling()
        runtime.go_on(FIRST, says=f"They say that {CANARY}.", found=f"Here {CANARY}.")
        held = tables_with(CANARY)
        assert runtime.work() == [(KIND, "done")]
        (prompt,) = asked(provider)
        assert CANARY not in prompt and "[elided] tool.result" in prompt
        assert tables_with(CANARY) == held
        made = runtime.log.body(str(runtime.packets[-1].body_id))
    assert made is not None and CANARY not in made


def test_what_is_taken_back_stays_away_and_is_not_written_again(settings: Any) -> None:
    with provider_of(settings, told(), told()) as provider:
        runtime = wished()
        runtime.work()
        runtime.over()
        runtime.go_on(NEXT - 1)
        packet = runtime.packet()
        assert packet.payload["writer"]
        runtime.undo(packet.sequence)
        shown = runtime.assemble().body.decode()
        assert TOLD not in shown
        assert (runtime.plan["refused"], runtime.plan["packet_turn"]) == ("taken_back", 16)
        # The job that was at work on a longer one finds its turns held out.
        assert runtime.work() == [(KIND, "failed")]
        assert runtime.jobs[-1].error["code"] == "source_changed"
        runtime.over()
        runtime.go_on()
        assert runtime.work() == [] and len(asked(provider)) == 1
    runtime.all_proven()


@pytest.mark.parametrize("act", ["excluded", "undone"])
def test_what_changes_while_the_model_writes_is_not_installed(
    act: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with provider_of(settings, told(), told()):
        runtime = wished()
        meanwhile(monkeypatch, lambda: change(runtime, act))
        assert runtime.work() == [(KIND, "failed")]
        assert runtime.jobs[0].error["code"] == "source_changed"
        assert not [event for event in runtime.packets if event.payload.get("writer")]
        runtime.assemble()
        runtime.over()
        # What was left out may be written about anew; what was taken back may not.
        assert len(runtime.jobs) == (2 if act == "excluded" else 1)
    runtime.all_proven()


def test_what_is_left_out_later_takes_the_packet_along(settings: Any) -> None:
    with provider_of(settings, told()):
        runtime = wished()
        runtime.work()
        change(runtime, "excluded")
        runtime.assemble()
        runtime.over()
        shown = runtime.go_on(NEXT - 1)
    assert TOLD not in shown and "harbour number2." not in nine(shown)
    runtime.all_proven()


def test_a_packet_too_small_for_prose_is_not_asked_for(settings: Any) -> None:
    with provider_of(settings, told()) as provider:
        runtime = Telling(window=5_000)
        runtime.go_on(FIRST)
        assert runtime.plan["packet"] and runtime.plan["room"]["packet"] < 240
        assert not runtime.jobs
        with pytest.raises(ServiceError) as refused:
            runtime.shrink(summariser="model")
        assert refused.value.code in {"no_room", "nothing_to_compact"}
        assert asked(provider) == []


def test_by_hand_a_model_writes_over_one_that_stands(settings: Any) -> None:
    with provider_of(settings, told()):
        runtime = Telling(policy=PolicySpec(history_floor=200))
        runtime.go_on(FIRST)
        runtime.over()
        assert not runtime.jobs
        standing = runtime.packet().sequence
        assert runtime.shrink().outcome == "unchanged"
        assert runtime.shrink(summariser="model", preview=True).outcome == "previewed"
        assert runtime.shrink(summariser="model", note="it tells too little").outcome == "queued"
        assert runtime.work() == [(KIND, "done")]
        made = runtime.packets[-1]
        assert (made.run_id, made.payload["forced_by"]) == (None, runtime.actor.label)
        assert states(runtime)[standing] == "superseded"
        shown = runtime.go_on()
        assert runtime.plan["packet"] == made.sequence and TOLD in nine(shown)
        assert runtime.shrink(summariser="model").outcome == "unchanged"
    runtime.all_proven()


def test_a_large_model_in_between_costs_no_second_call_and_no_byte(settings: Any) -> None:
    other = "claude-haiku-4-5"
    with provider_of(settings, told(), answer=lambda _: told(LATER)) as provider:
        runtime = Telling(window=None, max_output=None)
        for model, horizon in ((runtime.model, 6_500), (other, 150_000)):
            profile = metadata_profile(
                provider="anthropic", model=model, declared_window=200_000, max_output=8_192
            )
            measured = Horizon(tokens=horizon, confidence=1.0)
            keep_profile(
                tenant_id=runtime.actor.tenant_id,
                profile=profile.model_copy(update={"horizon": measured}),
            )
        runtime.go_on(FIRST)
        runtime.work()
        runtime.over()
        small = runtime.go_on(NEXT - 1)
        assert TOLD in nine(small)
        calls = len(asked(provider))
        bind(runtime, other)
        runtime.over()
        large = runtime.go_on()
        assert "[summary]" not in large and "harbour number0." in large
        bind(runtime, runtime.model)
        runtime.over()
        again = runtime.go_on()
        assert nine(again).partition("[turn cards]")[0] == nine(small).partition("[turn cards]")[0]
        assert len(asked(provider)) == calls
    runtime.all_proven()


def test_an_erasure_takes_what_the_model_wrote(settings: Any) -> None:
    with provider_of(settings, told()):
        runtime = Telling(principal=PrincipalSpec(id="mara"))
        runtime.go_on(FIRST)
        runtime.work()
        runtime.over()
        runtime.go_on(NEXT - 1)
        runtime.over()
        assert tables_with(TOLD)
        erase_person(actor=runtime.actor, principal="mara", note="asked for it")
        assert not tables_with(TOLD)
    runtime.all_proven_but_erased()


def test_a_job_that_is_called_off_is_left_at_that(settings: Any) -> None:
    with provider_of(settings, told()) as provider:
        runtime = wished()
        cancel_job(actor=runtime.actor, job_id=runtime.jobs[0].id)
        runtime.over()
        runtime.go_on()
        assert [job.state for job in runtime.jobs] == [JobState.CANCELLED]
        assert asked(provider) == []


# --- what happens meanwhile -------------------------------------------------------------------------------------------


def meanwhile(monkeypatch: pytest.MonkeyPatch, act: Any) -> None:
    """Let something happen while the model is being asked, once."""
    from ctxengine.service.side_calls import side_call
    from ctxengine.service.summaries import asking

    left = [act]

    def calling(**call: Any) -> Any:
        answer = side_call(**call)
        while left:
            left.pop()()
        return answer

    monkeypatch.setattr(f"{asking.__name__}.side_call", calling)


def bind(runtime: Telling, model: str) -> None:
    """Bind the session to another model from the next run on."""
    ref = ModelRef(provider=runtime.provider, name=model)
    configure_session(actor=runtime.actor, session_id=runtime.session, spec=Configure(model=ref))
