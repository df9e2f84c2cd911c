"""What counts as a failure that bars, how a note's parts are found, and a library's conversation that the assistant opens."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from ctxengine.engine.boundary.failures import FAILURES, MENDED_OUTSIDE, CompactionError, held_back
from ctxengine.engine.boundary.note_text import NOTE_PARTS, gaps_of
from ctxengine.engine.boundary.saved import Finished
from ctxengine.engine.boundary.work import NativeAnswer
from ctxengine.engine.fresh import OPENING_TEXT
from ctxengine.providers.strict_local.provider import StrictProvider
from tests.engine.boundary.hosting import MODEL, AnthropicPort, Clock, host, plan_for

AT = Clock().at


def failed(code: str, after_s: int = 0, *, retryable: bool = False) -> Finished:
    payload = {
        "operation": 1,
        "outcome": "failed",
        "code": code,
        "retryable": retryable,
        "retry_after_s": None,
        "prefix_sha256": "p",
    }
    return Finished(payload, AT + timedelta(seconds=after_s))


@pytest.mark.parametrize("kind", FAILURES, ids=lambda kind: kind.code)
def test_what_nothing_was_sent_for_changes_nothing_about_what_bars(kind: Any) -> None:
    real = [failed(kind.code, n, retryable=kind.retryable) for n in (1, 0)]
    for code in MENDED_OUTSIDE:
        unsent = [failed(code, n) for n in (4, 3, 2)]
        among = [unsent[0], real[0], unsent[1], real[1], unsent[2]]
        assert held_back(among, "p") == held_back(real, "p")
        assert held_back(unsent, "p") is None
    if kind.code not in MENDED_OUTSIDE:
        held = held_back(real, "p")
        assert held is not None and held.attempts == 2


class Keyless(AnthropicPort):
    """A port whose host has not set its key yet."""

    key = False
    asked = 0

    def count(self, body: bytes) -> int:
        self.asked += 1
        if not self.key:
            raise CompactionError("missing_configuration")
        return super().count(body)

    def compact(self, body: bytes) -> NativeAnswer:
        if not self.key:
            raise CompactionError("missing_configuration")
        return super().compact(body)


def test_a_port_without_a_key_is_asked_by_the_next_request_as_its_remedy_says() -> None:
    port, told = Keyless(StrictProvider()), list[Any]()
    context = host(
        plan_for("anthropic", MODEL),
        Clock(),
        port,
        emit=lambda event, facts: told.append(facts.get("code")),
    )
    for number in range(99):
        context.append({"role": "user", "content": f"Item {number}: " + "it is long " * 60})
        context.append({"role": "assistant", "content": "Remembered. " * 40})
        if context.due:
            break
    context.append({"role": "user", "content": "And now?"})
    for asked in range(1, 61):
        with pytest.raises(CompactionError) as caught:
            context.prepare()
        assert caught.value.reason == "missing_configuration" and port.asked == asked
    assert told[-1] == "missing_configuration" and not context.save()["finished"]
    port.key = True
    context.prepare()
    assert context.checkpoint is not None


class Listening(AnthropicPort):
    """A port that keeps what it was asked to compact."""

    def __init__(self, provider: StrictProvider) -> None:
        super().__init__(provider)
        self.asked: list[Any] = []

    def compact(self, body: bytes) -> NativeAnswer:
        self.asked.append(json.loads(body)["messages"])
        return super().compact(body)


def test_a_conversation_that_the_assistant_opens_gets_its_window() -> None:
    port = Listening(StrictProvider())
    context = host(plan_for("anthropic", MODEL), Clock(), port)
    context.append({"role": "assistant", "content": "Good morning. What is there to sort?"})
    for number in range(99):
        context.append({"role": "user", "content": f"Item {number}: " + "it is long " * 60})
        context.prepare()
        if context.checkpoint is not None:
            break
        context.append({"role": "assistant", "content": "Remembered. " * 40})
    assert context.checkpoint is not None
    (asked,) = port.asked
    assert [message["role"] for message in asked[:3]] == ["user", "assistant", "user"]
    assert OPENING_TEXT in json.dumps(asked[0]) and "Good morning" in json.dumps(asked[1])
    assert OPENING_TEXT not in context.build().body.decode(), "now a window stands in front"


OPENINGS = (
    *("{}: x", "- {}: x", "* {}: x", "• {}: x", "– {}: x", "+ {}: x", "1. {}: x", "2) **{}**: x"),
    *("- **{}:** x", "## {}\nx", "## 3. {}\nx", "{} (of the user): x", "- {} (so far) : x"),
)


@pytest.mark.parametrize("opening", OPENINGS)
def test_a_part_of_a_note_is_found_however_lists_and_headings_are_written(opening: str) -> None:
    note = "\n".join(opening.format(part) for part in NOTE_PARTS)
    assert gaps_of(note) == ()
    assert gaps_of(note.replace("Decisions", "Choices")) == ("Decisions",)


def test_a_part_that_is_only_spoken_of_is_none() -> None:
    assert gaps_of("The well-known - Objective: x, non-objective (a) : y") == NOTE_PARTS
