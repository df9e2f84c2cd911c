"""A card in a fence is judged as the call of its tool would be, wherever in the response it stands (capacity spec 10)."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from ctxengine.engine.events import EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.presentations.fences import MAX_FENCES
from ctxengine.engine.turns.closed import cards_of, turn_costs
from ctxengine.engine.turns.presentation import presentations_of
from ctxengine.service.card_specs import CardSpec
from ctxengine.service.plan_specs import SetAuthority
from ctxengine.service.revoke_tool import revoke_tool
from ctxengine.service.rotate_epoch import rotate_epoch
from ctxengine.service.set_authority import set_authority
from tests.cast import Call, Runtime, tool

pytestmark = pytest.mark.django_db

METRIC = '{"value": 29.10, "label": "Temperature"}'
FENCE = f"```card metric\n{METRIC}\n```"


def card_tool(name: str = "emit_metric", **fields: object):  # type: ignore[no-untyped-def]
    return tool(name, presentation="metric", **fields)


def reduced(player: Runtime) -> None:
    set_authority(actor=player.actor, session_id=player.session, spec=SetAuthority(scopes=()))


def revoked(player: Runtime) -> None:
    revoke_tool(actor=player.actor, session_id=player.session, name="emit_metric", note="no")


def removed(player: Runtime) -> None:
    rotate_epoch(
        actor=player.actor,
        session_id=player.session,
        reason="tool_removed_for_security",
        note="leaks",
        tools=("emit_metric",),
    )


ACTS: dict[str, Callable[[Runtime], None]] = {
    "scope_missing": reduced,
    "tool_revoked": revoked,
    "tool_removed": removed,
}


@pytest.mark.parametrize("code", ACTS)
@pytest.mark.parametrize("fenced", [False, True], ids=["call", "fence"])
def test_a_card_that_may_not_be_shown_is_refused_as_a_call_and_as_a_fence(
    code: str, fenced: bool
) -> None:
    player = Runtime(tools=(card_tool(required_scopes=("cards",)), tool("read")))
    player.ask("how warm is it")
    player.assemble()
    ACTS[code](player)
    if fenced:
        taken = player.say(f"Here:\n{FENCE}\nThat is all.")
        assert taken.next == "finish"
    else:
        taken = player.say("", Call("c1", "emit_metric", METRIC))
        assert [call.action for call in taken.calls] == ["refused"]
    assert player.events(EventType.PRESENTATION_EMITTED) == []
    (refused,) = player.events(EventType.CALL_REFUSED)
    assert refused.payload["code"] == code
    (response,) = player.events(EventType.RESPONSE_COMPLETED)
    assert refused.payload["answers"] == f"{response.sequence}.0"


def test_a_refused_fence_stays_in_the_answer() -> None:
    player = Runtime(
        tools=(card_tool(required_scopes=("cards",)),), extra={"engine": "working_set"}
    )
    player.ask("how warm is it")
    player.assemble()
    reduced(player)
    player.say(f"Here:\n{FENCE}\nThat is all.")
    (card,) = cards_of(player.log, [1])
    assert card is not None
    assert "Temperature" in card.narration and card.presentations == ()


def test_another_tool_of_the_type_that_is_allowed_shows_the_fence() -> None:
    player = Runtime(tools=(card_tool(required_scopes=("cards",)), card_tool("show_metric")))
    player.ask("how warm is it")
    player.assemble()
    reduced(player)
    player.say(FENCE)
    (event,) = player.events(EventType.PRESENTATION_EMITTED)
    assert event.payload["tool"] == "show_metric"
    assert player.events(EventType.CALL_REFUSED) == []


def messages(*texts: str) -> str:
    """A Responses body with several messages."""
    output = [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
        for text in texts
    ]
    return json.dumps({"status": "completed", "output": output})


def test_fences_of_every_message_of_a_response_are_read() -> None:
    player = Runtime(provider="openai-responses", tools=(card_tool(),))
    player.ask("how warm is it")
    player.assemble()
    other = '```card metric\n{"value": 3}\n```'
    player.hear(messages(f"First. {METRIC}", f"Then:\n{FENCE}", f"And:\n{other}\n{FENCE}"))
    events = player.events(EventType.PRESENTATION_EMITTED)
    shown = presentations_of(player.log, 1, EventSeq(events[-1].sequence))
    assert [card.payload for card in shown] == [
        '{"label":"Temperature","value":29.10}',
        '{"value":3}',
    ]
    (response,) = player.events(EventType.RESPONSE_COMPLETED)
    assert [card.source for card in shown] == [f"{response.sequence}.1", f"{response.sequence}.2"]


def test_no_response_shows_more_fences_than_are_read() -> None:
    player = Runtime(provider="openai-responses", tools=(card_tool(),))
    player.ask("how warm is it")
    player.assemble()
    fences = [f'```card metric\n{{"value": {n}}}\n```' for n in range(2 * MAX_FENCES)]
    player.hear(messages("\n".join(fences[:MAX_FENCES]), "\n".join(fences[MAX_FENCES:])))
    assert len(player.events(EventType.PRESENTATION_EMITTED)) == MAX_FENCES
    (response,) = player.events(EventType.RESPONSE_COMPLETED)
    (note,) = player.events(EventType.CALL_REFUSED)
    assert note.payload == {
        "answers": f"{response.sequence}.1",
        "code": "too_many_fences",
        "fences": MAX_FENCES,
    }


@pytest.mark.parametrize("calls", [(), (Call("c1", "emit_metric", METRIC),)], ids=["alone", "call"])
def test_of_fences_too_many_those_count_that_show_a_new_card(calls: tuple[Call, ...]) -> None:
    player = Runtime(tools=(card_tool(),))
    player.ask("how warm is it")
    player.assemble()
    fences = [f'```card metric\n{{"value": {n}}}\n```' for n in range(MAX_FENCES)]
    beyond = [
        fences[0],
        '```card other\n{"a":1}\n```',
        '```card metric\n{"value": "new"}\n```',
        FENCE,
    ]
    player.say("\n".join(fences + beyond), *calls)
    assert len(player.events(EventType.PRESENTATION_EMITTED)) == MAX_FENCES + len(calls)
    (note,) = player.events(EventType.CALL_REFUSED)
    assert note.payload["fences"] == 2 - len(calls)


def test_as_many_fences_as_are_read_leave_no_note() -> None:
    player = Runtime(tools=(card_tool(),))
    player.ask("how warm is it")
    player.assemble()
    player.say("\n".join(f'```card metric\n{{"value": {n}}}\n```' for n in range(MAX_FENCES)))
    assert player.events(EventType.CALL_REFUSED) == []


@pytest.mark.parametrize("fenced", [False, True], ids=["call", "fence"])
@pytest.mark.parametrize(
    ("code", "payload"),
    [("card_does_not_fit", '{"label":1}'), ("card_without_identity", "{}")],
)
def test_a_card_that_makes_none_is_noted_as_a_call_and_as_a_fence(
    code: str, payload: str, fenced: bool
) -> None:
    schema = '{"type":"object","properties":{"label":{"type":"string"}}}'
    player = Runtime(
        tools=(card_tool(input_schema_raw=schema, card=CardSpec(identity=("label",))),)
    )
    player.ask("how warm is it")
    player.assemble()
    if fenced:
        player.say(f"```card metric\n{payload}\n```")
    else:
        player.say("", Call("c1", "emit_metric", payload))
    (note,) = player.events(EventType.CALL_REFUSED)
    (response,) = player.events(EventType.RESPONSE_COMPLETED)
    assert note.payload == {"answers": f"{response.sequence}.0", "code": code}
    assert player.events(EventType.PRESENTATION_EMITTED) == []


@pytest.mark.parametrize("fenced", [False, True], ids=["call", "fence"])
@pytest.mark.parametrize("payload", ["series", "log", "escapes"])
def test_a_turn_with_a_large_metric_costs_less_as_a_card(payload: str, fenced: bool) -> None:
    large = {
        "series": json.dumps({"label": "Tide", "series": list(range(20_000))}),
        "log": json.dumps({"label": "Tide", "log": "the tide rose again " * 4_000}),
        "escapes": json.dumps({f"field {n}": "ä\n" * 20 for n in range(500)}),
    }[payload]
    player = Runtime(tools=(card_tool(),), extra={"engine": "working_set"})
    player.ask("how high is the tide")
    player.assemble()
    if fenced:
        player.say(f"```card metric\n{large}\n```")
    else:
        player.say("", Call("c1", "emit_metric", large))
        player.assemble()
        player.say("There it is.")
    (cost,) = turn_costs(player.log)
    assert cost.card < cost.full / 4
    (card,) = cards_of(player.log, [1])
    assert card is not None
    assert " characters ...]" in card.presentations[0].digest
