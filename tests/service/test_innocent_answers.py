"""What the guards must leave alone, and what must not slip past them (capacity spec 6 and 7)."""

from __future__ import annotations

import json

import pytest

from ctxengine.engine.events import EventType
from ctxengine.engine.guards.freshness import admits_no_live_data
from ctxengine.service.specs import Content, TakeInput
from ctxengine.service.take_input import take_input
from tests.cast import Call, Runtime, tool
from tests.service.test_guards import ASKED, guarded, judged

pytestmark = pytest.mark.django_db

LOOKING = (
    tool("clock", observes=("network",)),
    tool("handbook"),
    tool("emit_metric", presentation="metric"),
    tool("emit_table", presentation="table"),
)
TIME = "2026-11-30T07:00"
GREEN = "Yes, all twelve tests passed."


def late(player: Runtime, text: str) -> None:
    """The user says more while the run is open."""
    take_input(actor=player.actor, run_id=player.run, spec=TakeInput(message=Content(raw=text)))


def shows(player: Runtime, name: str, arguments: str) -> bool:
    """Whether a card is let through."""
    player.assemble()
    (call,) = player.say("", Call("card", name, arguments)).calls
    return '"ok": true' in (call.result or "")


@pytest.mark.parametrize(
    "text",
    [
        "There is no doubt that the current price of copper is 9,100 dollars.",
        "Prices moved without a pause; no change, so the latest copper price is 9,100 dollars.",
        "It is no secret that the latest price is 9,100.",
        "Without further ado: the current price is 9,100 dollars.",
        "No. The current price is 9,100.",
        "It has no change against the latest close: 9,100",
        "I have no current data beyond this: 9,100 dollars.",
        "Keine Sorge, der aktuelle Kurs ist 9100.",
        "Il fait beau, pas de pluie, le cours actuel est 9100.",
        "Sin duda el precio actual es 9100 en tiempo real.",
        "没有疑问，当前价格是9100。",
    ],
)
def test_a_sentence_that_states_the_figure_is_no_admission(text: str) -> None:
    assert not admits_no_live_data(text)
    player = guarded()
    player.ask(ASKED)
    player.assemble()
    assert player.say(text).next == "redo"
    assert judged(player)[-1][:2] == ("freshness-check", "repair")


def test_a_card_may_rest_on_what_any_tool_of_the_run_gave() -> None:
    player = guarded(LOOKING)
    player.ask("Make a card of what the handbook says on leave")
    player.assemble()
    player.say("", Call("a", "clock"), Call("b", "handbook"))
    player.results(("a", TIME), ("b", "Urlaub: 30 freie im Jahr"))
    assert shows(player, "emit_table", '{"title":"Urlaub","columns":["freie"],"rows":[["30"]]}')


def test_a_card_may_rest_on_what_was_recalled() -> None:
    player = guarded(LOOKING, extra={"engine": "working_set"})
    player.ask("Read the handbook.")
    player.look("a", "Quarterly turnover 480 thousand euros in Bremen", "handbook")
    player.assemble()
    player.say("Got it, thank you very much.")
    (result,) = player.events(EventType.TOOL_RESULT)
    player.ask("Do the first one as a card")
    player.assemble()
    wanted = json.dumps({"id": f"{result.sequence}.0"})
    player.say("", Call("x", "clock"), Call("r", "recall", wanted))
    player.results(("x", TIME))
    assert shows(player, "emit_metric", '{"label":"Turnover Bremen","value":"480 thousand euros"}')


@pytest.mark.parametrize(
    ("asked", "found", "card"),
    [
        ("How hot is it outside?", '{"temp_c":29.1}', '{"label":"Temperature","value":"29.1 °C"}'),
        ("How many came?", '{"n":"1,204"}', '{"label":"Visitors","value":1204}'),
        ("What is in the box?", "two apples", '{"label":"An apple","value":2}'),
    ],
)
def test_a_number_or_another_form_of_a_word_is_ground_enough(
    asked: str, found: str, card: str
) -> None:
    player = guarded(LOOKING)
    player.ask(asked)
    player.look("a", found, "clock")
    assert shows(player, "emit_metric", card)


def test_all_that_the_user_said_in_the_run_is_ground() -> None:
    player = guarded(LOOKING)
    player.ask("Show a card with my favourite colour, which is turquoise")
    player.look("a", "ok 200", "clock")
    late(player, "yes, go on")
    assert shows(player, "emit_metric", '{"label":"Favourite colour","value":"turquoise"}')


@pytest.mark.parametrize("text", ["", "There it is."])
def test_a_card_shown_over_and_over_does_not_end_the_turn_while_the_user_waits_to_be_heard(
    text: str,
) -> None:
    player = guarded(LOOKING)
    player.ask("Show the metric for copper")
    card = '{"label":"Copper","value":9100}'
    following = []
    for number in range(4):
        player.assemble()
        if number == 3:
            late(player, "Wait: also show zinc please")
        following.append(player.say(text, Call(f"c{number}", "emit_metric", card)).next)
    assert following[-1] == "redo"
    assert ("repeated-card", "closed", 3) not in judged(player)
    assert "zinc" in player.assemble().body.decode()


def test_two_questions_that_were_each_looked_up_may_have_one_answer() -> None:
    player = guarded(LOOKING)
    for number, asked in enumerate(("Is the api green?", "And is the web client green?")):
        player.ask(asked)
        player.look(f"k{number}", f"run {number}: 12 passed, 0 failed", "clock")
        player.assemble()
        assert player.say(GREEN).next == "finish"
    assert judged(player)[-1][:2] == ("steering-drift", "accepted")


def test_an_answer_that_nobody_looked_up_is_still_turned_back() -> None:
    player = guarded(LOOKING)
    player.ask("Is the api green?")
    player.look("k", "12 passed, 0 failed", "clock")
    player.assemble()
    player.say(GREEN)
    player.ask("And is the web client green?")
    player.assemble()
    assert player.say(GREEN).next == "redo"
