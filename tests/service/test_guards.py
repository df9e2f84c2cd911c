"""Drift guards over the loop: what is judged, what is said, how a turn ends (capacity spec 6 and 7)."""

from __future__ import annotations

from typing import Any

import pytest

from ctxengine.engine.events import EventType
from ctxengine.engine.trust.levels import Trust
from ctxengine.ledger.models import RunRow
from ctxengine.service.prove import replay_request
from ctxengine.service.specs import Assembled, Content, PolicySpec, ReadingSpec, TakeInput, ToolSpec
from ctxengine.service.take_input import take_input
from tests.cast import PROVIDERS, Call, Runtime, tool

pytestmark = pytest.mark.django_db

TOOLS = (
    tool("lookup", observes=("network",), serves=("web",)),
    tool("emit_metric", presentation="metric"),
)
ASKED = "What is the current price of copper?"


def guarded(tools: tuple[ToolSpec, ...] = TOOLS, **fields: Any) -> Runtime:
    """A runtime whose policy asks for guards."""
    return Runtime(tools=tools, policy=PolicySpec(guards="on"), **fields)


def judged(player: Runtime) -> list[tuple[str, str, int]]:
    """Verdicts so far: guard, verdict, strike."""
    return [
        (event.payload["guard"], event.payload["verdict"], event.payload["strike"])
        for event in player.events(EventType.GUARD_JUDGED)
    ]


def outcome(player: Runtime) -> str:
    """How the newest run ended."""
    return RunRow.objects.get(tenant_id=player.actor.tenant_id, id=player.run).outcome


def body(built: Assembled) -> str:
    """A request's bytes as text."""
    return built.body.decode()


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_current_value_without_a_look_up_gets_one_nudge_and_then_the_platforms_statement(
    provider: str,
) -> None:
    player = guarded(provider=provider)
    player.turn("Note this: copper stood at 9,100 dollars", "Noted: copper stood at 9,100 dollars.")
    player.ask(ASKED)
    first = player.assemble()
    taken = player.say("Copper is at 9,100 dollars.")
    assert (taken.next, (taken.nudge or "")[:17]) == ("redo", "[freshness-check]")
    second = player.assemble()
    assert "[freshness-check] The user wants" in body(second)
    assert body(second).index("9,100 dollars.") < body(second).index("[freshness-check]")
    taken = player.say("It is 9,100 dollars.")
    assert taken.next == "finish"
    assert (taken.statement or "").startswith("[freshness-check] No current value was retrieved")
    (quoted,) = taken.quoted
    player.ask("thanks")
    third = body(player.assemble())
    assert "No current value was retrieved" in third and "quote:answer" in third
    assert judged(player) == [("freshness-check", "repair", 1), ("freshness-check", "closed", 2)]
    assert first.prefix_sha256 == second.prefix_sha256
    assert {
        replay_request(actor=player.actor, request_id=row.id).verdict for row in player.requests
    } == {"identical"}
    spoken = {f"{event.sequence}.0": event for event in player.events(EventType.GUARD_SPOKE)}
    assert spoken[quoted].trust == Trust.EXTERNAL_UNTRUSTED
    assert "(event" in (taken.statement or "")


def test_a_turn_that_is_closed_without_an_answer_ends_degraded() -> None:
    player = guarded()
    player.ask(ASKED)
    player.assemble()
    player.say("9,100 dollars.")
    player.assemble()
    taken = player.say("9,100 dollars, really.")
    assert taken.next == "finish" and "recorded no earlier value" in (taken.statement or "")
    assert (outcome(player), taken.quoted) == ("degraded", [])


def test_an_answer_after_a_successful_look_up_passes() -> None:
    player = guarded()
    player.ask(ASKED)
    player.assemble()
    player.say("", Call("c1", "lookup"))
    player.results(("c1", "copper 9,250"))
    player.assemble()
    assert player.say("Copper is at 9,250 dollars.").next == "finish"
    assert judged(player) == [("freshness-check", "passed", 0)]


def test_a_failed_look_up_is_no_observation() -> None:
    player = guarded()
    player.ask(ASKED)
    player.assemble()
    player.say("", Call("c1", "lookup"))
    player.results(("c1", "timeout"), is_error=True)
    player.assemble()
    assert player.say("Copper is at 9,250 dollars.").next == "redo"


def test_an_explicit_lack_of_live_data_is_an_answer() -> None:
    player = guarded()
    player.ask(ASKED)
    player.assemble()
    assert player.say("I have no live data for that, sorry.").next == "finish"
    assert judged(player) == [("freshness-check", "accepted", 0)]


def test_a_card_with_an_old_figure_is_stopped_before_it_is_shown() -> None:
    player = guarded()
    player.ask(ASKED)
    player.assemble()
    card = Call("c1", "emit_metric", '{"label":"Copper","value":9100}')
    taken = player.say("", card)
    assert taken.next == "redo" and (taken.calls[0].result or "").startswith("[freshness-check]")
    player.assemble()
    taken = player.say("", card._replace(id="c2"))
    assert taken.next == "finish" and outcome(player) == "degraded"
    assert player.events(EventType.PRESENTATION_EMITTED) == []


def test_a_card_beside_a_look_up_is_stopped_without_ending_the_turn() -> None:
    player = guarded()
    player.ask(ASKED)
    player.assemble()
    player.say("", Call("c1", "emit_metric", '{"label":"Copper","value":9100}'))
    player.assemble()
    taken = player.say(
        "", Call("c2", "emit_metric", '{"label":"Copper","value":1}'), Call("c3", "lookup")
    )
    assert taken.next == "tools"
    assert [call.action for call in taken.calls] == ["answered", "execute"]


def test_a_card_about_something_else_is_stopped_once_and_then_replaced_by_the_evidence() -> None:
    player = guarded()
    player.ask("What is the top story about language models today?")
    player.assemble()
    player.say("", Call("c1", "lookup"))
    player.results(("c1", "A laboratory announces a language model that reads maps."))
    player.assemble()
    wrong = Call("c2", "emit_metric", '{"label":"Harbour tide","value":"28 cm"}')
    taken = player.say("", wrong)
    assert (taken.calls[0].result or "").startswith("[topic-mismatch]")
    player.assemble()
    taken = player.say("", wrong._replace(id="c3"))
    assert taken.next == "finish" and outcome(player) == "degraded"
    assert (taken.statement or "").startswith("[topic-mismatch]")
    quotes = [e for e in player.events(EventType.GUARD_SPOKE) if e.payload["role"] == "quote"]
    assert [quote.trust for quote in quotes] == [Trust.EXTERNAL_UNTRUSTED.value]
    player.ask("go on")
    assert "reads maps" in body(player.assemble())


def test_a_card_named_after_what_was_found_passes() -> None:
    player = guarded()
    player.ask("What is the top story today?")
    player.assemble()
    player.say("", Call("c1", "lookup"))
    player.results(("c1", "A laboratory announces a language model that reads maps."))
    player.assemble()
    taken = player.say("", Call("c2", "emit_metric", '{"label":"Laboratory news","value":1}'))
    assert '"ok": true' in (taken.calls[0].result or "")
    player.assemble()
    assert player.say("").next == "finish", "a turn that ends on its card is complete"


def test_an_empty_step_is_asked_for_again_once() -> None:
    player = guarded()
    player.ask("Compare the two plans.")
    player.assemble()
    taken = player.say("")
    assert taken.next == "redo" and (taken.nudge or "").startswith("[empty-step]")
    player.assemble()
    assert player.say("").next == "finish"


def test_an_answer_that_repeats_an_earlier_one_is_turned_back_and_the_third_time_ends_the_turn() -> (
    None
):
    player = guarded()
    said = "The plan has three parts and each of them takes a week."
    player.turn("Describe the plan.", said)
    player.ask("Who wrote the report on bridges?")
    taken = []
    for _ in range(3):
        player.assemble()
        taken.append(player.say(said))
    assert [answer.next for answer in taken] == ["redo", "redo", "finish"]
    assert outcome(player) == "degraded"
    assert (taken[-1].statement or "").startswith("[steering-drift]")


@pytest.mark.parametrize("asked", ["Describe the plan.", "Say that again, please."])
def test_the_same_answer_to_the_same_question_is_right(asked: str) -> None:
    player = guarded()
    said = "The plan has three parts and each of them takes a week."
    player.turn("Describe the plan.", said)
    player.ask(asked)
    player.assemble()
    assert player.say(said).next == "finish"


def test_the_runtimes_own_reading_counts() -> None:
    player = guarded()
    player.ask("Copper, please.", reading=ReadingSpec(act="answer", live_data=True))
    player.assemble()
    assert player.say("9,100 dollars.").next == "redo"
    (taken,) = player.events(EventType.READING_TAKEN)
    assert (taken.payload["source"], taken.payload["live"]) == ("runtime", True)


def test_input_that_came_in_meanwhile_is_heard_before_anything_ends() -> None:
    player = guarded()
    player.ask(ASKED)
    player.assemble()
    player.say("9,100 dollars.")
    player.assemble()
    take_input(
        actor=player.actor, run_id=player.run, spec=TakeInput(message=Content(raw="In euros."))
    )
    taken = player.say("9,100 dollars.")
    assert (taken.next, taken.statement) == ("redo", None)


def test_a_session_without_guards_hears_none() -> None:
    player = Runtime(tools=TOOLS)
    player.ask(ASKED)
    player.assemble()
    assert player.say("9,100 dollars.").next == "finish"
    assert player.events(EventType.GUARD_JUDGED, EventType.READING_TAKEN) == []
