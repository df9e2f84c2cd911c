"""Gates: uniqueness and dispensability of `working_set` requests (design 7.19 and 11).

A directive stands once, as its turn or on its card; a promoted turn and its card are one fact at two fidelities. Whatever
processes remember can be lost: the bytes stay.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxengine.engine.derive import text_of_item
from ctxengine.engine.history.projection import Projection
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import ItemKind, Unit
from ctxengine.ledger.models import Checkpoint
from ctxengine.service import warm
from ctxengine.service.rebuild import rebuild_request
from tests.service.working_set.test_loop import live, opened, verdicts
from tests.working_lab import Exchange, WorkingLab, sessions

pytestmark = pytest.mark.gate
_WORD = re.compile(r"zq\d+z")


def marked(turns: Sequence[Exchange]) -> WorkingLab:
    """A session whose every directive holds a word of its own."""
    lab = WorkingLab()
    for number, turn in enumerate(turns):
        lab.live(turn._replace(asked=f"zq{number}z {turn.asked}"))
    return lab


def words(units: Sequence[Unit]) -> Counter[str]:
    return Counter(
        word
        for unit in units
        for item in unit.items
        if item.kind is ItemKind.USER_MESSAGE
        for word in _WORD.findall(text_of_item(item))
    )


def twice(shown: Projection) -> set[str]:
    """Directives that stand more than once, a promoted turn beside its card or packet line excepted."""
    stable = words(shown.history) + Counter(set(_WORD.findall(shown.row_nine)))
    promoted = words(shown.promoted)
    assert not promoted.keys() & words(shown.history).keys()
    return {word for word, count in (*stable.items(), *promoted.items()) if count > 1}


@settings(max_examples=20, deadline=None)
@given(sessions(24), st.sampled_from([2_500, 4_000, 200_000]))
def test_no_directive_stands_twice(turns: Sequence[Exchange], horizon: int) -> None:
    lab = marked(turns)
    lab.planned(horizon, directive=turns[0].asked)
    assert twice(lab.projected()) == set()


@settings(max_examples=10, deadline=None)
@given(sessions(12), st.sampled_from([2_500, 200_000]))
def test_closed_forms_that_are_remembered_change_nothing(
    turns: Sequence[Exchange], horizon: int
) -> None:
    lab = WorkingLab()
    known: dict[EventSeq, tuple[Unit, Unit]] = {}
    for turn in turns:
        lab.live(turn)
        lab.planned(horizon)
        assert lab.projected(known) == lab.projected()
    assert set(known) <= {u.sequence for u in lab.log.units(EventSeq(1), EventSeq(10_000))}


@pytest.mark.django_db
def test_without_checkpoints_and_warmth_the_bytes_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = opened(6_500)
    live(runtime, 12)
    runtime.ask("Once more.")
    built = runtime.assemble()
    Checkpoint.objects.filter(session_id=runtime.session).delete()
    monkeypatch.setattr(warm, "_SESSIONS", warm._Sessions(1))
    assert runtime.assemble().body == built.body
    assert rebuild_request(runtime.row, runtime.requests[-1]).body == built.body
    assert verdicts(runtime) == {"identical"}
