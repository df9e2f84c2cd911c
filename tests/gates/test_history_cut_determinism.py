"""Gate: history-cut determinism. The cut is a function of the log and the room, and it is the largest suffix that fits."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.history.suffix import largest_suffix, select_history, suffix_tokens
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import Item, ItemKind, Unit
from tests.lab import Lab, Turn, a_plan, played, turns

pytestmark = pytest.mark.gate


def lived(session: Sequence[Turn]) -> Lab:
    return played(Lab(a_plan()), session, build=False)


def flat(units: Sequence[Unit]) -> tuple[list[Item], list[EventSeq]]:
    items = [item for unit in units for item in unit.items]
    return items, [unit.sequence for unit in units for _ in unit.items]


def cost(unit: Unit, pointer_floor: int) -> int:
    return unit.pointer_tokens if unit.sequence < pointer_floor else unit.tokens


def best_cut(units: Sequence[Unit], first: int, room: int, pointer_floor: int = 0) -> int:
    """Index of the first retained unit, by trying every suffix."""
    for cut in range(first, len(units)):
        if sum(cost(unit, pointer_floor) for unit in units[cut:]) <= room:
            return cut
    return len(units)


@given(turns(), st.data())
def test_both_cuts_are_the_largest_suffix_that_fits(
    session: list[Turn], data: st.DataObject
) -> None:
    lab = lived(session)
    units, end = lab.units(), EventSeq(lab.log.head().sequence + 1)
    items, starts = flat(units)
    room = data.draw(st.integers(0, sum(unit.tokens for unit in units) + 5))
    floor = data.draw(st.sampled_from([0, *(unit.sequence for unit in units)]))
    first = sum(unit.sequence <= floor for unit in units)
    expected = best_cut(units, first, room)

    cut = select_history(items, starts, EventSeq(floor), room)
    assert cut == sum(len(unit.items) for unit in units[:expected])

    sought = units[first].sequence if first < len(units) else end
    found = largest_suffix(
        lab.log, floor=sought, boundary=end, tokens=room, pointer_floor=EventSeq(0)
    )
    assert found.index == expected
    assert found.sequence == (units[expected].sequence if expected < len(units) else end)


@given(turns(), st.data())
def test_pointers_and_floors_move_the_cut_exactly(session: list[Turn], data: st.DataObject) -> None:
    lab = lived(session)
    units, end = lab.units(), EventSeq(lab.log.head().sequence + 1)
    places = [unit.sequence for unit in units]
    boundary = data.draw(st.sampled_from([*places[1:], end]))
    history = [unit for unit in units if unit.sequence < boundary]
    floor = data.draw(st.sampled_from([EventSeq(0), *places]).filter(lambda at: at <= boundary))
    pointed = data.draw(st.sampled_from([EventSeq(0), *places, end]))
    room = data.draw(st.integers(0, sum(unit.tokens for unit in history) + 5))
    first = sum(unit.sequence < floor for unit in history)
    expected = best_cut(history, first, room, pointed)

    found = largest_suffix(
        lab.log, floor=floor, boundary=boundary, tokens=room, pointer_floor=pointed
    )
    assert found.index == expected
    kept = suffix_tokens(lab.log, cut=found.sequence, boundary=boundary, pointer_floor=pointed)
    assert kept == sum(cost(unit, pointed) for unit in history[expected:])


@given(turns(), st.integers(0, 2_000))
def test_the_cut_falls_on_unit_starts_so_that_no_pair_is_split(
    session: list[Turn], room: int
) -> None:
    items, starts = flat(lived(session).units())
    cut = select_history(items, starts, EventSeq(0), room)
    kept = items[cut:]
    assert cut == len(items) or items[cut].id.sequence == starts[cut]
    calls = [item.wire_call_id for item in kept if item.kind is ItemKind.TOOL_CALL]
    results = [item.wire_call_id for item in kept if item.kind is ItemKind.TOOL_RESULT]
    assert sorted(map(str, calls)) == sorted(map(str, results))
    assert sum(item.tokens for item in kept) <= room


@given(turns(most=4), st.data())
def test_the_order_in_which_results_arrive_does_not_move_the_cut(
    session: list[Turn], data: st.DataObject
) -> None:
    plain, shuffled = Lab(a_plan()), Lab(a_plan())
    for turn in session:
        for lab in (plain, shuffled):
            lab.ask(turn.message)
        for sizes in turn.steps:
            plain.act(*sizes)
            shuffled.act(*sizes, order=data.draw(st.permutations(range(len(sizes)))))
        for lab in (plain, shuffled):
            lab.reply(turn.reply)
    for room in (0, 200, 900):
        cuts = [select_history(*flat(lab.units()), EventSeq(0), room) for lab in (plain, shuffled)]
        assert cuts[0] == cuts[1]


@given(turns())
def test_more_room_never_keeps_less(session: list[Turn]) -> None:
    items, starts = flat(lived(session).units())
    cuts = [select_history(items, starts, EventSeq(0), room) for room in range(0, 3_000, 150)]
    assert all(a >= b for a, b in itertools.pairwise(cuts))


def test_a_room_of_nothing_keeps_nothing_and_an_empty_history_has_no_cut() -> None:
    items, starts = flat(lived([Turn(5, ((3,),), 4)]).units())
    assert select_history(items, starts, EventSeq(0), 0) == len(items)
    assert select_history([], [], EventSeq(0), 100) == 0
