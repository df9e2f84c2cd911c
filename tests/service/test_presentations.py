"""Cards are ledger entries: acknowledged, known by their schema, written once (capacity spec 10)."""

from __future__ import annotations

import json

import pytest

from ctxengine.engine.events import EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.trust.levels import Trust
from ctxengine.engine.turns.presentation import presentations_of
from ctxengine.service.card_specs import CardSpec
from ctxengine.service.erase import erase_person
from ctxengine.service.presentations.read import presentation_of
from ctxengine.service.prove import replay_request
from ctxengine.service.specs import PrincipalSpec, ServiceError
from tests.cast import Call, Runtime, tool

pytestmark = pytest.mark.django_db

METRIC = '{"value": 29.10, "label": "Temperature"}'


def card_tool(name: str = "emit_metric", type: str = "metric", **fields: object):  # type: ignore[no-untyped-def]
    """A tool whose calls show a card."""
    return tool(name, presentation=type, **fields)


def runtime(**fields: object) -> Runtime:
    """A runtime with one card tool and one that reads."""
    return Runtime(tools=(card_tool(), tool("read")), **fields)  # type: ignore[arg-type]


def test_a_card_call_is_acknowledged_by_the_platform_and_written_as_an_event() -> None:
    player = runtime()
    player.ask("how warm is it")
    player.assemble()
    taken = player.say("", Call("c1", "emit_metric", METRIC))
    (call,) = taken.calls
    assert (call.action, taken.next) == ("answered", "redo")
    (event,) = player.events(EventType.PRESENTATION_EMITTED)
    assert json.loads(call.result or "") == {"presentation": str(event.sequence), "ok": True}
    (card,) = presentations_of(player.log, 1, event.sequence)
    assert card.payload == '{"label":"Temperature","value":29.10}'
    assert (card.title, card.digest) == ("Temperature", card.payload)
    assert card.semantic_type == "metric" and card.trust is Trust.MODEL


def test_a_card_carries_the_lowest_trust_of_what_stood_before_it() -> None:
    player = runtime()
    player.ask("how warm is it")
    player.assemble()
    player.say("", Call("c1", "read"))
    player.results(("c1", "29 degrees"))
    player.assemble()
    player.say("", Call("c2", "emit_metric", METRIC))
    (event,) = player.events(EventType.PRESENTATION_EMITTED)
    (card,) = presentations_of(player.log, 1, event.sequence)
    (result,) = [
        item
        for unit in player.log.units(card.turn, EventSeq(event.sequence))
        for item in unit.items
        if item.source == "tool:read"
    ]
    assert card.derived_from == (str(result.id),)
    assert card.trust is Trust.EXTERNAL_UNTRUSTED


def test_equal_cards_of_a_turn_are_written_once_and_three_batches_of_them_close_it() -> None:
    player = runtime()
    player.ask("how warm is it")
    taken = []
    for number, payload in enumerate(
        (METRIC, '{"label":"Temperature","value":29.10}', METRIC, METRIC)
    ):
        player.assemble()
        taken.append(player.say("", Call(f"c{number}", "emit_metric", payload)))
    assert [answer.next for answer in taken] == ["redo", "redo", "redo", "finish"]
    (event,) = player.events(EventType.PRESENTATION_EMITTED)
    told = json.loads(taken[-1].calls[0].result or "")
    assert told == {"presentation": str(event.sequence), "ok": True, "repeated": True}
    (ended,) = player.events(EventType.RUN_ENDED)
    assert ended.payload["outcome"] == "completed"


def test_a_new_card_between_repeats_starts_the_count_anew() -> None:
    player = runtime()
    player.ask("how warm is it")
    taken = []
    for number in range(6):
        player.assemble()
        value = "1" if number != 3 else "2"
        taken.append(player.say("", Call(f"c{number}", "emit_metric", f'{{"value":{value}}}')))
    assert taken[-1].next == "redo"
    assert len(player.events(EventType.PRESENTATION_EMITTED)) == 2


def test_the_same_card_in_another_turn_is_a_card_of_its_own() -> None:
    player = runtime()
    for number in range(2):
        player.ask("how warm is it")
        player.assemble()
        player.say("", Call(f"c{number}", "emit_metric", METRIC))
        player.assemble()
        player.say("There it is.")
    assert len(player.events(EventType.PRESENTATION_EMITTED)) == 2


def test_a_card_that_does_not_fit_its_schema_is_told_so_and_not_written() -> None:
    schema = '{"type":"object","properties":{"value":{"type":"number"}},"required":["value"]}'
    player = Runtime(tools=(card_tool(input_schema_raw=schema),))
    player.ask("how warm is it")
    player.assemble()
    taken = player.say("", Call("c1", "emit_metric", '{"label":"x"}'))
    assert json.loads(taken.calls[0].result or "")["error"] == "card_does_not_fit"
    assert taken.next == "redo"
    assert player.events(EventType.PRESENTATION_EMITTED) == []


def test_a_card_without_any_field_it_is_known_by_is_refused() -> None:
    player = Runtime(tools=(card_tool("emit_table", "table"),))
    player.ask("list them")
    player.assemble()
    taken = player.say("", Call("c1", "emit_table", '{"colour":"red"}'))
    assert json.loads(taken.calls[0].result or "")["error"] == "card_without_identity"


def test_a_session_registers_card_types_of_its_own() -> None:
    own = CardSpec(version=3, identity=("headline", "points[].name"), title=("headline",))
    player = Runtime(tools=(card_tool("emit_brief", "brief", card=own),))
    player.ask("brief me")
    player.assemble()
    player.say(
        "",
        Call(
            "c1", "emit_brief", '{"headline":"H","points":[{"name":"a","long":"zz"}],"rest":"yy"}'
        ),
    )
    (event,) = player.events(EventType.PRESENTATION_EMITTED)
    (card,) = presentations_of(player.log, 1, event.sequence)
    assert (card.title, card.digest) == ("H", '{"headline":"H","points.name":["a"]}')
    assert card.schema_version == 3


def test_a_card_type_with_impossible_fields_is_refused_by_name() -> None:
    own = CardSpec(identity=("rows[*]",))
    with pytest.raises(ServiceError, match="no selector"):
        Runtime(tools=(card_tool(card=own),))


def test_a_runtime_that_carries_its_cards_out_itself_is_left_to_it() -> None:
    own = CardSpec(execute=True)
    player = Runtime(tools=(card_tool(card=own),))
    player.ask("how warm is it")
    player.assemble()
    taken = player.say("", Call("c1", "emit_metric", METRIC))
    assert (taken.calls[0].action, taken.next) == ("execute", "tools")
    assert len(player.events(EventType.PRESENTATION_EMITTED)) == 1


def test_a_card_in_a_fence_is_the_same_entry() -> None:
    player = runtime()
    player.ask("how warm is it")
    player.assemble()
    taken = player.say(f"Here:\n```card metric\n{METRIC}\n```\nThat is all.")
    assert taken.next == "finish"
    (event,) = player.events(EventType.PRESENTATION_EMITTED)
    (card,) = presentations_of(player.log, 1, event.sequence)
    assert (card.origin, card.payload) == ("fence", '{"label":"Temperature","value":29.10}')


def test_a_fence_that_repeats_a_shown_card_or_shows_an_unknown_type_writes_nothing() -> None:
    player = runtime()
    player.ask("how warm is it")
    player.assemble()
    player.say("", Call("c1", "emit_metric", METRIC))
    player.assemble()
    player.say(f'```card metric\n{METRIC}\n```\n```card other\n{{"a":1}}\n```')
    assert len(player.events(EventType.PRESENTATION_EMITTED)) == 1


def test_requests_with_cards_rebuild_to_their_hashes() -> None:
    player = runtime()
    player.ask("how warm is it")
    player.assemble()
    player.say("", Call("c1", "emit_metric", METRIC))
    player.assemble()
    player.say("There it is.")
    player.ask("and tomorrow")
    player.assemble()
    verdicts = [
        replay_request(actor=player.actor, request_id=row.id).verdict for row in player.requests
    ]
    assert verdicts == ["identical"] * 3


def test_erasing_a_person_takes_what_their_cards_said() -> None:
    player = runtime(principal=PrincipalSpec(id="ada"))
    player.ask("how warm is it")
    player.assemble()
    player.say("", Call("c1", "emit_metric", METRIC))
    (event,) = player.events(EventType.PRESENTATION_EMITTED)
    erase_person(actor=player.actor, principal="ada", note="asked for it")
    (card,) = presentations_of(player.log, 1, event.sequence)
    assert (card.title, card.digest, card.payload) == (None, None, None)
    assert card.semantic_type == "metric"
    shown = presentation_of(actor=player.actor, session_id=player.session, event=event.sequence)
    assert shown["erased"] and shown["payload"] is None
