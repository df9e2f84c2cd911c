"""A card in a fence is shown whatever the response calls beside it, and stands in nobody's way (capacity spec 3 and 10)."""

from __future__ import annotations

from itertools import pairwise

import pytest

from ctxengine.engine.derive import text_of_item
from ctxengine.engine.events import EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import ItemKind
from ctxengine.engine.turns.closed import cards_of, closed_turns, turn_at, turn_costs
from ctxengine.engine.turns.presentation import presentations_of
from ctxengine.engine.turns.record import closed_record
from ctxengine.ledger.models import Event
from ctxengine.service.prove import replay_request
from ctxengine.service.rebuild import rebuild_request
from ctxengine.service.response_events import ResponseEvents
from ctxengine.service.specs import Content, PolicySpec, ResponseTaken, TakeInput
from ctxengine.service.take_input import take_input
from ctxengine.service.wiring import counter_of
from tests.cast import PROVIDERS, Call, Runtime, tool
from tests.reading import seen

pytestmark = pytest.mark.django_db

SHOWN = '{"label":"Temperature","value":29.10}'
FENCE = '```card metric\n{"value": 29.10, "label": "Temperature"}\n```'
TOOLS = (
    tool("emit_metric", presentation="metric"),
    tool("read", observes=("files",)),
    tool("notes", deferred=True),
)
OTHER_CARD = Call("c1", "emit_metric", '{"label":"Wind","value":3}')
BESIDE: dict[str, tuple[Call, ...]] = {
    "executed": (Call("c1", "read"),),
    "executed twice": (Call("c1", "read"), Call("c2", "read")),
    "refused": (Call("c1", "nowhere"),),
    "control": (Call("c1", "find_tools", '{"query":"notes"}'),),
    "card": (OTHER_CARD,),
    "card and executed": (OTHER_CARD, Call("c2", "read")),
}
ASKED = "What is the current temperature at the harbour?"


def opened(provider: str = "openai", guards: str = "off") -> Runtime:
    return Runtime(
        provider=provider,
        tools=TOOLS,
        policy=PolicySpec.model_validate({"guards": guards}),
        extra={"engine": "working_set"},
    )


def go_on(player: Runtime, taken: ResponseTaken) -> None:
    """Report the results that the runtime owes, and ask for the next request."""
    owed = [call.id for call in taken.calls if call.action == "execute"]
    if owed:
        player.results(*((name, f"29.1 degrees by {name}") for name in owed))
    player.assemble()


def shown(player: Runtime) -> list[tuple[str, str]]:
    return [
        (event.payload["origin"], event.payload["source"])
        for event in player.events(EventType.PRESENTATION_EMITTED)
    ]


def proven(player: Runtime) -> None:
    """Every request rebuilds, each holds whole pairs, and inside the turn each begins with the one before."""
    built = [rebuild_request(player.row, row) for row in player.requests]
    for row, request in zip(player.requests, built, strict=True):
        assert replay_request(actor=player.actor, request_id=row.id).verdict == "identical"
        told = seen(request.body)
        calls = [entry.id for entry in told if entry.what == "call"]
        assert sorted(calls) == sorted(entry.id for entry in told if entry.what == "result")
    for (row, before), (following, after) in pairwise(zip(player.requests, built, strict=True)):
        if row.run_id == following.run_id:
            pieces = [(piece.role, piece.data) for piece in before.fragments]
            assert [(p.role, p.data) for p in after.fragments][: len(pieces)] == pieces


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("beside", BESIDE)
def test_a_fence_beside_any_call_is_a_card_and_the_turn_goes_on(provider: str, beside: str) -> None:
    player = opened(provider)
    player.ask(ASKED)
    player.assemble()
    taken = player.say(f"Here:\n{FENCE}\nMore follows.", *BESIDE[beside])
    assert taken.next == ("tools" if "executed" in beside else "redo")
    response = player.events(EventType.RESPONSE_COMPLETED)[0].sequence
    fences = [source for origin, source in shown(player) if origin == "fence"]
    assert fences == [f"{response}.0"]
    go_on(player, taken)
    assert player.say("That is all.").next == "finish"
    player.ask("And tomorrow?")
    player.assemble()
    proven(player)
    (card,) = cards_of(player.log, [1])
    assert card is not None
    assert [line.digest for line in card.presentations][-1] == SHOWN


def test_a_card_in_a_fence_rests_on_the_results_before_it_and_on_none_of_its_own_response() -> None:
    player = opened()
    player.ask(ASKED)
    player.look("c1", "29.1 degrees")
    player.assemble()
    taken = player.say(FENCE, Call("c2", "read"))
    go_on(player, taken)
    player.say("Done.")
    (event,) = player.events(EventType.PRESENTATION_EMITTED)
    results = player.events(EventType.TOOL_RESULT)
    assert event.payload["derived_from"] == [f"{results[0].sequence}.0"]
    assert event.trust == results[0].trust


@pytest.mark.parametrize("before", [False, True], ids=["beside it", "in an earlier response"])
def test_a_card_that_a_tool_emits_is_the_tools_and_its_fence_is_dropped(before: bool) -> None:
    player = opened()
    player.ask(ASKED)
    player.assemble()
    call = Call("c1", "emit_metric", SHOWN)
    if before:
        player.say("", call)
        player.assemble()
        go_on(player, player.say(f"Once more:\n{FENCE}", Call("c2", "read")))
    else:
        go_on(player, player.say(f"Here:\n{FENCE}", call, Call("c2", "read")))
    player.say("That is all.")
    assert [origin for origin, _ in shown(player)] == ["call"]
    proven(player)
    (cost,) = turn_costs(player.log)
    record = closed_record(
        turn_at(player.log, cost).units,
        counter_of(player.row.provider, player.row.model),
        repeats=closed_turns(player.log).repeats([1]),
    )
    said = [text_of_item(item) for unit in record for item in unit.items]
    assert not any("```card" in text for text in said)
    assert any(text.startswith("Once more" if before else "Here") for text in said)


def test_a_fence_with_a_new_card_is_no_batch_of_repeats() -> None:
    player = opened()
    player.ask(ASKED)
    taken = []
    for number in range(5):
        player.assemble()
        fence = f'```card metric\n{{"value": {number}}}\n```' if number in (0, 3) else ""
        taken.append(player.say(fence, Call(f"c{number}", "emit_metric", SHOWN)))
    assert [answer.next for answer in taken] == ["redo"] * 5


def judged(player: Runtime) -> list[tuple[str, int]]:
    return [
        (event.payload["verdict"], event.payload["strike"])
        for event in player.events(EventType.GUARD_JUDGED)
        if event.payload["verdict"] != "passed"
    ]


def spoken(player: Runtime) -> list[Event]:
    return player.events(EventType.GUARD_SPOKE)


def test_a_stale_fence_is_withheld_while_calls_wait_and_costs_no_try() -> None:
    player = opened(guards="on")
    player.ask(ASKED)
    player.assemble()
    taken = player.say(FENCE, Call("c1", "read"))
    assert (taken.next, taken.nudge, shown(player), spoken(player)) == ("tools", None, [], [])
    assert judged(player) == [("withheld", 0)]
    player.results(("c1", "no connection"), is_error=True)
    player.assemble()
    taken = player.say(FENCE)
    assert taken.next == "redo" and (taken.nudge or "").startswith("[freshness-check]")
    assert judged(player) == [("withheld", 0), ("repair", 1)]
    player.assemble()
    proven(player)


@pytest.mark.parametrize("fenced", [False, True], ids=["calls", "fences"])
@pytest.mark.parametrize("first", [False, True], ids=["good first", "bad first"])
def test_a_card_that_is_withheld_without_a_word_takes_no_other_with_it(
    fenced: bool, first: bool
) -> None:
    tools = (tool("lookup", observes=("network",), serves=("web",)), TOOLS[0])
    player = Runtime(tools=tools, policy=PolicySpec(guards="on"))
    player.ask("What is the top story about language models today?")
    player.assemble()
    player.say("", Call("c1", "lookup"))
    player.results(("c1", "A laboratory announces a language model that reads maps."))
    player.assemble()
    cards = [
        '{"label":"Harbour tide","value":"28 cm"}',
        '{"label":"language model reads maps","value":"laboratory"}',
    ]
    if not first:
        cards.reverse()
    if fenced:
        said = "\n\n".join(f"```card metric\n{card}\n```" for card in cards)
        player.say(said, Call("c2", "lookup"))
    else:
        calls = [Call(f"m{place}", "emit_metric", card) for place, card in enumerate(cards)]
        player.say("", *calls, Call("c2", "lookup"))
    (event,) = player.events(EventType.PRESENTATION_EMITTED)
    shown_card = presentations_of(player.log, 1, EventSeq(event.sequence))[0]
    assert "reads maps" in shown_card.payload


def test_a_stale_fence_beside_answered_calls_is_told_of_behind_their_results() -> None:
    player = opened(guards="on")
    player.ask(ASKED)
    player.assemble()
    find = Call("c1", "find_tools", '{"query":"notes"}')
    taken = player.say(FENCE, find)
    assert taken.next == "redo" and (taken.nudge or "").startswith("[freshness-check]")
    assert shown(player) == []
    (nudge,) = spoken(player)
    assert nudge.sequence > player.events(EventType.TOOL_RESULT)[-1].sequence
    player.assemble()
    taken = player.say(FENCE, find._replace(id="c2"))
    assert taken.next == "finish" and (taken.statement or "").startswith("[freshness-check]")
    assert judged(player) == [("repair", 1), ("closed", 2)]
    player.ask("And tomorrow?")
    player.assemble()
    proven(player)


def test_a_guard_says_once_what_it_says_of_a_call_and_of_the_fence_beside_it() -> None:
    player = opened(guards="on")
    player.ask(ASKED)
    player.assemble()
    taken = player.say(FENCE, OTHER_CARD)
    assert (taken.next, taken.nudge, spoken(player)) == ("redo", None, [])
    assert (taken.calls[0].result or "").startswith("[freshness-check]")
    assert judged(player) == [("repair", 1)]


def test_a_fence_that_the_user_has_talked_over_is_withheld_without_a_word() -> None:
    player = opened(guards="on")
    player.ask(ASKED)
    player.assemble()
    take_input(
        actor=player.actor,
        run_id=player.run,
        spec=TakeInput(message=Content(raw="The current one in Kelvin?")),
    )
    taken = player.say(FENCE)
    assert (taken.next, taken.nudge, shown(player), spoken(player)) == ("redo", None, [], [])
    assert judged(player) == [("withheld", 0)]


def test_events_of_a_fence_stand_behind_all_that_answers_the_calls() -> None:
    player = opened()
    player.ask(ASKED)
    player.assemble()
    player.say(FENCE, OTHER_CARD, Call("c2", "nowhere"))
    kinds = [event.type for event in player.events()]
    assert kinds[-1] == EventType.PRESENTATION_EMITTED
    step = player.log.units(EventSeq(1), EventSeq(player.events()[-1].sequence + 1))[-1]
    kinds_of_items = [item.kind for item in step.items]
    assert kinds_of_items[-2:] == [ItemKind.TOOL_RESULT] * 2


def test_a_turn_from_before_fences_beside_calls_were_read_keeps_its_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    player = opened()
    with monkeypatch.context() as before:
        before.setattr(ResponseEvents, "_fenced", lambda self, drafts: [])
        player.ask(ASKED)
        player.assemble()
        go_on(player, player.say(f"Here:\n{FENCE}", Call("c1", "read")))
        player.say("That is all.")
        player.ask("And tomorrow?")
        player.assemble()
    go_on(player, player.say(f"Then:\n{FENCE}", Call("c2", "read")))
    player.say("There it is.")
    player.ask("And the day after?")
    player.assemble()
    assert len(shown(player)) == 1
    proven(player)
