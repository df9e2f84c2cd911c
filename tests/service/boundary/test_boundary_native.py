"""Native windows over long conversations: counted, reused through a restart, replayed byte for byte, never a refusal."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxengine.engine.events import EventType
from ctxengine.ledger.models import RequestRow
from tests.service.boundary.after_restart import goes_on
from tests.service.boundary.talking import calls, session, strict_provider, take_turns, unproven

# What the first process wrote must be there for the second.
pytestmark = [pytest.mark.long, pytest.mark.django_db(transaction=True)]

TURNS = 200


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
        take_turns(runtime, strict, 0, TURNS // 2, words=words)
        before = runtime.events(EventType.COMPACTED)
        goes_on(runtime, strict, TURNS // 2, TURNS, words)
        entries = strict.provider.log.entries()
    made = runtime.events(EventType.COMPACTED)
    assert len(made) >= 5
    assert before and len(made) > len(before), "windows were made on both sides of the restart"
    assert {event.payload["kind"] for event in made} == {"native"}
    # OpenAI may read nothing in front of its window any more; what such a window takes is estimated.
    known = {"counted"} if provider == "anthropic" else {"counted", "estimated"}
    assert {event.payload["counted"] for event in made} <= known
    assert all(event.payload["tokens_after"] > 20 for event in made)
    # Each window was asked for once, and stood in every request until the next one.
    assert [call.outcome for call in calls(runtime, "compaction")] == ["completed"] * len(made)
    assert [event.payload["base"] for event in made[1:]] == [event.sequence for event in made[:-1]]
    assert [row.inputs["projection"] for row in runtime.requests] == stood(runtime.requests, made)
    assert {entry.status for entry in entries} == {200}
    assert len(runtime.events(EventType.USER_MESSAGE)) == TURNS
    assert not unproven(runtime)
    with_window = [entry for entry in entries if b'"compaction"' in entry.body]
    assert any(b"signature" in e.body or b"encrypted_content" in e.body for e in with_window)
    json.loads(with_window[-1].body)


def stood(requests: list[RequestRow], made: list[Any]) -> list[int | None]:
    """The checkpoint that each request must stand on: the newest one before it."""
    found: list[int | None] = []
    for row in requests:
        earlier = [event.sequence for event in made if event.sequence <= row.act_sequence]
        found.append(max(earlier, default=None))
    return found
