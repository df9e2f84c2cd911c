"""Drift guards over the loop: what is judged, what is said, how a turn ends (capacity spec 6 and 7)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from ctxengine.engine.derive import text_of_item
from ctxengine.engine.events import EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.trust.levels import Trust
from ctxengine.ledger.models import RunRow, UnitRow
from ctxengine.ledger.queries.turns import turn_spans, turns_from
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


def closed_by_the_topic(results: Sequence[str]) -> tuple[Runtime, str, list[str]]:
    """A turn that looked up these results and showed a card about something else twice: its statement and its quotes."""
    player = guarded()
    player.ask("What is the top story about language models today?")
    for number, text in enumerate(results):
        player.look(f"r{number}", text, name="lookup")
    wrong = Call("c2", "emit_metric", '{"label":"Harbour tide","value":"28 cm"}')
    for id in ("x1", "x2"):
        player.assemble()
        taken = player.say("", wrong._replace(id=id))
    items = {
        str(item.id): item
        for unit in player.log.units(EventSeq(1), EventSeq(10_000))
        for item in unit.items
    }
    return player, taken.statement or "", [text_of_item(items[id]) for id in taken.quoted]


@pytest.mark.parametrize("found", [1, 3, 4, 9])
def test_a_statement_says_how_many_results_it_does_not_quote(found: int) -> None:
    results = [f"A laboratory announces language model number {n}." for n in range(found)]
    _, statement, quotes = closed_by_the_topic(results)
    assert quotes == results[-3:]
    if found <= 3:
        assert statement.endswith("What was found is quoted below.")
    else:
        assert f"The last 3 of {found} results" in statement
        assert f"{found - 3} earlier ones are not" in statement


@pytest.mark.parametrize(
    "result",
    [
        "A laboratory announces a language model.\n" * 400,
        json.dumps(
            {"stories": [{"title": f"Language model {n}", "body": "x" * 500} for n in range(40)]}
        ),
        "# Language models\n\nA first paragraph.\n\n" + "## More\n\nLong text about them.\n" * 200,
        json.dumps(
            [
                {"title": f"Model {n}", "url": f"https://a.example/{n}", "content": "y" * 900}
                for n in range(9)
            ]
        ),
    ],
    ids=["output", "json", "markdown", "search"],
)
def test_a_quote_in_short_form_says_so_and_never_speaks_to_the_model(result: str) -> None:
    _, statement, (quote,) = closed_by_the_topic([result])
    assert len(quote) < len(result)
    assert quote.endswith(f"[a short form of a result of {len(result):,} characters]")
    assert "recall" not in statement + quote and "[evidence:" not in quote


@pytest.mark.parametrize("deep", [False, True], ids=["at the start", "deep in the text"])
@pytest.mark.parametrize("shown", [False, True], ids=["prose", "card"])
def test_an_earlier_figure_in_a_long_text_is_quoted_with_marks(deep: bool, shown: bool) -> None:
    words = "and copper is said to move with the weather " * 30
    label = f"Copper {words}stood at 9,100 dollars {words if not deep else ''}".strip()
    player = guarded()
    player.ask("Note this: copper stood at 9,100 dollars")
    player.assemble()
    if shown:
        player.say("", Call("c0", "emit_metric", json.dumps({"label": label})))
        player.assemble()
        player.say("There it is.")
    else:
        player.say(label + ".")
    player.ask(ASKED)
    for _ in range(2):
        player.assemble()
        taken = player.say("Copper is at 9,100 dollars.")
    (quoted,) = taken.quoted
    (event,) = [e for e in player.events(EventType.GUARD_SPOKE) if f"{e.sequence}.0" == quoted]
    text = player.log.body(str(event.body_id)) or ""
    assert "9,100" in text and len(text) < 500
    assert " characters before ...] " in text
    assert text.endswith(" more characters ...]") is (not deep)


def test_a_short_figure_is_quoted_as_it_was_said() -> None:
    player = guarded()
    player.turn("Note this: copper stood at 9,100 dollars", "Noted: copper stood at 9,100 dollars.")
    player.ask(ASKED)
    for _ in range(2):
        player.assemble()
        player.say("Copper is at 9,100 dollars.")
    quote = player.events(EventType.GUARD_SPOKE)[-1]
    assert player.log.body(str(quote.body_id)) == "Noted: copper stood at 9,100 dollars."


def test_the_steering_nudge_names_the_turn_and_never_says_the_message_again() -> None:
    player = guarded()
    said = "The plan has three parts and each of them takes a week."
    player.turn("Describe the plan.", said)
    player.turn("And the costs?", "They come to about four thousand in all, I would say.")
    player.ask("Who wrote the report on bridges?")
    player.assemble()
    nudge = player.say(said).nudge or ""
    assert "turn 3" in nudge and "bridges" not in nudge


@pytest.mark.parametrize("engine", ["suffix", "working_set"])
@pytest.mark.parametrize("late", [0, 1], ids=["plain", "late input"])
def test_the_number_of_the_open_turn_is_found_without_reading_every_unit(
    engine: str, late: int
) -> None:
    player = guarded(extra={"engine": engine})
    said = "The plan has three parts and each of them takes a week."
    for number in range(12):
        player.turn(f"And the costs {number}?", f"About {number} thousand in all, I would say now.")
    player.turn("Describe the plan.", said)
    player.ask("Who wrote the report on bridges?")
    for number in range(late):
        player.assemble()
        message = Content(raw=f"And who printed it, by the way? {number}")
        take_input(actor=player.actor, run_id=player.run, spec=TakeInput(message=message))
        player.say("Let me see.")
    player.assemble()
    with CaptureQueriesContext(connection) as asked:
        nudge = player.say(said).nudge or ""
    assert f"turn {turn_spans(player.actor.tenant_id, player.session)[-1].number}" in nudge
    of_units = [query["sql"] for query in asked if 'FROM "unit"' in query["sql"]]
    assert all("COUNT(" in sql or "LIMIT" in sql or '"sequence" >=' in sql for sql in of_units)


def test_turns_are_counted_as_they_are_split_from_whichever_one_on() -> None:
    player = guarded()
    for number in range(4):
        player.ask(f"Mend lamp {number}.")
        player.assemble()
        if number % 2:
            message = Content(raw="And the wall, while you are there.")
            take_input(actor=player.actor, run_id=player.run, spec=TakeInput(message=message))
            player.say("Mended the lamp.")
            player.assemble()
        player.say(f"Mended lamp {number} and looked at the wall.")
    spans = turn_spans(player.actor.tenant_id, player.session)
    assert len(spans) == turns_from(player.actor.tenant_id, player.session) == 4
    for span in spans:
        counted = turns_from(player.actor.tenant_id, player.session, span.first)
        assert span.number - 1 + counted == len(spans)


@pytest.mark.parametrize("apart", range(5))
def test_units_of_no_run_open_turns_of_their_own_in_either_count(apart: int) -> None:
    player = guarded()
    for number in range(4):
        player.turn(f"Mend lamp {number}.", f"Mended lamp {number} and looked at the wall.")
    of = {"tenant_id": player.actor.tenant_id, "session_id": player.session}
    places = UnitRow.objects.filter(**of).order_by("sequence").values_list("sequence", flat=True)
    for place in [p for n, p in enumerate(places) if (n * 3 + apart) % 5 < 2]:
        UnitRow.objects.filter(**of, sequence=place).update(run_id=None)
    spans = turn_spans(player.actor.tenant_id, player.session)
    for span in spans:
        counted = turns_from(player.actor.tenant_id, player.session, span.first)
        assert span.number - 1 + counted == len(spans)


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
