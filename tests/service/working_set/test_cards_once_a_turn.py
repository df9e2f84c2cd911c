"""A card that a later response of its turn shows again in a fence stands in the turn's record once (capacity spec 10)."""

from __future__ import annotations

import pytest

from ctxengine.engine.events import EventType
from ctxengine.engine.turns import closing
from ctxengine.ledger.models import ItemRow
from ctxengine.service.erase import erase_person
from ctxengine.service.pin import set_presentation
from ctxengine.service.specs import Present, PrincipalSpec
from tests.cast import Call, Runtime, tool
from tests.service.working_set.test_loop import body, opened, verdicts

pytestmark = pytest.mark.django_db

CARD = '{"label":"Copper","value":"9100"}'
FENCE = f"```card metric\n{CARD}\n```"
REORDERED = '```card metric\n{"value": "9100", "label": "Copper"}\n```'
OTHER = '```card metric\n{"label":"Zinc","value":"1"}\n```'


def talked(first: str, last: str, *calls: Call) -> Runtime:
    """A small room, where a closed turn takes its record at once: one turn of two responses, the first with a call."""
    return opened_and_said(first, last, calls=calls)


def opened_and_said(*texts: str, calls: tuple[Call, ...] = ()) -> Runtime:
    """The same with any number of responses; the first has these calls."""
    tools = (tool("emit_metric", presentation="metric"), tool("read"))
    runtime = opened(6_500, tools=tools, principal=PrincipalSpec(id="mara"))
    runtime.ask("How dear is copper, and how dear is zinc?")
    runtime.assemble()
    for place, text in enumerate(texts[:-1]):
        runtime.say(text, *(() if place else calls), Call(f"look{place}", "read", "{}"))
        runtime.results((f"look{place}", "nothing new"))
        runtime.assemble()
    runtime.say(texts[-1])
    return runtime


def follow_up(runtime: Runtime) -> str:
    """The next turn's request."""
    runtime.ask("And now?")
    runtime.assemble()
    return body(runtime)


@pytest.mark.parametrize(
    ("first", "last", "calls"),
    [
        ("", f"As said:\n{FENCE}\nThat is all.", (Call("show", "emit_metric", CARD),)),
        (f"So far:\n{FENCE}", f"{OTHER}\n{REORDERED}\n{OTHER}\nThat is all.", ()),
    ],
    ids=["call, then fence", "fence among others"],
)
def test_a_card_stands_once_and_everything_else_stays(
    first: str, last: str, calls: tuple[Call, ...]
) -> None:
    runtime = talked(first, last, *calls)
    shown = follow_up(runtime)
    assert shown.count("Copper") == 1
    assert shown.count("Zinc") == int("Zinc" in first + last)
    assert "That is all." in shown
    (closed,) = runtime.events(EventType.TURN_CLOSED)
    history = [s for s in runtime.requests[-1].manifest["spans"] if s["reason"] == "closed_turn"]
    assert sum(span["tokens"] for span in history) == closed.payload["tokens_full"]
    runtime.say("Nothing now.")
    assert verdicts(runtime) == {"identical"}
    erase_person(actor=runtime.actor, principal="mara", note="asked for it")
    assert verdicts(runtime) <= {"identical", "identical_except"}


def test_plain_text_and_the_next_turn_may_say_it_again() -> None:
    unknown = FENCE.replace("metric", "poem")
    runtime = talked(f"So far:\n{unknown}", f"Again:\n{unknown}\nThat is all.")
    assert follow_up(runtime).count("Copper") == 2
    runtime.say(f"Copper is this:\n{FENCE}\nThere it is.")
    assert follow_up(runtime).count("Copper is this") == 1
    assert body(runtime).count("9100") == 3


def test_a_turn_closed_before_this_was_noted_keeps_its_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as before:
        before.setattr(closing, "repeats_in", lambda units, shown: {})
        runtime = talked(f"So far:\n{FENCE}", f"As said:\n{FENCE}\nThat is all.")
        assert follow_up(runtime).count("Copper") == 2
        runtime.say("Nothing now.")
    assert verdicts(runtime) == {"identical"}
    erase_person(actor=runtime.actor, principal="mara", note="asked for it")
    assert verdicts(runtime) <= {"identical", "identical_except"}


@pytest.mark.parametrize(
    ("first", "calls"),
    [("", (Call("show", "emit_metric", CARD),)), (f"So far:\n{FENCE}", ())],
    ids=["after a call", "after a fence"],
)
def test_an_answer_that_is_only_the_card_again_stays(first: str, calls: tuple[Call, ...]) -> None:
    runtime = talked(first, FENCE, *calls)
    assert follow_up(runtime).count("Copper") == 2
    (closed,) = runtime.events(EventType.TURN_CLOSED)
    history = [s for s in runtime.requests[-1].manifest["spans"] if s["reason"] == "closed_turn"]
    assert sum(span["tokens"] for span in history) == closed.payload["tokens_full"]
    runtime.say("Nothing now.")
    assert verdicts(runtime) == {"identical"}
    erase_person(actor=runtime.actor, principal="mara", note="asked for it")
    assert verdicts(runtime) <= {"identical", "identical_except"}


def spoken(runtime: Runtime) -> list[ItemRow]:
    """What the assistant said, in order."""
    rows = ItemRow.objects.filter(session_id=runtime.session, kind="assistant_message")
    return list(rows.order_by("sequence"))


def show(runtime: Runtime, row: ItemRow, form: str, scope: str) -> None:
    spec = Present(target=f"{row.sequence}.{row.ordinal}", form=form, scope=scope)
    set_presentation(actor=runtime.actor, session_id=runtime.session, spec=spec)


LONG = "It goes on and on. " * 16
"""Long enough for its pointer to be shorter, so that a fold takes it from sight."""


@pytest.mark.parametrize(("form", "scope"), [("excluded", "item"), ("folded", "unit")])
def test_a_card_whose_first_showing_an_act_takes_away_stands_where_it_is_shown_again(
    form: str, scope: str
) -> None:
    runtime = talked(f"So far:\n{FENCE}\n{LONG}", f"As said:\n{FENCE}\nThat is all.")
    show(runtime, spoken(runtime)[0], form, scope)
    shown = follow_up(runtime)
    assert "So far" not in shown and shown.count("Copper") == 1
    runtime.say("Nothing now.")
    show(runtime, spoken(runtime)[0], "automatic", scope)
    again = follow_up(runtime)
    assert "So far" in again and again.count("Copper") == 1
    runtime.say("Nothing now either.")
    assert verdicts(runtime) == {"identical"}
    erase_person(actor=runtime.actor, principal="mara", note="asked for it")
    assert verdicts(runtime) <= {"identical", "identical_except"}


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize(("form", "scope"), [("excluded", "item"), ("folded", "unit")])
def test_a_card_shown_three_times_stands_once_whichever_showing_an_act_takes_away(
    form: str, scope: str, place: int
) -> None:
    middle = f"Once more:\n{FENCE}\n{LONG}"
    runtime = opened_and_said(f"So far:\n{FENCE}\n{LONG}", middle, f"Last:\n{FENCE}\n{LONG}")
    show(runtime, spoken(runtime)[place], form, scope)
    assert follow_up(runtime).count("Copper") == 1
    runtime.say("Nothing now.")
    assert verdicts(runtime) == {"identical"}


def test_a_turn_folded_whole_shows_no_card_and_proves() -> None:
    runtime = talked(f"So far:\n{FENCE}\n{LONG}", f"As said:\n{FENCE}\n{LONG}")
    show(runtime, spoken(runtime)[0], "folded", "turn")
    assert follow_up(runtime).count("Copper") == 0
    runtime.say("Nothing now.")
    assert verdicts(runtime) == {"identical"}
