"""A turn of which no card can be made bars no session: it gets a bare card, and the log says so without its content."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from ctxengine.engine.events import EventType
from ctxengine.engine.turns import closing
from ctxengine.engine.turns.closed import cards_of
from ctxengine.service.specs import ResetSession
from ctxengine.service.turns import close_turns
from ctxengine.service.turns.cards import cards_page
from ctxengine.service.verify import verify_session
from ctxengine.service.working_set.reset import reset_session
from tests.cast import Runtime

pytestmark = pytest.mark.django_db

ODD = "the odd lighthouse"
STEPS = [
    (closing, "card_of"),
    (closing, "index_terms"),
    (closing, "closed_record"),
    (closing, "without_shown"),
    (close_turns, "records_of"),
    (close_turns, "own_words"),
]


@pytest.fixture
def breaks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """One step of the close that cannot stand one word."""
    module, name = request.param
    sound = getattr(module, name)
    seen: list[Any] = []

    def breaking(*args: Any, **named: Any) -> Any:
        if ODD in repr((args, named)) or (name == "records_of" and not seen):
            seen.append(args)
            raise RecursionError(f"nested too deeply: {ODD}")
        return sound(*args, **named)

    monkeypatch.setattr(module, name, breaking)
    return str(name)


@pytest.mark.parametrize("breaks", STEPS, indirect=True, ids=[name for _, name in STEPS])
def test_an_odd_turn_gets_a_bare_card_and_the_session_goes_on(
    breaks: str, caplog: pytest.LogCaptureFixture
) -> None:
    runtime = Runtime(extra={"engine": "working_set"})
    with caplog.at_level(logging.ERROR):
        runtime.ask(f"What of {ODD}?")
        runtime.look("c1", ODD, arguments=f'{{"path":"{ODD}"}}')
        runtime.assemble()
        runtime.say(f"Nothing of {ODD}.")
    (said,) = [record for record in caplog.records if "bare card" in record.getMessage()]
    assert "RecursionError" in said.getMessage() and ODD not in caplog.text
    runtime.turn("And the pier?", "It stands.")
    first, second = runtime.events(EventType.TURN_CLOSED)
    assert first.payload["bare"] is True and "bare" not in second.payload
    bare, whole = cards_of(runtime.log, [1, 2])
    assert bare is not None and whole is not None
    assert (bare.asked, bare.outcome) == (f"What of {ODD}?", "completed")
    assert (bare.did, bare.narration, bare.more_calls) == ((), "", 1)
    assert whole.narration == "It stands."
    page = cards_page(actor=runtime.actor, session_id=runtime.session)
    assert [view.number for view in page.cards] == [1, 2]
    reset_session(actor=runtime.actor, session_id=runtime.session, spec=ResetSession())
    runtime.turn("And now?", "All is well.")
    assert verify_session(runtime.row).problem is None


def test_cards_on_demand_are_bare_too(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = Runtime()
    runtime.turn("What of the pier?", "It stands.")

    def breaking(*_: Any, **__: Any) -> Any:
        raise ValueError(ODD)

    monkeypatch.setattr(closing, "card_of", breaking)
    (view,) = cards_page(actor=runtime.actor, session_id=runtime.session).cards
    assert view.card is not None
    assert (view.card.asked, view.card.narration) == ("What of the pier?", "")
