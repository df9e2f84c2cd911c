"""The turns whose directives a working-set request may name: those that its plan shows in no form of their own."""

from __future__ import annotations

from typing import NamedTuple

from ctxengine.engine.history.working_set_record import planned_at
from ctxengine.engine.ports import SessionLog
from ctxengine.engine.turns.card import TurnCard
from ctxengine.engine.turns.closed import cards_of

_LOOKED_AT = 24
"""Newest turns of the packet whose directives may be named."""


class ToldTurns(NamedTuple):
    """The turns that a plan leaves to the packet or to a line."""

    cards: tuple[TurnCard, ...] = ()
    """Of the newest of them, oldest first; erased ones are left out."""
    before: int = 0
    """How many stand before these."""


def told_turns(log: SessionLog, projection: int) -> ToldTurns:
    """The turns that stand in the packet or are told of by a line, the newest of them with their cards.

    Args:
        projection: event of the plan in force.

    Raises:
        LookupError: there is no such plan in this log.
    """
    planned = planned_at(log, projection)
    shown = {stretch.number for stretch in (*planned.promoted, *planned.kept)}
    numbers = range(planned.behind + 1, planned.packet_through + 1)
    wanted = [number for number in numbers if number not in shown]
    looked_at = wanted[-_LOOKED_AT:]
    cards = tuple(card for card in cards_of(log, looked_at) if card is not None)
    return ToldTurns(cards, len(wanted) - len(looked_at))
