"""What an operator left out reaches no model again: not in requests, in the platform's words, by `recall` (design 8)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxengine.engine.events import EventType
from ctxengine.ledger.models import Event
from ctxengine.service.pin import set_presentation
from ctxengine.service.specs import PolicySpec, Present, ResetSession, ResponseTaken
from ctxengine.service.working_set.reset import reset_session
from tests.cast import PROVIDERS, Call, Runtime, tool
from tests.service.working_set.test_loop import body, plans, verdicts

pytestmark = pytest.mark.django_db

CANARY = "QUETZALWORD"
TOOLS = (
    tool("read"),
    tool("lookup", observes=("network",)),
    tool("emit_metric", presentation="metric"),
)
FENCED = '```card metric\n{"label":"Copper price","value":"' + CANARY + ' 9100 dollars"}\n```'


def small(**fields: Any) -> Runtime:
    """A session whose older turns soon stand in a packet."""
    return Runtime(
        tools=TOOLS,
        window=6_000,
        max_output=500,
        policy=PolicySpec(history_floor=200),
        extra={"engine": "working_set"},
        **fields,
    )


def leave_out(runtime: Runtime, event: Event, ordinal: int = 0, form: str = "excluded") -> None:
    spec = Present(
        target=f"{event.sequence}.{ordinal}", form=form, scope="item", note="not for the model"
    )
    set_presentation(actor=runtime.actor, session_id=runtime.session, spec=spec)


def fill(runtime: Runtime, count: int, first: int) -> None:
    for number in range(first, first + count):
        runtime.turn(
            f"Tell me about harbour number{number} and its lamps. " + "It matters. " * 20,
            f"Harbour number{number} has {number} lamps. " + "They shine. " * 24,
        )


def told(taken: ResponseTaken) -> str:
    """Everything that a response is answered with."""
    calls = [call.result or "" for call in taken.calls]
    return "\n".join([taken.nudge or "", taken.statement or "", *calls])


def holding(runtime: Runtime) -> list[Event]:
    """The items that hold the canary: a directive, a result, an answer with a card, and the directive behind them."""
    asked = [e for e in runtime.events(EventType.USER_MESSAGE) if CANARY in content(runtime, e)]
    found = [e for e in runtime.events(EventType.TOOL_RESULT) if CANARY in content(runtime, e)]
    said = [
        e for e in runtime.events(EventType.RESPONSE_COMPLETED) if CANARY in content(runtime, e)
    ]
    return [*asked, *found, *said]


def content(runtime: Runtime, event: Event) -> str:
    return (runtime.log.body(str(event.body_id)) or "") if event.body_id else ""


def secret_turns(runtime: Runtime) -> None:
    """A directive, a result and an answer with a card, each with the canary."""
    runtime.ask(f"Note the copper price: {CANARY} says 9100 dollars.")
    runtime.look("s1", f"{CANARY}: copper price 9100 dollars", "lookup")
    runtime.assemble()
    runtime.say(f"{CANARY} says that the copper price is 9100 dollars.\n{FENCED}")


def with_canary_in_packet_and_thread(runtime: Runtime) -> None:
    """An open run whose request holds the canary in both, as it stood before any act."""
    fill(runtime, 11, 0)
    secret_turns(runtime)
    for number in range(14):
        runtime.ask(f"{CANARY} number{number} is what I ask about. " + "It matters. " * 20)
        shown = runtime.assemble().body.decode()
        if plans(runtime)[-1]["packet_through"] >= 12 and "[thread]" in shown:
            break
        runtime.say(f"Pier number{number} has {number} lamps. " + "They shine. " * 24)
    runtime.say("That is no pier that anybody knows of here.")
    runtime.ask("What is the current copper price?")
    shown = runtime.assemble().body.decode()
    packet = shown[shown.index("[summary]") : shown.index("[end of summary]")]
    thread = shown[shown.index("[thread]") :].partition("</untrusted")[0]
    assert plans(runtime)[-1]["packet_through"] >= 12
    assert CANARY in packet and CANARY in thread


@pytest.mark.parametrize("provider", PROVIDERS)
def test_nothing_left_out_is_shown_said_or_recalled_again(provider: str) -> None:
    runtime = small(provider=provider)
    with_canary_in_packet_and_thread(runtime)
    (shown,) = runtime.events(EventType.PRESENTATION_EMITTED)
    runtime.say("", Call("r0", "read"))

    out = holding(runtime)
    assert len(out) > 3
    for event in out:
        leave_out(runtime, event)
    requests = len(runtime.requests)
    heard = []

    # The open run: its packet and its thread were sent before the act.
    runtime.results(("r0", "nothing there"))
    asked_for = [
        *({"id": f"{event.sequence}.0"} for event in out[-3:]),
        {"turn": "12"},
        {"presentation": str(shown.sequence)},
        {"id": str(shown.sequence)},
    ]
    for number, wish in enumerate(asked_for):
        runtime.assemble()
        heard.append(told(runtime.say("", Call(f"q{number}", "recall", json.dumps(wish)))))
    # Freshness: one nudge, then the statement with the last recorded figure.
    for text in ("It is 8 dollars.", "It is 8 dollars, really."):
        runtime.assemble()
        heard.append(told(taken := runtime.say(text)))
    assert taken.statement and taken.statement.startswith("[freshness-check]")

    # A later run: topic, with what it found left out as well.
    runtime.ask("Show the copper price.")
    runtime.look("t1", f"{CANARY} again", "lookup")
    leave_out(runtime, runtime.events(EventType.TOOL_RESULT)[-1])
    for number in range(2):
        runtime.assemble()
        wrong = Call(f"w{number}", "emit_metric", '{"label":"Zebra","value":"stripes"}')
        heard.append(told(taken := runtime.say("", wrong)))
    assert taken.statement and taken.statement.startswith("[topic-mismatch]")
    fill(runtime, 9, 11)

    assert not [text for text in heard if CANARY in text]
    bodies = [body(runtime, place) for place in range(requests, len(runtime.requests))]
    # The look-up's own request came before its result was left out.
    assert [place for place, text in enumerate(bodies) if CANARY in text] == []
    assert verdicts(runtime) == {"identical"}


def test_a_handoff_taken_from_the_session_is_not_shown_once_something_of_it_was_left_out() -> None:
    runtime = small()
    secret_turns(runtime)
    fill(runtime, 1, 0)
    spec = ResetSession(note="afresh")
    assert reset_session(actor=runtime.actor, session_id=runtime.session, spec=spec).by == "ledger"
    runtime.ask("And now?")
    assert CANARY in runtime.assemble().body.decode()
    runtime.say("", Call("r0", "read"))
    for event in holding(runtime):
        leave_out(runtime, event)
    runtime.results(("r0", "nothing there"))
    shown = runtime.assemble().body.decode()
    assert CANARY not in shown
    assert "[handoff] 2 earlier turns" in shown and "[left out by an operator]" in shown
    runtime.say("Now we go on, as far as that goes.")
    runtime.turn("And then?", "Then we go on as well, as before.")
    assert CANARY not in body(runtime)
    # Given back, it is shown as it was; and what was sent in between still proves.
    for event in holding(runtime):
        leave_out(runtime, event, form="automatic")
    runtime.ask("Once more.")
    assert CANARY in runtime.assemble().body.decode()
    assert verdicts(runtime) == {"identical"}


def test_a_handoff_that_the_runtime_wrote_is_its_own() -> None:
    runtime = small()
    secret_turns(runtime)
    spec = ResetSession(handoff="Copper was looked up.", note="afresh")
    reset_session(actor=runtime.actor, session_id=runtime.session, spec=spec)
    leave_out(runtime, holding(runtime)[0])
    runtime.ask("And now?")
    assert "Copper was looked up." in runtime.assemble().body.decode()


def test_a_card_made_beside_a_result_that_was_left_out_is_not_given_back() -> None:
    runtime = small()
    runtime.ask("Show the price of tin.")
    runtime.look("a", f"{CANARY} 1234", "lookup")
    runtime.assemble()
    runtime.say("", Call("c", "emit_metric", '{"label":"Price of tin","value":1234}'))
    runtime.assemble()
    runtime.say("Here it is for you.")
    (shown,) = runtime.events(EventType.PRESENTATION_EMITTED)
    (found,) = [e for e in holding(runtime) if e.type == EventType.TOOL_RESULT.value]
    runtime.ask("Once more?")
    wish = json.dumps({"presentation": str(shown.sequence)})
    runtime.assemble()
    assert "1234" in told(runtime.say("", Call("q", "recall", wish)))
    leave_out(runtime, found)
    runtime.assemble()
    answered = told(runtime.say("", Call("p", "recall", wish)))
    assert "1234" not in answered and "left out by an operator" in answered
