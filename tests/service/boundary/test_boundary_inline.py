"""Windows a provider makes by itself: sealed out of the answer, replayed inside the run, in force from the next one on."""

from __future__ import annotations

from typing import Any

import pytest

from ctxengine.engine.events import EventType
from ctxengine.ledger.models import Body
from tests.service.boundary.talking import (
    calls,
    look_up,
    session,
    strict_provider,
    take_turn,
    unproven,
)

pytestmark = pytest.mark.django_db

SIZES = [("anthropic", 120_000, 60_000), ("openai-responses", 20_000, 6_000)]


@pytest.mark.parametrize(("provider", "window", "words"), SIZES)
def test_an_inline_window_becomes_a_checkpoint_and_is_asked_for_by_nobody(
    provider: str, window: int, words: int, settings: Any
) -> None:
    with strict_provider(settings) as strict:
        runtime = session(provider, window=window, native_contract="inline", summarize_trigger=0.5)
        for number in range(9):
            look_up(runtime, strict, number, words=words // 4)
            take_turn(runtime, strict, number, words=10)
        statuses = {entry.status for entry in strict.provider.log.entries()}
    assert statuses == {200}
    made = runtime.events(EventType.COMPACTED)
    assert made and all(event.payload["inline"] for event in made)
    assert calls(runtime, "compaction") == []
    shown = {row.inputs["projection"] for row in runtime.requests}
    assert made[0].sequence in shown
    stored = Body.objects.filter(session_id=runtime.session)
    assert not any(b"encrypted_content" in bytes(body.data or b"") for body in stored)
    assert not unproven(runtime)
