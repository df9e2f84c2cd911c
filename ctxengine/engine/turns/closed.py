"""Closed turns as the log holds them: one event each, written once at the turn's close (capacity spec 2 and 10).

The event's payload is what a planner needs of every turn; its body is the card. Nothing here is held in memory between calls.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from operator import attrgetter, itemgetter
from typing import NamedTuple, overload

from ctxengine.engine.events import EventType
from ctxengine.engine.evidence.digest import CURRENT_DIGESTS, FIRST_DIGESTS
from ctxengine.engine.history.turn_costs import TurnCost
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.log.records import EventRecord
from ctxengine.engine.ports import SessionLog
from ctxengine.engine.turns.card import TurnCard
from ctxengine.engine.turns.turn import Turn, turns_of


class TurnCosts(Sequence[TurnCost]):
    """What closed turns cost in each form, in order; of the oldest it is worked out when somebody asks."""

    def __init__(self, events: Sequence[EventRecord], first: int = 0) -> None:
        """Work it out from the place `first` on."""
        self._events = events
        self._first = min(first, len(events))
        self._rest = _costs(events[self._first :])

    def __len__(self) -> int:
        """How many turns there are."""
        return len(self._events)

    @overload
    def __getitem__(self, place: int) -> TurnCost: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[TurnCost]: ...
    def __getitem__(self, place: int | slice) -> TurnCost | Sequence[TurnCost]:
        """One turn's, or those of several."""
        if isinstance(place, slice):
            start, end, step = place.indices(len(self))
            if start >= self._first:
                return self._rest[start - self._first : max(0, end - self._first) : step]
            return _costs(self._events[place])
        at = range(len(self))[place]
        if at >= self._first:
            return self._rest[at - self._first]
        return _costs(self._events[at : at + 1])[0]


class ClosedTurns(NamedTuple):
    """All closed turns of a session, read in one look."""

    events: tuple[EventRecord, ...]
    """Their `turn.closed` events, oldest first; number n is at place n - 1."""

    @property
    def costs(self) -> tuple[TurnCost, ...]:
        """What each costs in each form."""
        return _costs(self.events)

    def costs_from(self, number: int) -> TurnCosts:
        """The same, worked out for turns from this number on."""
        return TurnCosts(self.events, max(0, number - 1))

    @property
    def through(self) -> EventSeq:
        """Newest event of the newest closed turn; 0 before the first."""
        return EventSeq(self.events[-1].payload["last"]) if self.events else EventSeq(0)

    def repeats(self, numbers: Iterable[int]) -> dict[int, Sequence[str]]:
        """What the fences of these turns' responses show again, by the event that opens the unit (`record.Repeats`).

        Noted at the close since cards stand once in a turn's record; older closes note nothing, and their records stay.
        """
        return {
            int(unit): digests
            for number in numbers
            if (event := self.event(number)) is not None
            for unit, digests in event.payload.get("repeats", {}).items()
        }

    def digests_at(self, sequence: EventSeq) -> int:
        """Version of the digests that the turn of a unit shows; the current one for a turn that is not closed yet."""
        place = bisect_right(self.events, sequence, key=_first) - 1
        event = self.events[place] if place >= 0 else None
        return digests_noted(event if event and sequence <= event.payload["last"] else None)

    def event(self, number: int) -> EventRecord | None:
        """The event of a turn; None where no turn of that number is closed."""
        return self.events[number - 1] if 1 <= number <= len(self.events) else None


def closed_turns(log: SessionLog) -> ClosedTurns:
    """The closed turns of a session."""
    return ClosedTurns(tuple(reversed(log.every(EventType.TURN_CLOSED))))


def turn_costs(log: SessionLog) -> tuple[TurnCost, ...]:
    """What every closed turn costs in each form, in order."""
    return closed_turns(log).costs


def _costs(events: Iterable[EventRecord]) -> tuple[TurnCost, ...]:
    return tuple(map(TurnCost._make, map(_cost, map(_payload, events))))


_cost = itemgetter("number", "first", "last", "tokens_full", "tokens_card", "tokens_open")
"""Of an event's payload, in the order of `TurnCost`."""
_payload = attrgetter("payload")


def _first(event: EventRecord) -> EventSeq:
    return EventSeq(event.payload["first"])


def digests_noted(event: EventRecord | None) -> int:
    """Version of digests that a turn's close noted; older closes noted none. The current one where no turn is closed."""
    if event is None:
        return CURRENT_DIGESTS
    version: int = event.payload.get("digests", FIRST_DIGESTS)
    return version


def cards_of(
    log: SessionLog, numbers: Iterable[int], *, closed: ClosedTurns | None = None
) -> tuple[TurnCard | None, ...]:
    """The cards of these turns, in the order asked for.

    Args:
        numbers: turn numbers, counted from 1.
        closed: the closed turns, where the caller has read them already.

    Returns:
        None for a turn whose card was erased, and for a number that no closed turn has.
    """
    events = events_of(log, tuple(numbers), closed)
    ids = {event.body.id for event in events if event is not None and event.body is not None}
    texts = log.texts(ids) if ids else {}
    return tuple(
        None
        if event is None or event.body is None or (text := texts.get(event.body.id)) is None
        else TurnCard.model_validate_json(text)
        for event in events
    )


def events_of(
    log: SessionLog, numbers: Sequence[int], closed: ClosedTurns | None = None
) -> Sequence[EventRecord | None]:
    """The events of these turns, read without those of any turn behind or before them; None where no such turn is closed.

    Args:
        closed: the closed turns, where the caller has read them already.
    """
    if closed is not None:
        return [*map(closed.event, numbers)]
    newest = log.newest(EventType.TURN_CLOSED)
    known = newest.payload["number"] if newest is not None else 0
    there = [number for number in numbers if 1 <= number <= known]
    if not there:
        return [None] * len(numbers)
    # One event for each number, in order: the place of a number is its distance from the newest.
    found = log.latest(
        {EventType.TURN_CLOSED}, skip=known - max(there), limit=max(there) - min(there) + 1
    )
    by_number = {event.payload["number"]: event for event in found}
    return [by_number.get(number) for number in numbers]


def turn_at(log: SessionLog, cost: TurnCost) -> Turn:
    """A closed turn with its content, as the log holds it."""
    return Turn(cost.number, tuple(log.units(EventSeq(cost.first), EventSeq(cost.last + 1))))


def turns_not_closed(
    log: SessionLog,
    newest: EventRecord | None,
    *,
    below: EventSeq,
    open_runs: Collection[str] = (),
) -> Sequence[Turn]:
    """Turns that are over and have no event yet, oldest first; what belongs to an open run is not over.

    Args:
        newest: the newest `turn.closed` event.
        below: units from this place on are not looked at.
    """
    last, number = (newest.payload["last"], newest.payload["number"]) if newest else (0, 0)
    turns = turns_of(log.units(EventSeq(last + 1), below), first_number=number + 1)
    over = []
    for turn in turns:
        if any(item.run in open_runs for item in turn.items):
            break
        over.append(turn)
    return over
