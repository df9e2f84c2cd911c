"""Gates over histories in which turns stand as they were sent: no cut, uniqueness, horizon, two models, neutrality (design 11).

The passes that close many turns at once, and the blocks of cards that they leave, are reached by the drawn histories as well.
The corpus is held against the same in `test_within_turn`, which plays it.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxengine.engine.derive import Derivation
from ctxengine.engine.events import EventType
from ctxengine.engine.history.projection import Projection
from ctxengine.engine.history.working_set_record import PlannedSet, planned_of
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.memory import MemoryLog
from ctxengine.engine.turns.closed import closed_turns
from tests.cast import PricedCounter, Scribe
from tests.gates.test_horizon import LINE_TOKENS
from tests.gates.test_neutrality import _LOADED
from tests.gates.test_no_cut import missing
from tests.gates.test_working_set_once_and_dispensable import twice, words
from tests.working_lab import EXCHANGES, Exchange, WorkingLab

pytestmark = pytest.mark.gate

LARGE = st.sampled_from([32_000, 48_000, 150_000])
RUNS = st.lists(
    st.tuples(EXCHANGES, st.sampled_from([False, False, False, True])), min_size=4, max_size=14
)


def held(log: MemoryLog, plan: PlannedSet, shown: Projection) -> None:
    """Hold a plan and what it shows against the gates: nothing cut, nothing twice, all fits, turns in one piece."""
    assert missing(log, shown) == []
    kept = [unit for _, units in shown.kept for unit in units]
    places = [unit.sequence for unit in (*kept, *shown.history, *shown.promoted)]
    assert len(places) == len(set(places))
    # Before the first turn closes nothing gives way: the open turn is the window's business (design 7.3).
    assert not plan.turns or shown.tokens + shown.row_nine_tokens <= plan.room.tokens + LINE_TOKENS
    cards = range(max(plan.behind, plan.packet_through) + 1, plan.full_from)
    for event in closed_turns(log).events[: plan.turns]:
        first, last = EventSeq(event.payload["first"]), event.payload["last"]
        inside = [place for place in places if first <= place <= last]
        whole = [unit.sequence for unit in log.units(first, EventSeq(last + 1))]
        assert inside in ([], whole)
        again = {s.number for s in (*plan.promoted, *plan.kept)}
        number = event.payload["number"]
        assert not inside or number not in cards or number in again


def check(
    lab: WorkingLab, before: tuple[PlannedSet, Projection] | None
) -> tuple[PlannedSet, Projection]:
    """Hold the newest plan against the gates, and against the one before it."""
    newest = lab.log.newest(EventType.WORKING_SET_PLANNED)
    assert newest is not None
    plan, shown = planned_of(newest.payload), lab.projected()
    held(lab.log, plan, shown)
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
    assert {len(plan.sent_numbers) > 2 for plan in plans} == {True, False}
    assert any(plan.rewritten for plan in plans)


@pytest.mark.parametrize(("results", "goes_on"), [(3, False), (20, True)])
def test_a_pass_that_a_heavy_turn_forced_is_gone_on_from_where_the_forms_before_fit_no_more(
    results: int, goes_on: bool
) -> None:
    lab, text = WorkingLab(), "copper lantern meadow line\n" * 250
    for _ in range(8):
        lab.live_planned(Exchange("look at the ledger", ((text,),), "It is done."), 48_000)
    heavy = Exchange(
        "look at many", (tuple("copper line\n" * 250 for _ in range(results)),), "Done."
    )
    lab.live_planned(heavy, 48_000, pressed=4_000)
    newest = lab.log.newest(EventType.WORKING_SET_PLANNED)
    assert newest is not None
    pressed, started = planned_of(newest.payload), lab.planned(48_000)
    assert pressed.full_from > 1
    assert started.full_from == (pressed.full_from if goes_on else 1)
    assert (started.rewritten == 0) == goes_on
    assert started.sent_numbers[-1:] == (9,)
    held(lab.log, started, lab.projected())


# --- two models ---------------------------------------------------------------------------------------------------------

SMALL = 3_000


def shape(shown: Projection) -> tuple[object, ...]:
    """Everything of a projection that reaches the wire."""
    sent = tuple(shown.as_sent), tuple(shown.blocks), tuple(shown.kept)
    return sent, shown.row_nine, tuple(shown.history), tuple(shown.promoted)


def seen_by(lab: WorkingLab, model: str, horizon: int) -> tuple[PlannedSet, Projection]:
    """What a run of this model would show now; planned and recorded."""
    lab.model = model
    return lab.planned(horizon), lab.projected()


@settings(max_examples=6, deadline=None)
@given(RUNS)
def test_a_small_model_in_between_leaves_no_trace(turns: Sequence[tuple[Exchange, bool]]) -> None:
    lab = WorkingLab()
    for turn, dropped in turns:
        lab.live_planned(turn, 150_000, dropped=dropped)
    large = lab.model
    plan, before = seen_by(lab, large, 150_000)
    assert len(plan.sent_numbers) == sum(not dropped for _, dropped in turns)
    _, small = seen_by(lab, "small", SMALL)
    made = len(lab.log.every(EventType.COMPACTED))
    assert shape(seen_by(lab, large, 150_000)[1]) == shape(before)
    assert shape(seen_by(lab, "small", SMALL)[1]) == shape(small)
    assert len(lab.log.every(EventType.COMPACTED)) == made
    # A turn that the small model had is a closed record for the large one, behind all that stood.
    lab.live_planned(turns[0][0]._replace(asked="and on the small one"), SMALL)
    after, shown = seen_by(lab, large, 150_000)
    assert after.sent_numbers == plan.sent_numbers and not after.packet_through
    assert list(shown.history)[: len(before.history)] == list(before.history)
    assert shown.blocks == before.blocks


# --- neutrality ---------------------------------------------------------------------------------------------------------


def named_after(words: Sequence[str], horizon: int) -> list[object]:
    """What is decided in a session whose talk, calls and results are about these words."""
    lab = WorkingLab()
    lab.counter = PricedCounter()
    lab.scribe = Scribe(lab.log, Derivation(lab.counter))
    decided: list[object] = []
    for number in range(24):
        word = words[number % len(words)]
        text = f"{word} says {number}\n" * 120
        lab.live_planned(Exchange(f"Ask {word} of it", ((text,),), f"{word} has it."), horizon)
        plan = lab.planned(horizon, f"and {words[0]}?")
        shown = lab.projected()
        decided += [plan.model_dump(exclude={"profile"}), shown.as_sent, shown.tokens]
    return decided


@settings(max_examples=4, deadline=None)
@given(
    st.lists(st.sampled_from(_LOADED), min_size=2, max_size=6, unique=True),
    st.sampled_from([28_000, 150_000]),
)
def test_turns_about_vendors_and_topics_stand_as_those_about_nothing(
    words: list[str], horizon: int
) -> None:
    nothing = [
        "".join("jkqxz"[(place + n) % 5] for n in range(len(w))) for place, w in enumerate(words)
    ]
    if len(set(nothing)) == len(words):
        assert named_after(words, horizon) == named_after(nothing, horizon)
