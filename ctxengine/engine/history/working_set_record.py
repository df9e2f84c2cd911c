"""The recorded plan of a run: `context.working_set.planned` (design 6, 7.10 and 7.16).

It holds figures and places alone, no content; projecting it needs the log and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict

from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.history.turn_costs import TurnCost
from ctxengine.engine.history.working_set import WorkingSet
from ctxengine.engine.history.working_set_room import RoomFigures
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.ports import SessionLog
from ctxengine.engine.trust.levels import Trust

_CARDS_TWICE = frozenset({"working-set@1"})
"""Versions of the planner under which it stood as often as it was shown."""


class PlanReason(StrEnum):
    """Why a working set was planned; all but the first replan inside a run."""

    START = "start"
    OVER_LENGTH = "over_length"
    """The provider refused the request as too long."""
    LEG = "leg"
    """Another model of a fallback is smaller."""
    PRESSURE = "pressure"
    """The open turn has grown past what closed turns leave it."""
    SECURITY = "security"
    """A tool left the prompt, and with it the plan's prefix changed."""
    BY_HAND = "by_hand"
    """An operator took the packet in force back, or left out an item that it may quote."""


class Stretch(NamedTuple):
    """Consecutive events of one turn or of several."""

    number: int
    """The turn; the last one where there are several."""
    first: int
    last: int


class TurnRange(NamedTuple):
    """Consecutive turns, both ends included."""

    first: int
    last: int


class Brought(NamedTuple):
    """What stands in front of a turn that stands as it was sent."""

    turn: int
    stretches: tuple[Stretch, ...]
    """Earlier turns that its run brought back whole."""


class SentTurn(NamedTuple):
    """A closed turn that stands as it was sent, its fresh blocks where they were."""

    number: int
    first: int
    last: int
    blocks: tuple[int, ...]
    """`context.fresh.sent` events of its blocks."""
    promoted: tuple[Stretch, ...]
    """Earlier turns that its run brought back whole; they stand in front of it."""
    tokens: int
    """What it takes with all of that (raw count)."""


class ProfileUsed(BaseModel):
    """The figures of the profile that a plan rests on."""

    model_config = ConfigDict(frozen=True)

    id: str | None = None
    """Stored revision; None for one made from metadata alone."""
    provider: str
    model: str
    source: str
    declared_window: int
    verified_window: int | None = None
    horizon: int
    confidence_thousandths: int


class PlannedSet(BaseModel):
    """What one plan event says."""

    model_config = ConfigDict(frozen=True)

    version: str
    reason: PlanReason
    turns: int
    """Closed turns it was made for."""
    behind: int = 0
    """Turns before a reset: neither shown nor told of."""
    behind_through: int = 0
    """Last event behind the reset."""
    handoff: int | None = None
    """The reset's event, whose text opens row 9."""
    packet_through: int = 0
    """Last turn that the packet is to cover; 0 for no packet."""
    packet: int | None = None
    """The `context.compacted` event that stands for it; None where no summary could be made."""
    packet_turn: int = 0
    """Last turn that this packet covers; the turns behind it up to `packet_through` are told by a line."""
    packet_last: int = 0
    """Last event it covers."""
    told_last: int = 0
    """Last event of `packet_through`."""
    refused: str = ""
    """Why the packet does not cover all it should."""
    full_from: int
    cut: int
    """History starts here: the first event of turn `full_from`, or the run's own message."""
    card_blocks: tuple[int, ...] = ()
    """Last turn of each block of cards, oldest first; empty: all cards stand in one."""
    sent: tuple[SentTurn, ...] = ()
    """Turns that stand as sent, written out one by one: so in older events, and in none that is written now."""
    as_sent: tuple[TurnRange, ...] = ()
    """Those of the full turns that stand as they were sent; the others are closed records. Where they and their blocks lie
    follows from the log (`sent_record`), so the event does not grow with them."""
    brought: tuple[Brought, ...] = ()
    """What stands in front of some of them."""
    promoted: tuple[Stretch, ...] = ()
    by_hand: tuple[int, ...] = ()
    """Promoted turns that an operator pinned."""
    unpinned: tuple[int, ...] = ()
    """Pinned turns for which there is no room even so."""
    gone: tuple[int, ...] = ()
    """Turns whose card had been erased when the plan was made."""
    batch: int
    replanned: bool = False
    values: dict[str, tuple[int, int, int]] = {}
    """Recency, relevance and anaphora, in thousandths, by turn number."""
    tokens: int
    room: RoomFigures
    profile: ProfileUsed
    rewritten: int = 0
    """Tokens of the stable history that the run before it showed in other forms: what the cache loses."""
    request: str = ""
    """The request that did not fit, where one made it necessary."""

    @property
    def sent_numbers(self) -> tuple[int, ...]:
        """Numbers of the turns that stand as sent, oldest first."""
        if self.sent:
            return tuple(turn.number for turn in self.sent)
        return tuple(n for first, last in self.as_sent for n in range(first, last + 1))

    @property
    def brought_for(self) -> Mapping[int, tuple[Stretch, ...]]:
        """What stands in front of each of them, where anything does."""
        if self.sent:
            return {turn.number: turn.promoted for turn in self.sent if turn.promoted}
        return dict(self.brought)

    @property
    def kept(self) -> tuple[Stretch, ...]:
        """Turns that earlier runs brought back whole and that still stand so."""
        return tuple(stretch for some in self.brought_for.values() for stretch in some)

    def showing(self, sent: Mapping[int, tuple[Stretch, ...]]) -> PlannedSet:
        """The same plan with these turns as they were sent, each with what stands in front of it, oldest first."""
        return self.model_copy(
            update={
                "as_sent": ranges_of([*sent]),
                "brought": tuple(Brought(*pair) for pair in sent.items() if pair[1]),
            }
        )

    @property
    def cards_once(self) -> bool:
        """Whether a card that a response shows twice stands in its closed record once: so since the second version."""
        return self.version not in _CARDS_TWICE

    def draft(self, run: str | None) -> EventDraft:
        """The event to append."""
        return EventDraft(
            type=EventType.WORKING_SET_PLANNED,
            trust=Trust.PLATFORM,
            run=run,
            payload=self.model_dump(mode="json"),
        )


PAYLOAD = tuple(PlannedSet.model_fields)
"""Fields of the event's payload."""


def planned_of(payload: Mapping[str, Any]) -> PlannedSet:
    """Read a plan back."""
    return PlannedSet.model_validate(payload)


def planned_at(log: SessionLog, sequence: int) -> PlannedSet:
    """The plan that an event holds.

    Raises:
        LookupError: there is no such plan in this log.
    """
    events = log.events(after=EventSeq(sequence - 1), limit=1)
    if not events or events[0].type is not EventType.WORKING_SET_PLANNED:
        msg = f"Event {sequence} holds no working set."
        raise LookupError(msg)
    return planned_of(events[0].payload)


def ranges_of(numbers: Sequence[int]) -> tuple[TurnRange, ...]:
    """Rising numbers as ranges."""
    found: list[TurnRange] = []
    for number in numbers:
        if found and number == found[-1].last + 1:
            found[-1] = TurnRange(found[-1].first, number)
        else:
            found.append(TurnRange(number, number))
    return tuple(found)


def in_thousandths(
    values: Mapping[int, tuple[float, float, float]],
) -> dict[str, tuple[int, int, int]]:
    """The three values of each turn as numbers a payload may hold."""
    return {
        str(number): (
            round(three[0] * 1000),
            round(three[1] * 1000),
            round(three[2] * 1000),
        )
        for number, three in sorted(values.items())
    }


def stretches_of(chosen: WorkingSet, costs: Sequence[TurnCost]) -> tuple[Stretch, ...]:
    """Where the promoted turns stand in the log."""
    return tuple(
        Stretch(number, costs[number - 1].first, costs[number - 1].last)
        for number in chosen.promoted
    )
