"""The `working_set` engine: closed turns word for word, as cards, or summed up (capacity spec 4; design 6, 7.8, 7.16).

Two things decide the stable history, what the ledger holds and which profile the model has. Each turn that closes is added
to it; its forms change only where no more fits, and then all at once, far enough that the requests up to the next such change
do nothing but append. In a large room a turn is added as it was sent, and takes its closed form with the first such change; in
a small one it is closed at its end, and room is looked for eight turns ahead. What a directive asks for beyond it is promoted:
brought back whole behind the stable history. Turns stay in one piece.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from itertools import accumulate
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict

from ctxengine.engine.history.turn_costs import StandingCosts, TurnCost
from ctxengine.engine.turns.card import CARDS_FRAME_TOKENS
from ctxengine.engine.turns.relevance import Values

PLANNER_VERSION = "working-set@2"

BATCH_TURNS = 8
"""Turns enter the packet, and the stable history changes form, in batches of so many."""
CARD_SHARE, CARD_SHARE_SMALL, SMALL_ROOM = 0.4, 0.4, 4_000
"""Most of the room that cards may take while turns beside them could be full: two fifths of a large room, and up to twice that
in one of `SMALL_ROOM` tokens or less, where a few full turns would push everything else into the packet."""
LOW_WATER, LOW_WATER_SMALL = 0.4, 0.15
"""What a pass at a batch boundary leaves of the room, the rest being for the turns that close before the next pass; and how
much more it leaves of one of `SMALL_ROOM` tokens or less, where a card is worth more than bytes that stand still."""
SENT_CARDS, SENT_FULL, SENT_NEWEST = 0.3, 0.15, 2
"""What a pass leaves of a room where turns stand as sent: cards and packet, and the newest turns as closed records. All of it
is written anew, so it is little: the turns that their age alone would promote."""
PROMOTION_SHARE = 0.25
"""Most of the room that promoted turns may take."""
MIN_PROMOTION = 0.5
"""A turn is promoted for a relevance of at least this share of the best one's, for anaphora, or as one of the newest two."""


class Form(StrEnum):
    """How a closed turn stands in a request."""

    FULL = "full"
    CARD = "card"
    PACKET = "packet"
    PROMOTED = "promoted"
    """Full, behind the stable history; its card or packet line stays where it was (design 7.19)."""
    BEHIND_RESET = "behind_reset"
    """Neither shown nor told of; `recall` still reaches it."""


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
    card_blocks: tuple[int, ...] = ()
    """Last turn of each block of cards; empty: all cards stand in one."""
    sent: tuple[int, ...] = ()
    """Those of the full turns that stand as they were sent."""
    promoted: tuple[int, ...] = ()
    """In the order they stand: oldest first."""
    by_hand: tuple[int, ...] = ()
    """Those of them that an operator pinned."""
    unpinned: tuple[int, ...] = ()
    """Pinned turns for which there is no room even so."""
    behind: int = 0
    """Turns before a reset: neither shown nor told of."""
    packet_tokens: int = 0
    """What the packet may take."""
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
        if turn <= self.behind:
            return Form.BEHIND_RESET
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


class Before(NamedTuple):
    """The forms that a plan goes on from as long as they fit."""

    packet_through: int
    full_from: int
    card_blocks: tuple[int, ...]
    room: int
    """Tokens there were for closed turns."""
    sent: Mapping[int, int]
    """What each turn takes that stands as sent (tokens), by number."""
    whole: frozenset[int] = frozenset()
    """Turns that stand whole in front of those, as they were promoted."""
    named: frozenset[int] = frozenset()
    """Turns that those name: to promote one would rewrite what was sent, so only an operator's wish does."""


RoomAt = Callable[[int], Room]
"""The room there was when so many turns had closed."""


def plan_working_set(
    turns: Sequence[TurnCost],
    room: Room,
    values: Mapping[int, Values],
    *,
    by_hand: Sequence[int] = (),
    behind: int = 0,
    room_at: RoomAt | None = None,
    before: Before | None = None,
) -> WorkingSet:
    """Choose the form of every closed turn.

    Args:
        turns: all closed turns in order, numbered from 1.
        room: what is left of the horizon for them.
        values: of turns, for this directive; those that are missing are worth nothing to it.
        by_hand: turns an operator wants whole; the oldest give way where the room is too small for all of them.
        behind: so many turns stand before a reset: they are not planned.
        room_at: the room at an earlier batch boundary, by the number of turns after the reset that had closed; left out, `room`
            was the same then.
        before: the forms of an earlier plan, with the turns that stand as sent; left out, forms follow from the batches so far.
    """
    if behind:
        turns = [turn._replace(number=turn.number - behind) for turn in turns[behind:]]
        values = {number - behind: value for number, value in values.items() if number > behind}
    chosen = _planned(
        turns,
        room,
        values,
        sorted({n - behind for n in by_hand if 0 < n - behind <= len(turns)}),
        room_at or (lambda _: room),
        _own(before, behind),
    )
    return _shifted(chosen, behind) if behind else chosen


def _planned(
    turns: Sequence[TurnCost],
    room: Room,
    values: Mapping[int, Values],
    by_hand: Sequence[int],
    room_at: RoomAt,
    before: Before | None,
) -> WorkingSet:
    pinned = list(by_hand)
    while pinned and sum(turns[number - 1].full for number in pinned) > room.tokens:
        del pinned[0]

    def choose(kept: int) -> _Forms:
        if before is None:
            return _forms(turns, room, room_at, kept)
        return _continued(turns, before, _less(room, kept))

    def wanted(forms: _Forms) -> list[int]:
        there = before.whole if before is not None and forms.sent else frozenset()
        return [number for number in pinned if number < forms.full_from and number not in there]

    forms, kept = choose(0), 0
    while True:
        needed = sum(turns[n - 1].full for n in wanted(forms))
        if needed <= kept:
            break
        kept = needed
        forms = choose(kept)
    sent = before.sent if before is not None and forms.sent else {}
    turns = _standing(turns, sent)
    hand = wanted(forms)
    if before is not None and forms.sent:
        settled = before.whole | before.named
        values = {number: value for number, value in values.items() if number not in settled}
    beside = _less(room, kept)
    spent = _cost(turns, forms, beside) + sum(turns[n - 1].full for n in hand)
    older = {n: three for n, three in values.items() if n < forms.full_from}
    promoted = _promoted(turns, older, room.tokens - spent, room, hand)
    return WorkingSet(
        turns=len(turns),
        room=max(0, room.tokens),
        packet_through=forms.packet,
        packet_tokens=beside.packet if forms.packet else 0,
        full_from=forms.full_from,
        card_blocks=forms.card_blocks,
        sent=tuple(sorted(number for number in sent if number >= forms.full_from)),
        promoted=promoted,
        by_hand=tuple(hand),
        unpinned=tuple(number for number in by_hand if number not in pinned),
        batch=len(turns) - len(turns) % BATCH_TURNS,
        replanned=forms.replanned,
        values=_shown_values(values, promoted, forms.full_from),
        tokens=spent + sum(turns[n - 1].full for n in promoted if n not in hand),
    )


def _shifted(chosen: WorkingSet, behind: int) -> WorkingSet:
    """The same plan in the session's own numbers."""
    return chosen.model_copy(
        update={
            "turns": chosen.turns + behind,
            "behind": behind,
            "packet_through": chosen.packet_through + behind if chosen.packet_through else 0,
            "full_from": chosen.full_from + behind,
            "card_blocks": tuple(number + behind for number in chosen.card_blocks),
            "sent": tuple(number + behind for number in chosen.sent),
            "promoted": tuple(number + behind for number in chosen.promoted),
            "by_hand": tuple(number + behind for number in chosen.by_hand),
            "unpinned": tuple(number + behind for number in chosen.unpinned),
            "batch": chosen.batch + behind,
            "values": {number + behind: three for number, three in chosen.values.items()},
        }
    )


class _Forms(NamedTuple):
    """The stable history: packet, then cards, then full turns."""

    packet: int
    full_from: int
    replanned: bool = False
    card_blocks: tuple[int, ...] = ()
    sent: bool = False
    """Whether turns stand as they were sent."""


def _own(before: Before | None, behind: int) -> Before | None:
    """The same forms in the numbers of the turns behind a reset."""
    if before is None or not behind:
        return before
    return Before(
        max(0, before.packet_through - behind),
        before.full_from - behind,
        tuple(number - behind for number in before.card_blocks),
        before.room,
        {number - behind: tokens for number, tokens in before.sent.items()},
        frozenset(number - behind for number in before.whole),
        frozenset(number - behind for number in before.named),
    )


def _standing(turns: Sequence[TurnCost], sent: Mapping[int, int]) -> Sequence[TurnCost]:
    """What turns take as they stand: as sent, or as closed records."""
    return StandingCosts(turns, sent) if sent else turns


def _continued(turns: Sequence[TurnCost], before: Before, room: Room) -> _Forms:
    """The forms of the plan before where everything still fits in them; else one pass that leaves little."""
    forms = _Forms(
        before.packet_through, before.full_from, card_blocks=before.card_blocks, sent=True
    )
    if _cost(_standing(turns, before.sent), forms, room) <= room.tokens:
        return forms
    left = int(room.tokens * SENT_FULL)
    full_from = len(turns) + 1
    oldest = max(before.full_from, len(turns) + 1 - SENT_NEWEST)
    while full_from > oldest and turns[full_from - 2].full <= left:
        full_from -= 1
        left -= turns[full_from - 1].full
    spent = sum(turn.full for turn in turns[full_from - 1 :])
    # Under pressure the room is what one turn leaves for the moment: cards are weighed against the room there was.
    share = int(max(room.tokens, before.room) * SENT_CARDS)
    cards = min(max(room.packet, share + left), room.tokens - spent)
    packet = _packet_end(turns[: full_from - 1], cards, room, before.packet_through)
    blocks = before.card_blocks if packet == before.packet_through else ()
    if full_from - 1 > max(packet, *blocks, before.full_from - 1 if blocks else 0):
        blocks = (*blocks, full_from - 1)
    return _Forms(packet, full_from, len(turns) % BATCH_TURNS > 0, blocks)


def _less(room: Room, tokens: int) -> Room:
    left = room.tokens - tokens
    return Room(left, room.packet if left >= room.packet else 0)


def _forms(turns: Sequence[TurnCost], room: Room, room_at: RoomAt, kept: int) -> _Forms:
    """The forms that the batch boundaries so far have led to; those of now where they leave too much.

    Args:
        kept: tokens that turns brought back by hand take of every room.
    """
    forms = _Forms(0, 1)
    full = [0, *accumulate(turn.full for turn in turns)]
    for batch in range(BATCH_TURNS, len(turns) + 1, BATCH_TURNS):
        then = _steady(_less(room_at(batch), kept))
        if (forms.packet, forms.full_from) == (0, 1) and full[batch] + _growth(
            full, batch
        ) <= then.tokens:
            continue
        closed = turns[:batch]
        if _cost(closed, forms, then) + _growth(full, batch) > then.tokens:
            forms = _stable(closed, then, _mark(then))
    if _cost(turns, forms, _less(room, kept)) > room.tokens - kept:
        now = _stable(turns, _less(room, kept), 1.0)
        return now._replace(replanned=len(turns) % BATCH_TURNS > 0)
    return forms


def _mark(room: Room) -> float:
    return LOW_WATER + LOW_WATER_SMALL * min(1.0, SMALL_ROOM / max(1, room.tokens))


def _steady(room: Room) -> Room:
    """The room rounded down to four binary digits: a factor that follows each answer must not move earlier decisions."""
    step = 1 << max(0, room.tokens.bit_length() - 4)
    return Room(max(0, room.tokens) // step * step, room.packet)


def _growth(full: Sequence[int], batch: int) -> int:
    """What the next batch will take, should it be like the last one."""
    return full[batch] - full[batch - BATCH_TURNS]


def _stable(turns: Sequence[TurnCost], room: Room, mark: float) -> _Forms:
    """One pass down to a share of the room: the newest turns full, cards before them, a packet for the rest."""
    count = len(turns)
    free = int(room.tokens * mark)
    if sum(turn.full for turn in turns) <= free:
        return _Forms(0, 1)
    cards = _cards(turns)
    # What stands before the full turns is paid first: cards up to their share, else a packet with the cards it leaves.
    share = CARD_SHARE + CARD_SHARE_SMALL * min(1.0, SMALL_ROOM / max(1, free))
    before = min(cards, max(room.packet, int(free * share)))
    full_from = count + 1
    left = free - before
    while full_from > 1 and turns[full_from - 2].full <= left:
        full_from -= 1
        left -= turns[full_from - 1].full
    return _Forms(_packet_end(turns[: full_from - 1], before + left, room), full_from)


def _packet_end(turns: Sequence[TurnCost], tokens: int, room: Room, least: int = 0) -> int:
    """How many of these turns go into the packet: as few whole batches as let the rest stand as cards, and `least` at least."""
    if not least and _cards(turns) <= tokens:
        return 0
    sums = [0, *accumulate(turn.card for turn in turns)]
    end = least or BATCH_TURNS
    while end < len(turns) and sums[-1] - sums[end] + CARDS_FRAME_TOKENS + room.packet > tokens:
        end += BATCH_TURNS
    return min(end, len(turns))


def _cost(turns: Sequence[TurnCost], forms: _Forms, room: Room) -> int:
    cards = _cards(turns[forms.packet : forms.full_from - 1])
    full = sum(turn.full for turn in turns[forms.full_from - 1 :])
    frames = CARDS_FRAME_TOKENS * max(0, len(forms.card_blocks) - 1)
    return cards + frames + full + (room.packet if forms.packet else 0)


def _cards(turns: Sequence[TurnCost]) -> int:
    """What these turns cost as cards, the frame around them included."""
    return sum(turn.card for turn in turns) + CARDS_FRAME_TOKENS if turns else 0


def _promoted(
    turns: Sequence[TurnCost],
    values: Mapping[int, Values],
    left: int,
    room: Room,
    by_hand: Sequence[int],
) -> tuple[int, ...]:
    """Turns brought back whole: those an operator wants, then the most valuable ones that fit."""
    chosen = list(by_hand)
    budget = min(left, int(room.tokens * PROMOTION_SHARE))
    ranked = sorted(
        (
            turns[number - 1]
            for number, three in values.items()
            if number not in chosen and _deserves(three)
        ),
        key=lambda turn: (-values[turn.number].value, -turn.number),
    )
    for turn in ranked:
        if turn.full <= budget:
            chosen.append(turn.number)
            budget -= turn.full
    return tuple(sorted(chosen))


def _deserves(values: Values) -> bool:
    return values.value >= MIN_PROMOTION


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
