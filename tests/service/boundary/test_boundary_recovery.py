"""Archive recovery: a history ten times the window is answered from a bounded view that says what it leaves out."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from ctxengine.engine.events import EventType
from ctxengine.service.end_run import end_run
from ctxengine.service.specs import Content as Said
from ctxengine.service.specs import EndRun, ServiceError, TakeInput
from ctxengine.service.take_input import take_input
from tests.cast import Runtime
from tests.service.boundary.talking import (
    answer_all,
    assembled,
    calls,
    send,
    session,
    strict_provider,
    unproven,
)

pytestmark = pytest.mark.django_db

WINDOW = 9_000


def archived(provider: str, turns: int = 110, **policy: Any) -> Runtime:
    """A session whose history weighs ten windows, none of it ever sent."""
    runtime = session(provider, window=WINDOW, **policy)
    for number in range(turns):
        runtime.ask(
            "The objective: catalogue the archive."
            if number == 0
            else f"Note {number}: " + "shelf and box and folder and page " * 130
        )
        if number == 3:
            reminder = Said(raw="Always answer in one line.")
            take_input(
                actor=runtime.actor,
                run_id=runtime.run,
                spec=TakeInput(message=reminder, retain="reminder"),
            )
        end_run(actor=runtime.actor, run_id=runtime.run, spec=EndRun(outcome="completed"))
    return runtime


@pytest.mark.parametrize("provider", ["anthropic", "openai-responses"])
def test_a_history_ten_times_the_window_is_recovered_with_a_notice_and_exact_ranges(
    provider: str, settings: Any
) -> None:
    with strict_provider(settings) as strict:
        runtime = archived(provider, archive_recovery=True, durable_checkpoints=True)
        assert runtime.log.head().tokens > 10 * WINDOW
        runtime.ask("What is left to do?")
        built = assembled(runtime)
        status, answer = send(runtime, strict, built.body)
        assert status == 200, answer
        runtime.hear(answer)
        compacted = next(
            json.loads(entry.body)
            for entry in strict.provider.log.entries()
            if "compact" in entry.path
            or b'"compaction": {' in entry.body
            or b'"compaction":{' in entry.body
        )
        (made,) = runtime.events(EventType.COMPACTED)
        payload = made.payload
        assert payload["recovered"] and payload["kind"] == "native"
        # Required content first, then the newest whole turns, and everything else named exactly once.
        read = json.dumps(compacted)
        assert "The objective: catalogue the archive." in read
        assert "Always answer in one line." in read
        assert "[archive]" in read
        covered = sorted([*payload["ranges"], *payload["left_out"]])
        assert covered[0][0] == runtime.events(EventType.USER_MESSAGE)[0].sequence
        assert all(before[1] < after[0] for before, after in pairwise(covered))
        newest = payload["ranges"][-1]
        assert newest[1] >= payload["left_out"][-1][1]
        assert b"[archive]" in built.body
        for first, last in payload["left_out"]:
            assert f"{first} to {last}".encode() in built.body or f"{first}".encode() in built.body
        # What is required follows the window as well.
        assert b"catalogue the archive" in built.body and b"in one line" in built.body
        # The assembled request was counted by the provider before it was handed out, and fits.
        counted = calls(runtime, "count")
        assert counted[-1].job_id is None and counted[-1].outcome == "completed"
        paid = len(calls(runtime, "compaction"))
        runtime.ask("And then?")
        answer_all(runtime, strict)
        assert len(calls(runtime, "compaction")) == paid == 1
    reasons = {span["reason"] for span in runtime.requests[0].manifest["spans"]}
    assert {"recovered", "left_in_archive", "retained", "in_native_window"} <= reasons
    assert not unproven(runtime)


def test_without_the_policy_nothing_is_recovered(settings: Any) -> None:
    with strict_provider(settings):
        runtime = archived("anthropic", turns=20)
        runtime.ask("What is left to do?")
        with pytest.raises(ServiceError) as caught:
            assembled(runtime)
    assert caught.value.extra["reason"] == "native_input_oversized"
    assert not runtime.events(EventType.COMPACTED)


def test_required_content_is_never_cut_even_where_nothing_fits_then(settings: Any) -> None:
    with strict_provider(settings):
        runtime = session("anthropic", window=WINDOW, archive_recovery=True)
        for number in range(12):
            runtime.ask(f"Note {number}")
            held = Said(raw=f"Never forget rule {number}. " + "It holds for ever and ever. " * 200)
            take_input(
                actor=runtime.actor,
                run_id=runtime.run,
                spec=TakeInput(message=held, retain="reminder"),
            )
            end_run(actor=runtime.actor, run_id=runtime.run, spec=EndRun(outcome="completed"))
        runtime.ask("What now?")
        with pytest.raises(ServiceError) as caught:
            assembled(runtime)
    assert caught.value.extra["reason"] == "recovery_oversized"
    assert not runtime.events(EventType.COMPACTED)
