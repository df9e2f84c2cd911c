"""The `working_set` engine: whole turns, each full, as a card or in the packet (capacity spec 4; design 6, 7.8, 7.16).

The stable history is a function of the ledger and the model's profile alone, and changes its forms only when another batch of
eight turns has closed, so that requests in between only grow. What a directive asks for beyond it is promoted: brought back
whole behind the stable history. A turn is never split.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from itertools import accumulate
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict

from ctxengine.engine.turns.relevance import Values

PLANNER_VERSION = "working-set@1"

BATCH_TURNS = 8
"""Turns enter the packet, and the stable history changes form, in batches of so many."""
CARD_SHARE, CARD_SHARE_SMALL, SMALL_ROOM = 0.4, 0.4, 4_000
"""Most of the room that cards may take while turns beside them could be full: two fifths of a large room, and up to twice that
in one of `SMALL_ROOM` tokens or less, where a few full turns would push everything else into the packet."""
GROWTH_SHARE = 0.5
"""Most of the room kept free for the turns that will close before the next batch is full."""
PROMOTION_SHARE = 0.25
"""Most of the room that promoted turns may take."""
MIN_PROMOTION = 0.5
"""A turn is promoted for a relevance of at least this share of the best one's, or for anaphora."""


class TurnCost(NamedTuple):
    """What one closed turn costs in each form (tokens, raw count), and where it stands."""

    number: int
    first: int
    last: int
    full: int
    card: int


class Form(StrEnum):
    """How a closed turn stands in a request."""

    FULL = "full"
    CARD = "card"
    PACKET = "packet"
    PROMOTED = "promoted"
    """Full, behind the stable history; its card or packet line stays where it was (design 7.19)."""


class WorkingSet(BaseModel):
    """The plan of one run: which closed turn stands in which form. Recorded at run start (design 7.16)."""

    model_config = ConfigDict(frozen=True)

    version: str = PLANNER_VERSION
    turns: int
    """Closed turns it was made for."""
    room: int
    """Tokens there were for closed turns."""
    packet_through: int = 0
    """Turns 1 to this one stand in the packet; 0 for no packet."""
    full_from: int
    """Turns from this one on are full; those between the packet and it are cards."""
    promoted: tuple[int, ...] = ()
    """In the order they stand: oldest first."""
    batch: int
    """Closed turns at the batch boundary whose figures decided the forms."""
    replanned: bool = False
    """Whether turns of an unfinished batch changed form because the room did not suffice."""
    values: dict[int, tuple[float, float, float]] = {}
    """Recency, relevance and anaphora of the promoted turns and of the best that were not."""
    tokens: int = 0
    """What the plan costs, packet included."""

    def form_of(self, turn: int) -> Form:
        """The form in which a turn stands in the stable history, or `promoted`."""
        if turn in self.promoted:
            return Form.PROMOTED
        if turn >= self.full_from:
            return Form.FULL
        return Form.PACKET if turn <= self.packet_through else Form.CARD


class Room(NamedTuple):
    """What closed turns may take (tokens, raw count)."""

    tokens: int
    packet: int
    """What a packet is given at most."""


def plan_working_set(
    turns: Sequence[TurnCost],
    room: Room,
    values: Mapping[int, Values],
    *,
    by_hand: Sequence[int] = (),
) -> WorkingSet:
    """Choose the form of every closed turn.

    Args:
        turns: all closed turns in order, numbered from 1.
        room: what is left of the horizon for them.
        values: of each turn, for this directive.
        by_hand: turns an operator wants whole.
    """
    count = len(turns)
    batch = count - count % BATCH_TURNS
    packet, full_from = _stable(turns[:batch], room, _growth(turns[:batch], room))
    replanned = False
    if _cost(turns, packet, full_from, room) > room.tokens and batch < count:
        packet, full_from = _stable(turns, room, 0)
        replanned = True
    spent = _cost(turns, packet, full_from, room)
    promoted = _promoted(turns[: full_from - 1], values, room.tokens - spent, room, by_hand)
    shown = _shown_values(values, promoted, full_from)
    return WorkingSet(
        turns=count,
        room=max(0, room.tokens),
        packet_through=packet,
        full_from=full_from,
        promoted=promoted,
        batch=batch,
        replanned=replanned,
        values=shown,
        tokens=spent + sum(turns[number - 1].full for number in promoted),
    )


def _growth(turns: Sequence[TurnCost], room: Room) -> int:
    """Room for the turns that will close before the next batch is full: as many of the size of the latest ones."""
    latest = turns[-BATCH_TURNS:]
    if not latest:
        return 0
    mean = sum(turn.full for turn in latest) // len(latest)
    return min(BATCH_TURNS * mean, int(room.tokens * GROWTH_SHARE))


def _stable(turns: Sequence[TurnCost], room: Room, growth: int) -> tuple[int, int]:
    """Packet end and first full turn: the newest turns full, cards before them, a packet for the rest."""
    count = len(turns)
    free = room.tokens - growth
    if sum(turn.full for turn in turns) <= free:
        return 0, 1
    cards = sum(turn.card for turn in turns)
    # What stands before the full turns is paid first: cards up to their share, else a packet with the cards it leaves.
    share = CARD_SHARE + CARD_SHARE_SMALL * min(1.0, SMALL_ROOM / max(1, free))
    before = min(cards, max(room.packet, int(free * share)))
    full_from = count + 1
    left = free - before
    while full_from > 1 and turns[full_from - 2].full <= left:
        full_from -= 1
        left -= turns[full_from - 1].full
    return _packet_end(turns[: full_from - 1], before + left, room), full_from


def _packet_end(turns: Sequence[TurnCost], tokens: int, room: Room) -> int:
    """How many of these turns go into the packet: as few whole batches as let the rest stand as cards."""
    sums = [0, *accumulate(turn.card for turn in turns)]
    if sums[-1] <= tokens:
        return 0
    end = BATCH_TURNS
    while end < len(turns) and sums[-1] - sums[end] + room.packet > tokens:
        end += BATCH_TURNS
    return min(end, len(turns))


def _cost(turns: Sequence[TurnCost], packet: int, full_from: int, room: Room) -> int:
    cards = sum(turn.card for turn in turns[packet : full_from - 1])
    full = sum(turn.full for turn in turns[full_from - 1 :])
    return cards + full + (room.packet if packet else 0)


def _promoted(
    turns: Sequence[TurnCost],
    values: Mapping[int, Values],
    left: int,
    room: Room,
    by_hand: Sequence[int],
) -> tuple[int, ...]:
    """Turns brought back whole: those an operator wants, then the most valuable ones that fit."""
    chosen = [turn.number for turn in turns if turn.number in set(by_hand)]
    budget = min(left, int(room.tokens * PROMOTION_SHARE))
    budget -= sum(turns[number - 1].full for number in chosen)
    ranked = sorted(
        (
            turn
            for turn in turns
            if turn.number not in chosen and _deserves(values.get(turn.number))
        ),
        key=lambda turn: (-values[turn.number].value, -turn.number),
    )
    for turn in ranked:
        if turn.full <= budget:
            chosen.append(turn.number)
            budget -= turn.full
    return tuple(sorted(chosen))


def _deserves(values: Values | None) -> bool:
    return values is not None and max(values.relevance, values.anaphora) >= MIN_PROMOTION


_VALUES_SHOWN = 12


def _shown_values(
    values: Mapping[int, Values], promoted: Sequence[int], full_from: int
) -> dict[int, tuple[float, float, float]]:
    """The values behind the choice: of what was promoted and of the nearest losers."""
    losers = sorted(
        (n for n in values if n < full_from and n not in promoted),
        key=lambda n: (-values[n].value, -n),
    )
    wanted = [*promoted, *losers[: max(0, _VALUES_SHOWN - len(promoted))]]
    return {
        number: (round(v.recency, 4), round(v.relevance, 4), round(v.anaphora, 4))
        for number in sorted(wanted)
        if (v := values.get(number)) is not None
    }
