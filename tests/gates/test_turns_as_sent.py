"""Gates over histories in which turns stand as they were sent: no cut, uniqueness, horizon (design 7.8, 11).

The passes that close many turns at once, and the blocks of cards that they leave, are reached by the drawn histories as well.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxengine.engine.events import EventType
from ctxengine.engine.history.projection import Projection
from ctxengine.engine.history.working_set_record import PlannedSet, planned_of
from tests.gates.test_no_cut import missing
from tests.gates.test_working_set_once_and_dispensable import twice, words
from tests.working_lab import EXCHANGES, Exchange, WorkingLab

pytestmark = pytest.mark.gate

LARGE = st.sampled_from([32_000, 48_000, 150_000])
RUNS = st.lists(
    st.tuples(EXCHANGES, st.sampled_from([False, False, False, True])), min_size=4, max_size=14
)


def check(
    lab: WorkingLab, before: tuple[PlannedSet, Projection] | None
) -> tuple[PlannedSet, Projection]:
    """Hold the newest plan against the gates, and against the one before it."""
    newest = lab.log.newest(EventType.WORKING_SET_PLANNED)
    assert newest is not None
    plan, shown = planned_of(newest.payload), lab.projected()
    assert missing(lab, shown) == []
    assert twice(shown) == set()
    again = words([unit for _, units in shown.kept for unit in units])
    assert not again.keys() & (words(shown.history) | words(shown.promoted)).keys()
    assert shown.tokens + shown.row_nine_tokens <= plan.room.tokens
    if before is not None and not plan.rewritten:
        assert shown.row_nine == before[1].row_nine
        assert list(shown.history)[: len(before[1].history)] == list(before[1].history)
        assert list(shown.blocks)[: len(before[1].blocks)] == list(before[1].blocks)
    return plan, shown


def lived_planned(turns: Sequence[tuple[Exchange, bool]], horizon: int) -> list[PlannedSet]:
    """A session of runs, each of them planned and ended; every plan is held against the gates."""
    lab, before, plans = WorkingLab(), None, []
    for number, (turn, dropped) in enumerate(turns):
        asked = turn._replace(asked=f"zq{number}z {turn.asked}")
        lab.live_planned(asked, horizon, dropped=dropped)
        lab.planned(horizon)
        before = check(lab, before)
        plans.append(before[0])
    return plans


@settings(max_examples=8, deadline=None)
@given(RUNS, LARGE)
def test_turns_of_both_forms_keep_every_gate(
    turns: Sequence[tuple[Exchange, bool]], horizon: int
) -> None:
    lived_planned(turns, horizon)


def test_passes_and_blocks_of_cards_are_among_what_is_looked_at() -> None:
    turn = Exchange("look at the ledger", (("copper lantern meadow line\n" * 250,),), "It is done.")
    plans = lived_planned([(turn, number == 5) for number in range(40)], 48_000)
    assert max(len(plan.card_blocks) for plan in plans) > 1
    assert {len(plan.sent) > 2 for plan in plans} == {True, False}
    assert any(plan.rewritten for plan in plans)
