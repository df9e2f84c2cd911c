"""P5: what drift guards said of the answer to a request, with the figures they rest on."""

from __future__ import annotations

from ctxengine.service.specs import Actor, PolicySpec
from tests.cast import Call, Runtime, tool
from tests.inspector.conftest import Cast


def judged_session(cast: Cast) -> Runtime:
    """A session of the tenant whose first answer was turned back."""
    player = Runtime(
        actor=Actor(cast.tenant.id, "system"),
        tools=(tool("lookup", observes=("network",)),),
        policy=PolicySpec(guards="on"),
    )
    player.ask("What is the current price of copper?")
    player.assemble()
    player.say("9,100 dollars.")
    player.assemble()
    player.say("I have no live data for that.")
    return player


def test_a_request_shows_the_verdicts_on_its_own_answer(cast: Cast) -> None:
    first, second = judged_session(cast).requests
    page = cast.page(f"requests/{first.id}/")
    assert "freshness-check" in page and "▲ repair" in page and "observations 0" in page
    page = cast.page(f"requests/{second.id}/")
    assert "accepted" in page and "▲ repair" not in page
    (found,) = cast.data(f"requests/{first.id}.json")["frame"]["guards"]
    assert (found["verdict"], found["strike"]) == ("repair", 1)


def test_a_request_without_guards_shows_no_table_of_them(cast: Cast) -> None:
    page = cast.page(f"requests/{cast.session.requests[-1]}/")
    assert "Drift guards" not in page


def test_a_card_that_was_withheld_without_a_word_is_shown_as_stopped(cast: Cast) -> None:
    player = Runtime(
        actor=Actor(cast.tenant.id, "system"),
        tools=(
            tool("lookup", observes=("network",)),
            tool("emit_metric", presentation="metric"),
        ),
        policy=PolicySpec(guards="on"),
    )
    player.ask("What is the current price of copper?")
    player.assemble()
    player.say('```card metric\n{"label":"Copper","value":9100}\n```', Call("c1", "lookup"))
    page = cast.page(f"requests/{player.requests[0].id}/")
    assert "▲ withheld" in page and "strike" not in page.split("Drift guards")[1][:600]
