"""The recorded plan of a working set: the event's fields, reading back, and the figures of its room (capacity spec 4)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.budget.arithmetic import frame
from ctxengine.engine.budget.policy import BudgetPolicy
from ctxengine.engine.capacity.profile import Horizon, metadata_profile
from ctxengine.engine.events import RULE_OF_EVENT, EventType
from ctxengine.engine.history.working_set_record import PAYLOAD, planned_at, planned_of
from ctxengine.engine.history.working_set_room import RoomFigures, room_of
from tests.working_lab import Exchange, lived

TURN = Exchange("What now?", (("a line\n" * 30,),), "That.")


def test_the_event_carries_the_record_and_nothing_else() -> None:
    rule = RULE_OF_EVENT[EventType.WORKING_SET_PLANNED]
    assert set(rule.payload) - {"reasoning_dropped"} == set(PAYLOAD)
    assert rule.act and not rule.content


def test_a_record_reads_back_as_it_was() -> None:
    lab = lived([TURN] * 20)
    record = lab.planned(3_000, directive="What now?")
    assert planned_of(record.model_dump(mode="json")) == record
    newest = lab.log.newest(EventType.WORKING_SET_PLANNED)
    assert newest is not None
    assert planned_at(lab.log, newest.sequence) == record
    with pytest.raises(LookupError):
        planned_at(lab.log, 1)


def room(
    horizon: int,
    sizes: list[int],
    factor: float = 1.0,
    window: int = 50_000,
    *,
    typical: bool = False,
) -> RoomFigures:
    policy = BudgetPolicy()
    profile = metadata_profile(
        provider="p", model="m", declared_window=window, max_output=4_000
    ).model_copy(update={"horizon": Horizon(tokens=horizon, confidence=1.0)})
    fixed = frame(
        window=window, max_output=4_000, prefix_tokens=1_000, policy=policy, factor=factor
    )
    return room_of(profile, fixed, policy, turn_sizes=sizes, typical=typical)


@given(
    st.integers(0, 80_000),
    st.lists(st.integers(1, 20_000), max_size=20),
    st.sampled_from([0.8, 1.0, 1.7]),
)
def test_parts_of_the_room_never_come_to_more_than_the_horizon(
    horizon: int, sizes: list[int], factor: float
) -> None:
    found = room(horizon, sizes, factor)
    assert found.tokens >= 0 and found.packet <= found.tokens
    if found.tokens:
        parts = found.prefix + found.tail + found.turn + found.tokens
        assert parts <= found.usable <= horizon / factor


def test_a_large_turn_is_remembered_and_slowly_forgotten() -> None:
    calm, shaken = room(40_000, [6_000] * 16), room(40_000, [*[6_000] * 4, 15_000, 6_000])
    healed = room(40_000, [*[6_000] * 4, 15_000, *[6_000] * 11])
    assert calm.turn < healed.turn < shaken.turn


@given(st.integers(20_000, 45_000), st.lists(st.integers(1, 15_000), min_size=1, max_size=16))
def test_where_closed_turns_can_give_way_the_larger_of_caps_and_an_ordinary_turn_is_kept(
    horizon: int, sizes: list[int]
) -> None:
    careful, typical = room(horizon, sizes), room(horizon, sizes, typical=True)
    assert typical.tail + typical.turn == max(careful.tail, typical.turn)
    assert typical.tokens >= careful.tokens
