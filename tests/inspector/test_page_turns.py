"""P8 and P9: turns with cards and values, and stored evidence with its forms and a recall tried out."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.trust.levels import Trust
from ctxengine.ledger.models import ItemRow, Role, Tenant
from ctxengine.service.specs import Actor, PolicySpec
from tests.cast import AT, Runtime
from tests.factories import make_person
from tests.inspector.conftest import Cast, client_of
from tests.shrinking import Shrinker


def result_of(cast: Cast) -> str:
    row = ItemRow.objects.filter(session_id=cast.session.id, kind="tool_result").first()
    assert row is not None
    return f"{row.sequence}.{row.ordinal}"


def test_closed_turns_stand_with_card_form_and_three_values(cast: Cast) -> None:
    path = f"sessions/{cast.session.id}/turns"
    turns = cast.data(f"{path}.json")
    assert [turn["card"]["number"] for turn in turns] == [1, 2, 3]
    assert turns[0]["card"]["card"]["asked"] == "Which test is flaky?"
    assert turns[0]["form"] == "whole"
    for turn in turns:
        parts = [turn[name] for name in ("recency", "relevance", "anaphora")]
        assert turn["value"] == max(parts)
    page = cast.page(f"{path}/")
    assert "Which test is flaky?" in page
    assert "recency" in page
    assert cast.operator.get(cast.url(f"{path}.csv")).getvalue().count(b"\n") == 4


def test_more_cards_take_no_more_queries(cast: Cast) -> None:
    path = f"sessions/{cast.session.id}/turns/"
    taken = set()
    for after in ("1", "2"):
        with CaptureQueriesContext(connection) as seen:
            cast.page(path, after=after)
        taken.add(len(seen))
    assert len(taken) == 1


def test_another_directive_may_be_weighed(cast: Cast) -> None:
    page = cast.page(f"sessions/{cast.session.id}/turns/", **{"for": "<b>Which test is flaky?"})
    assert "as typed" in page
    assert "<b>Which" not in page


def test_evidence_shows_its_forms_and_a_recall_with_its_cost(cast: Cast) -> None:
    item = result_of(cast)
    path = f"sessions/{cast.session.id}/evidence/{item}/"
    page = cast.page(path)
    assert "Recall, tried out" in page
    assert "How it stood in requests" in page
    part = cast.data(f"sessions/{cast.session.id}/evidence/{item}.json", lines="2-3")
    assert part["evidence"]["part"].count("12 passed") == 2
    assert part["part_tokens"] > 0
    for bad in ("x", "0-3", "9-2"):
        assert cast.operator.get(cast.url(path), {"lines": bad}).status_code == 400
    assert (
        cast.operator.get(cast.url(f"sessions/{cast.session.id}/evidence/3.0/")).status_code == 404
    )
    assert f"/evidence/{item}/" in cast.page(f"sessions/{cast.session.id}/items/{item}/")


@pytest.mark.parametrize(
    ("engine", "said", "cut"),
    [
        ("working_set", "up to 30,000 characters whole", "are not shown"),
        ("suffix", "up to 30,000 bytes whole", "bytes left out"),
    ],
)
def test_evidence_says_how_much_an_open_turn_shows_whole(
    cast: Cast, engine: str, said: str, cut: str
) -> None:
    runtime = Runtime(actor=Actor(cast.tenant.id, "system"), extra={"engine": engine})
    runtime.ask("And the long one?")
    runtime.look("toolu_1", "A line of the sheet.\n" * 2_000)
    item = f"{runtime.events(EventType.TOOL_RESULT)[0].sequence}.0"
    page = cast.page(f"sessions/{runtime.session}/evidence/{item}/")
    assert said in page and cut in page
    request = runtime.assemble().request_id
    answer = cast.operator.get(cast.url(f"requests/{request}/items.csv"))
    assert f"over the 30,000 {said.split()[3]} that" in answer.getvalue().decode()


def test_evidence_without_a_limit_shows_both_ends_and_links_to_the_whole(cast: Cast) -> None:
    runtime = Runtime(
        actor=Actor(cast.tenant.id, "system"), policy=PolicySpec(inline_maximum_bytes=1_000_000_000)
    )
    runtime.ask("And the endless one?")
    runtime.look("toolu_1", "A line of the sheet.\n" * 40_000)
    item = f"{runtime.events(EventType.TOOL_RESULT)[0].sequence}.0"
    path = f"sessions/{runtime.session}/evidence/{item}"
    page = cast.page(f"{path}/")
    assert "more than this page does" in page and "are not shown" in page
    assert f'/items/{item}/">All of it</a>' in page
    assert len(page) < 200_000
    twin = cast.data(f"{path}.json")["evidence"]
    assert twin["window_ends"] and len(twin["window"]) < 31_000


def test_what_was_left_out_is_never_said_to_stand_whole(db: None) -> None:
    runtime = Shrinker()
    runtime.talk(3)
    # A cut that no summary came with; the next one has its own.
    floor = {
        "class": "history",
        "floor_sequence": runtime.row.content_sequence + 1,
        "model": runtime.model,
        "plan_total": 1_000_000,
        "policy": "",
        "before": 9_000,
        "after": 0,
        "items": 6,
        "forced_by": "a request",
    }
    cut = EventDraft(type=EventType.YIELD_APPLIED, trust=Trust.PLATFORM, payload=floor)
    runtime.log.append([cut], expected=None, at=AT)
    runtime.talk(3)
    runtime.shrink(through=runtime.row.content_sequence)
    said = [event.sequence for event in runtime.events(EventType.USER_MESSAGE)]
    runtime.mark(str(said[3]), "pinned")
    runtime.mark(str(said[5]), "pinned")
    runtime.ask("And now?")
    runtime.assemble()
    tenant = Tenant.objects.get(id=runtime.actor.tenant_id)
    cast = Cast(tenant, runtime, *[client_of(make_person(tenant, Role.OPERATOR))] * 2)  # type: ignore[arg-type]
    turns = cast.data(f"sessions/{runtime.session}/turns.json")
    assert [turn["form"] for turn in turns] == ["out"] * 3 + ["whole", "out", "whole"]
    assert ["cut" in turn["reason"] for turn in turns] == [True] * 3 + [False] * 3
    for place, words in ((0, "left out"), (3, "whole"), (4, "left out")):
        (stood, *_) = cast.data(f"sessions/{runtime.session}/items/{said[place]}.0.json")[
            "standings"
        ]
        assert stood["form"] == words
