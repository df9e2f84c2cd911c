"""What a plan of a working set costs the provider's cache: the stable history it shows in other bytes (design 7.8)."""

from __future__ import annotations

from collections.abc import Sequence

from ctxengine.engine.events import EventType
from ctxengine.engine.history.turn_costs import TurnCost
from ctxengine.engine.history.working_set_record import PlannedSet, planned_of
from ctxengine.engine.log.records import EventRecord
from ctxengine.engine.ports import SessionLog

_LOOKED_AT = 8
"""Newest plans among which the one is looked for that the newest request was built under."""


def rewritten_by(log: SessionLog, record: PlannedSet, costs: Sequence[TurnCost]) -> int:
    """Tokens of the stable history that the plan before this one showed in other bytes; 0 where it only grows."""
    event = _shown_last(log)
    if event is None:
        return 0
    before = planned_of(event.payload)
    card_turns = (before.packet_through, before.full_from)
    same = (before.handoff, before.packet, before.packet_last) == (
        record.handoff,
        record.packet,
        record.packet_last,
    ) and card_turns == (record.packet_through, record.full_from)
    same = same and before.card_blocks == record.card_blocks
    same = same and _goes_on(before, record)
    first_turn = before.turns == 0
    if same or first_turn:
        return 0
    return record.tokens - sum(costs[turn.number - 1].full for turn in record.promoted)


def _goes_on(before: PlannedSet, record: PlannedSet) -> bool:
    """Whether all that stood as it was sent still does, with the same in front of it."""
    numbers = before.sent_numbers
    brought, now = before.brought_for, record.brought_for
    return numbers == record.sent_numbers[: len(numbers)] and all(
        brought.get(number) == now.get(number) for number in numbers
    )


def _shown_last(log: SessionLog) -> EventRecord | None:
    """The newest plan that a request was built under: what is planned anew before any was costs nothing."""
    newest = log.newest(EventType.WORKING_SET_PLANNED)
    request = log.newest(EventType.REQUEST_STARTED)
    if newest is None or request is None or newest.sequence < request.sequence:
        return newest
    plans = log.latest({EventType.WORKING_SET_PLANNED}, limit=_LOOKED_AT)
    return next((event for event in plans if event.sequence < request.sequence), newest)
