"""A card tells what the user saw: a presentation, or the platform's words where it ended the turn (capacity spec 7, 10)."""

from __future__ import annotations

import json

import pytest

from ctxengine.engine.events import EventType
from ctxengine.engine.trust.levels import Trust
from ctxengine.engine.turns.card import TurnCard, card_text
from ctxengine.engine.turns.closed import cards_of
from ctxengine.ledger.models import Posting
from tests.cast import TOOLS, Call, Runtime, tool

pytestmark = pytest.mark.django_db

METRIC = {"title": "Harbour level", "label": "Level", "value": "412", "unit": "cm"}


def opened() -> Runtime:
    card = tool("emit_metric_card", presentation="metric")
    return Runtime(tools=(*TOOLS, card), extra={"engine": "working_set"})


def card_of(runtime: Runtime, number: int = 1) -> TurnCard:
    (card,) = cards_of(runtime.log, [number])
    assert card is not None
    return card


def shown() -> Runtime:
    runtime = opened()
    runtime.ask("How high is the harbour?")
    runtime.look("c1", "The gauge says 412 cm.", arguments='{"path":"gauge"}')
    runtime.assemble()
    runtime.say("", Call("c2", "emit_metric_card", json.dumps(METRIC)))
    runtime.assemble()
    runtime.say("There it is.")
    return runtime


def test_the_presentation_is_the_answer_and_is_found_by_its_values() -> None:
    runtime = shown()
    (emitted,) = runtime.events(EventType.PRESENTATION_EMITTED)
    (line,) = card_of(runtime).presentations
    assert (line.id, line.semantic_type, line.title) == (
        str(emitted.sequence),
        "metric",
        "Harbour level",
    )
    assert "412" in line.digest
    assert line.derived_from
    assert line.trust is Trust.EXTERNAL_UNTRUSTED
    assert card_of(runtime).trust is Trust.EXTERNAL_UNTRUSTED
    assert f"[presentation:{emitted.sequence}]" in card_text(card_of(runtime))
    assert Posting.objects.filter(session_id=runtime.session, term="412").exists()


def test_a_presentation_is_recalled_whole_by_its_id() -> None:
    runtime = shown()
    runtime.ask("Show me that again.")
    runtime.assemble()
    id = card_of(runtime).presentations[0].id
    taken = runtime.say("", Call("r1", "recall", json.dumps({"presentation": id})))
    assert json.loads(taken.calls[0].result or "") == METRIC
    assert runtime.events(EventType.TOOL_RESULT)[-1].trust == "EXTERNAL_UNTRUSTED"


def test_a_turn_that_the_platform_ended_is_told_in_its_words() -> None:
    runtime = opened()
    runtime.ask("What is the current price of copper?")
    runtime.assemble()
    stale = "Copper stands at 9,412 dollars a tonne right now, as it did."
    taken = runtime.say(stale)
    while taken.next == "redo":
        runtime.assemble()
        taken = runtime.say(stale)
    assert taken.statement
    card = card_of(runtime)
    assert card.outcome == "degraded"
    assert "9,412" not in card.narration
    assert card.narration[:40] == taken.statement[:40]
    assert card.narration_trust is Trust.PLATFORM
    assert card.asked == "What is the current price of copper?"
