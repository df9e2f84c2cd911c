"""What a window is bound to, what its provider reads, and what happens to it when that changes or cannot be counted."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest

from ctxengine.engine.events import EventType
from ctxengine.engine.trust.levels import Trust
from ctxengine.service.rotate_epoch import rotate_epoch
from ctxengine.service.summaries.ask import AnswerLater
from tests.service.boundary.staging import Stage, provided, told
from tests.service.boundary.talking import calls, session, unproven
from tests.work_off import work_off

pytestmark = pytest.mark.django_db


def compacting(stage: Stage) -> list[str]:
    """Bodies of the compactions that the provider was asked for, oldest first."""
    entries = stage.strict.provider.log.entries()
    bodies = [(entry.path, entry.body) for entry in entries]
    return [b.decode() for p, b in bodies if "compact" in p or "compaction" in json.loads(b)]


def test_a_later_window_is_made_of_the_one_before_it_whole_and_of_what_came_since(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with provided(settings, monkeypatch) as stage:
        stage.due_again()
        stage.work_off()
        runtime = stage.runtime
        first, second = runtime.events(EventType.COMPACTED)
        before, after = compacting(stage)
        built = runtime.assemble()
    assert second.payload["base"] == first.sequence
    window = json.loads(after)["messages"][0]["content"][0]
    assert window["type"] == "compaction" and before.count('"signature"') == 0
    assert after.count('"signature"') == built.body.decode().count('"signature"') == 1
    assert "Remember item 1:" in before and "Remember item 1:" not in after
    assert "Remember item 7:" in after, "what came since is read whole"
    assert not unproven(runtime)


def test_an_elided_input_shows_pointers_and_a_whole_one_the_results(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for form, shown in (("whole", True), ("elided", False)):
        with provided(settings, monkeypatch) as stage:
            stage.due("anthropic", turns=0, native_input=form)
            with suppress(AnswerLater):
                for number in range(9):
                    stage.runtime.look(f"toolu_{number}", "a line of the sheet says much " * 180)
                    stage.runtime.assemble()
                    stage.runtime.say("Read.")
                    stage.runtime.ask("And now?")
            stage.work_off()
            (body,) = compacting(stage)
            assert ("a line of the sheet says much a line" in body) is shown
            (made,) = stage.runtime.events(EventType.COMPACTED)
            assert made.trust == Trust.EXTERNAL_UNTRUSTED.value
            stage.runtime.assemble()
            spans = stage.runtime.requests[-1].manifest["spans"]
            assert any(
                span["numbers"].get("by_provider") == 1 for span in spans if span.get("numbers")
            )


def test_another_set_of_tools_lets_the_window_go_and_the_whole_history_is_compacted_anew(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with provided(settings, monkeypatch) as stage:
        stage.due("anthropic")
        stage.work_off()
        runtime = stage.runtime
        runtime.assemble()
        runtime.say("Noted.")
        messages = told(runtime)
        rotate_epoch(
            actor=runtime.actor,
            session_id=runtime.session,
            reason="tool_removed_for_security",
            note="It leaks.",
            tools=("read",),
        )
        runtime.ask("And then?")
        stage.work_off()
        first, second = runtime.events(EventType.COMPACTED)
        assert second.payload["base"] is None, "what was bound to the old tools is no base"
        assert second.payload["contract_sha256"] != first.payload["contract_sha256"]
        assert "compaction" not in str(json.loads(compacting(stage)[1])["messages"])
        runtime.assemble()
        assert runtime.requests[-1].inputs["projection"] == second.sequence
    assert told(runtime)[: len(messages)] == messages
    assert not unproven(runtime)


def test_a_window_whose_provider_lost_its_key_or_its_count_stands_in_no_request(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with provided(settings, monkeypatch) as stage:
        stage.due("anthropic")
        stage.work_off()
        stage.before = stage.standing()
        stage.gateway._without = frozenset({"/v1/messages/count_tokens"})
        uncounted = stage.refusal()
        assert uncounted.extra["reason"] == "count_unavailable"
        assert uncounted.extra["retryable"] is False
        keys, settings.CTX_PROVIDER_KEYS = settings.CTX_PROVIDER_KEYS, {}
        assert stage.refusal().extra["reason"] == "missing_configuration"
        assert stage.standing() == stage.before and not stage.runtime.requests
        settings.CTX_PROVIDER_KEYS = keys
        stage.gateway._without = frozenset()
        stage.runtime.assemble()


def test_a_recovery_keeps_the_window_there_is_and_adds_what_it_leaves_out(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with provided(settings, monkeypatch) as stage:
        stage.runtime = session("anthropic", window=9_000, archive_recovery=True)
        stage.talk(5)
        stage.work_off()
        stage.runtime.assemble()
        stage.runtime.say("Noted.")
        stage.talk(20)
        stage.work_off()
        stage.runtime.assemble()
        stage.runtime.say("Noted.")
        stage.talk(20)
        stage.work_off()
        built = stage.runtime.assemble()
        one, two, three = stage.runtime.events(EventType.COMPACTED)
        bodies = compacting(stage)
    assert [two.payload["base"], three.payload["base"]] == [one.sequence, two.sequence]
    assert [event.payload["recovered"] for event in (one, two, three)] == [False, True, True]
    for body in bodies[1:]:
        assert json.loads(body)["messages"][0]["content"][0]["type"] == "compaction"
    left = three.payload["left_out"]
    assert left[: len(two.payload["left_out"])] == two.payload["left_out"] and len(left) > 1
    for first, last in left:
        assert f"{first} to {last}".encode() in built.body, "every gap of all recoveries is told"
    assert len(calls(stage.runtime, "compaction")) == 3
    assert work_off(stage.runtime.actor.tenant_id, kind="compaction.boundary") == []
    assert not unproven(stage.runtime)
