"""Gate: horizon. No plan exceeds the measured horizon, no turn is split, no closed turn is admitted past it (design 11)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxengine.engine.history.turn_costs import TurnCost
from ctxengine.engine.history.working_set import (
    Form,
    Room,
    WorkingSet,
    plan_working_set,
)
from ctxengine.engine.turns.closed import closed_turns
from ctxengine.engine.turns.relevance import Values
from tests.working_lab import Exchange, lived, sessions

pytestmark = pytest.mark.gate

LINE_TOKENS = 60
"""What the line takes that says what is left out, where nothing else may stand."""


@st.composite
def costs(draw: st.DrawFn) -> list[TurnCost]:
    """Closed turns of any size; a card is at most as large as its turn."""
    made = []
    for number in range(1, draw(st.integers(0, 40)) + 1):
        full = draw(st.integers(1, 3_000))
        made.append(TurnCost(number, number * 10, number * 10 + 9, full, min(full, 90), full))
    return made


rooms = st.builds(
    lambda tokens, share: Room(tokens, int(tokens * share)),
    st.integers(0, 60_000),
    st.sampled_from([0, 0.1, 0.2]),
)
valued = st.dictionaries(
    st.integers(1, 60), st.builds(Values, *(st.floats(0, 1) for _ in range(3))), max_size=20
)


def cost_of(turns: Sequence[TurnCost], chosen: WorkingSet) -> int:
    """What a plan takes, added up from its forms alone."""
    total = chosen.packet_tokens
    cards = False
    for turn in turns:
        form = chosen.form_of(turn.number)
        if form in {Form.FULL, Form.PROMOTED}:
            total += turn.full
        if form is Form.CARD or (form is Form.PROMOTED and turn.number > chosen.packet_through):
            cards = True
            total += turn.card
    return total + (140 if cards else 0)


@settings(max_examples=100, deadline=None)
@given(costs(), rooms, valued, st.lists(st.integers(1, 60), max_size=4), st.integers(0, 30))
def test_no_plan_exceeds_its_room(
    turns: list[TurnCost], room: Room, values: dict[int, Values], hand: list[int], behind: int
) -> None:
    behind = min(behind, len(turns))
    known = {number: value for number, value in values.items() if number <= len(turns)}
    chosen = plan_working_set(turns, room, known, by_hand=hand, behind=behind)
    planned = [turn for turn in turns if turn.number > behind]
    assert cost_of(planned, chosen) <= room.tokens
    assert chosen.tokens <= room.tokens
    # Every turn has exactly one form, and those of one form stand together: none is split.
    assert behind <= max(chosen.packet_through, behind) < chosen.full_from <= len(turns) + 1
    assert all(behind < number < chosen.full_from for number in chosen.promoted)
    assert set(chosen.by_hand) | set(chosen.unpinned) <= set(hand)


@settings(max_examples=60, deadline=None)
@given(costs(), rooms)
def test_what_fits_is_whole(turns: list[TurnCost], room: Room) -> None:
    chosen = plan_working_set(turns, room, {})
    if sum(turn.full for turn in turns) * 4 <= room.tokens:
        assert chosen.full_from == 1


@settings(max_examples=60, deadline=None)
@given(costs(), rooms, valued, valued)
def test_the_directive_moves_nothing_but_promotions(
    turns: list[TurnCost], room: Room, one: dict[int, Values], other: dict[int, Values]
) -> None:
    first, second = (
        plan_working_set(turns, room, {n: v for n, v in values.items() if n <= len(turns)})
        for values in (one, other)
    )
    assert (first.packet_through, first.full_from) == (second.packet_through, second.full_from)


@settings(max_examples=15, deadline=None)
@given(sessions(20), st.integers(300, 12_000))
def test_a_projection_stays_within_the_room_and_holds_whole_turns(
    turns: Sequence[Exchange], horizon: int
) -> None:
    lab = lived(turns)
    record = lab.planned(horizon)
    shown = lab.projected()
    assert shown.tokens + shown.row_nine_tokens <= record.room.tokens + LINE_TOKENS
    closed = [(e.payload["first"], e.payload["last"]) for e in closed_turns(lab.log).events]
    for units in (shown.history, shown.promoted):
        starts = [unit.sequence for unit in units]
        for first, last in closed:
            inside = [start for start in starts if first <= start <= last]
            whole = lab.log.units(first, last + 1)
            assert not inside or inside == [unit.sequence for unit in whole]
