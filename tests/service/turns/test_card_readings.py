"""A card keeps how its directive was read, and a turn is found by what the runtime read in it (capacity spec 10)."""

from __future__ import annotations

import json

import pytest

from ctxengine.engine.events import EventType
from ctxengine.engine.items import ContentFormat
from ctxengine.engine.trust.levels import Trust
from ctxengine.engine.turns.card import ReadingKey, TurnCard, card_text
from ctxengine.engine.turns.closed import cards_of
from ctxengine.service.erase import erase_person
from ctxengine.service.specs import Content, PrincipalSpec, ReadingSpec
from ctxengine.service.turns.cards import cards_page
from ctxengine.service.turns.values import values_for
from tests.cast import Runtime, tool

pytestmark = pytest.mark.django_db

TOOLS = (tool("lookup", observes=("network",), serves=("tides",)),)
SECRET = "sk-ant-" + "a1B2" * 12
BY_NAME = "Zq9" * 9
"""One that only the word beside it gives away."""


def opened(**fields: object) -> Runtime:
    return Runtime(tools=TOOLS, extra={"engine": "working_set"}, **fields)  # type: ignore[arg-type]


def told(runtime: Runtime, message: str | Content, **fields: object) -> TurnCard:
    """A whole turn; gives its card."""
    runtime.ask(message, **fields)
    runtime.assemble()
    runtime.look("k", "nothing yet", "lookup")
    runtime.assemble()
    runtime.say("There is nothing to tell yet.")
    (card,) = cards_of(runtime.log, [len(runtime.events(EventType.TURN_CLOSED))])
    assert card is not None
    return card


def test_a_directive_is_read_by_its_words() -> None:
    card = told(opened(), 'What do the tides of "Port Blair" look like today?')
    key = card.reading
    assert (key.act, key.source, key.live, key.modalities) == ("answer", "lexical", True, ("text",))
    assert "tides" in key.domains and "Port Blair" in key.entities
    assert key.trust is Trust.USER
    assert "Port Blair" in card_text(card) and "lexical" not in card_text(card)


def test_the_runtimes_own_reading_is_kept_and_the_turn_found_by_it() -> None:
    runtime = opened()
    reading = ReadingSpec(act="locate", domains=("ledgers",), entities=("Quillfeather",))
    card = told(runtime, "Where is it?", reading=reading)
    assert card.reading == ReadingKey(
        act="locate",
        domains=("ledgers",),
        entities=("Quillfeather",),
        modalities=("text",),
        source="runtime",
    )
    for number in range(3):
        told(runtime, f"Count part {number}.")
    values = values_for(runtime.row, "Tell me of Quillfeather", newest=4)
    assert values[1].relevance == 1.0
    assert max(values[number].relevance for number in (2, 3, 4)) == 0.0


def test_what_a_directive_was_made_of_is_told() -> None:
    image = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="},
    }
    raw = json.dumps([{"type": "text", "text": "What is this?"}, image])
    card = told(opened(), Content(format=ContentFormat.BLOCKS, raw=raw))
    assert card.reading.modalities == ("image", "text")


def test_no_secret_stands_in_it() -> None:
    named = f"The api_key={BY_NAME} was for the harbour."
    reading = ReadingSpec(act="locate", entities=(BY_NAME, "harbour"))
    for fields in ({}, {"reading": reading}):
        card = told(opened(), named, **fields)
        assert "Zq9Zq9" not in card.model_dump_json()
    assert card.reading.entities == ("harbour",)
    reading = ReadingSpec(act="locate", entities=(SECRET,))
    assert SECRET not in told(opened(), f'Use "{SECRET}".', reading=reading).model_dump_json()
    assert SECRET not in told(opened(), f'Use "{SECRET}".').model_dump_json()


def test_it_goes_with_the_person() -> None:
    runtime = opened(principal=PrincipalSpec(id="pia"))
    told(runtime, "Where is it?", reading=ReadingSpec(act="locate", entities=("Quillfeather",)))
    erase_person(actor=runtime.actor, principal="pia", note="asked for")
    (card,) = cards_page(actor=runtime.actor, session_id=runtime.session).cards
    assert card.erased and card.card is None


def test_cards_of_other_engines_have_one_too() -> None:
    runtime = Runtime(tools=TOOLS)
    runtime.turn("List the files of the harbour.", "There are none.")
    (view,) = cards_page(actor=runtime.actor, session_id=runtime.session).cards
    assert view.card is not None and view.card.reading.source == "lexical"
