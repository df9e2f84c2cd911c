"""Fallback legs of `boundary` sessions: sized to the smallest, and no model is sent another's window (design 5 and 6)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxengine.engine.events import EventType
from ctxengine.service.prove import replay_row
from ctxengine.service.specs import ModelRef, ServiceError
from ctxengine.service.summaries.ask import AnswerLater
from tests.service.boundary.talking import (
    MODELS,
    said,
    send,
    session,
    strict_provider,
    take_turn,
)

pytestmark = pytest.mark.django_db

CHAT = ModelRef(provider="openai", name="gpt-5.4", window=64_000)


def until_compacted(runtime: Any, strict: Any) -> None:
    """Turns until history stands behind a checkpoint."""
    for number in range(20):
        take_turn(runtime, strict, number, words=600)
        if runtime.events(EventType.COMPACTED):
            return
    pytest.fail("nothing was compacted")


def test_a_native_window_goes_to_its_own_model_alone(settings: Any) -> None:
    with strict_provider(settings) as strict:
        runtime = session("anthropic")
        until_compacted(runtime, strict)
        runtime.ask(said(30))
        with pytest.raises(ServiceError) as refused:
            runtime.assemble(legs=(CHAT,))
        assert (refused.value.status, refused.value.code) == (422, "leg_unavailable")
        same = ModelRef(provider="anthropic", name=MODELS["anthropic"], window=64_000)
        built = runtime.assemble(legs=(same,))
        assert "compaction" in built.body.decode()
        assert send(runtime, strict, built.legs[0].body)[0] == 200
        assert replay_row(runtime.row, runtime.requests[-1]).verdict == "identical"


def test_a_note_goes_to_every_leg(settings: Any) -> None:
    with strict_provider(settings) as strict:
        runtime = session("openai")
        until_compacted(runtime, strict)
        runtime.ask(said(30))
        claude = ModelRef(provider="anthropic", name=MODELS["anthropic"], window=64_000)
        built = runtime.assemble(legs=(claude,))
        (leg,) = built.legs
        assert json.loads(leg.body)["model"] == MODELS["anthropic"]
        assert said(30)[:40] in leg.body.decode()
        assert replay_row(runtime.row, runtime.requests[-1]).verdict == "identical"


def test_a_small_leg_asks_for_the_compaction_that_it_needs(settings: Any) -> None:
    with strict_provider(settings) as strict:
        runtime = session("openai", window=64_000)
        for number in range(4):
            take_turn(runtime, strict, number, words=600)
        runtime.ask(said(30))
        runtime.assemble()
        small = ModelRef(provider="openai", name="gpt-5.4", window=5_000, max_output=1_000)
        with pytest.raises(AnswerLater):
            runtime.assemble(legs=(small,))
