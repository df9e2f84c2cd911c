"""What a model says knowing findings that nobody here can read is trusted as little as they (design 7.2)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxengine.engine.events import EventType
from ctxengine.engine.trust.levels import Trust
from ctxengine.engine.turns.card import TurnCard, cards_text
from ctxengine.ledger.models import ClosedTurn
from ctxengine.service.specs import PolicySpec, PrincipalSpec, TakeResponse
from ctxengine.service.take_response import take_response
from tests.cast import tool
from tests.telling import Telling

pytestmark = pytest.mark.django_db

TOLD = "the southern tower answers to nobody but the keeper of the seventh bell"
HIT = {"type": "web_search_result", "url": "https://x.example", "encrypted_content": "E" * 40}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
SECRET = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [HIT]}
OPEN = SECRET | {"content": [{"type": "web_search_result", "url": "https://x.example"}]}
SAYS = {"type": "text", "text": f"They say that {TOLD}."}
NOTES = {"type": "tool_use", "id": "toolu_1", "name": "note", "input": {"text": TOLD}}


def asked() -> Telling:
    runtime = Telling(
        window=None,
        max_output=None,
        policy=PolicySpec(history_floor=200),
        tools=(tool("note"),),
        principal=PrincipalSpec(id="mara"),
    )
    runtime.ask("Who keeps the tower?")
    runtime.assemble()
    return runtime


def answer(runtime: Telling, *blocks: dict[str, Any]) -> None:
    stop = "tool_use" if NOTES in blocks else "end_turn"
    raw = {"type": "message", "role": "assistant", "stop_reason": stop, "content": blocks}
    take_response(
        actor=runtime.actor,
        run_id=runtime.run,
        spec=TakeResponse(response_raw=json.dumps(raw)),
    )


def card_of(runtime: Telling) -> TurnCard:
    (closed,) = runtime.events(EventType.TURN_CLOSED)
    card = TurnCard.model_validate_json(runtime.log.body(str(closed.body_id)) or "")
    assert closed.payload["trust"] == card.trust.value
    return card


@pytest.mark.parametrize("found", [SECRET, OPEN], ids=["encrypted", "open"])
@pytest.mark.parametrize("noted", [False, True])
def test_a_card_trusts_its_answer_and_its_calls_as_little_as_what_they_may_tell_of(
    found: dict[str, Any], noted: bool
) -> None:
    runtime = asked()
    if noted:
        answer(runtime, SEARCH, found, NOTES)
        runtime.results(("toolu_1", "noted"))
        runtime.assemble()
        answer(runtime, SAYS)
    else:
        answer(runtime, SEARCH, found, SAYS)
    card = card_of(runtime)
    level = Trust.EXTERNAL_UNTRUSTED if found is SECRET else Trust.MODEL
    assert TOLD in card.narration
    assert (card.trust, card.narration_trust) == (level, level)
    assert [line.trust for line in card.did] == ([level] if noted else [])
    assert f'trust="{level.value}"' in cards_text([card], b"a key of the session")
    (kept,) = ClosedTurn.objects.filter(session_id=runtime.session)
    assert (TOLD in kept.answered) == (found is OPEN)


def test_what_such_an_answer_said_is_repeated_later_as_its_pointer() -> None:
    runtime = asked()
    answer(runtime, SEARCH, SECRET, SAYS)
    runtime.ask("And once more?")
    runtime.assemble()
    answer(runtime, {"type": "text", "text": f"As I said, {TOLD}."})
    closed = max(runtime.events(EventType.TURN_CLOSED), key=lambda event: event.sequence)
    card = TurnCard.model_validate_json(runtime.log.body(str(closed.body_id)) or "")
    assert card.narration.startswith("As I said,[elided] assistant.message")
    assert TOLD not in card.narration


def test_a_note_on_them_is_no_constraint_and_no_objective_of_the_models_own() -> None:
    runtime = asked()
    answer(runtime, SEARCH, SECRET, NOTES)
    runtime.results(("toolu_1", "noted"))
    runtime.assemble()
    assert "error" in runtime.note(add_constraints=[TOLD])
    runtime.note(objective=TOLD)
    assert TOLD not in runtime.state.model_dump_json()


def test_older_cards_are_read_as_they_were_written() -> None:
    runtime = asked()
    answer(runtime, {"type": "text", "text": "Nobody."})
    text = card_of(runtime).model_dump(mode="json")
    line = {"name": "note", "arguments": "{}"}
    older = TurnCard.model_validate(text | {"did": [line]})
    assert (older.trust, older.did[0].trust) == (Trust.MODEL, Trust.MODEL)
