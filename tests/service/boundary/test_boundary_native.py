"""Native windows over long conversations: counted, reused through restarts, replayed byte for byte, never a refusal."""

from __future__ import annotations

from typing import Any

import pytest

from ctxengine.engine.events import EventType
from ctxengine.service import warm
from tests.service.boundary.talking import (
    calls,
    look_up,
    session,
    strict_provider,
    take_turn,
    unproven,
)

pytestmark = pytest.mark.django_db

TURNS = 200
BETWEEN = 8
"""Turns from one look-up to the next."""


@pytest.mark.parametrize(
    ("provider", "window", "words"),
    # OpenAI's windows keep every message of the user, so that theirs only grow.
    [("anthropic", 9_000, 1_600), ("openai-responses", 20_000, 4_000)],
)
def test_two_hundred_turns_go_on_through_native_windows_and_a_restart(
    provider: str, window: int, words: int, settings: Any
) -> None:
    with strict_provider(settings) as strict:
        runtime = session(provider, window=window)
        for number in range(TURNS):
            if number == TURNS // 2:
                forget_everything()
            if number % BETWEEN == 0:
                look_up(runtime, strict, number, words=words)
            else:
                take_turn(runtime, strict, number, words=10)
        statuses = [entry.status for entry in strict.provider.log.entries()]
    made = runtime.events(EventType.COMPACTED)
    assert len(made) >= 5
    assert {event.payload["kind"] for event in made} == {"native"}
    assert {event.payload["counted"] for event in made} == {"counted"}
    # Each window was asked for once, and stood in every request until the next one.
    assert [call.outcome for call in calls(runtime, "compaction")] == ["completed"] * len(made)
    assert [event.payload["base"] for event in made[1:]] == [event.sequence for event in made[:-1]]
    shown = {row.inputs["projection"] for row in runtime.requests}
    assert shown == {None, *(event.sequence for event in made)}
    assert set(statuses) == {200}
    assert not unproven(runtime)
    bodies = [entry.body for entry in strict.provider.log.entries()]
    assert any(b'"type": "compaction"' in body or b'"compaction"' in body for body in bodies)


def forget_everything() -> None:
    """What a process remembers goes with it; the ledger stays."""
    warm._SESSIONS._kept.clear()
