"""The turns whose directives a working-set request may name: those that its plan shows in no form of their own."""

from __future__ import annotations

from ctxengine.engine.history.working_set_record import planned_at
from ctxengine.engine.ports import SessionLog
from ctxengine.engine.tail import THREAD_TURNS
from ctxengine.engine.turns.card import TurnCard
from ctxengine.engine.turns.closed import cards_of

_LOOKED_AT = 4 * THREAD_TURNS
"""Newest turns of the packet whose directives may be named."""


def told_turns(log: SessionLog, projection: int) -> tuple[TurnCard, ...]:
    """Cards of the newest turns that stand in the packet or are told of by a line, oldest first; erased ones are left out.

    Args:
        projection: event of the plan in force.

    Raises:
        LookupError: there is no such plan in this log.
    """
    planned = planned_at(log, projection)
    shown = {stretch.number for stretch in (*planned.promoted, *planned.kept)}
    numbers = range(planned.behind + 1, planned.packet_through + 1)
    wanted = [number for number in numbers if number not in shown][-_LOOKED_AT:]
    return tuple(card for card in cards_of(log, wanted) if card is not None)
