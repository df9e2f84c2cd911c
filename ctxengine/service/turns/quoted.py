"""Which closed turns quote content that is about to be erased: their cards and index rows go with it (design 4)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence
from typing import NamedTuple
from uuid import UUID

from ctxengine.engine.events import EventType
from ctxengine.ledger.models import Body, Event, SessionRow
from ctxengine.ledger.postings import forget_turns


class QuotingTurns(NamedTuple):
    """Closed turns that hold some of what goes."""

    numbers: tuple[int, ...] = ()
    cards: tuple[UUID, ...] = ()
    """Bodies of their cards that are not erased yet."""


def turns_quoting(
    session: SessionRow, sequences: Sequence[int], bodies: Collection[UUID]
) -> QuotingTurns:
    """Closed turns that one of these events belongs to, or whose card is one of these bodies."""
    key = {"tenant_id": session.tenant_id, "session_id": session.id}
    rows = Event.objects.filter(**key, type=EventType.TURN_CLOSED.value)
    gone, named = sorted(sequences), set(bodies)
    found = [
        (payload["number"], body)
        for payload, body in rows.order_by("sequence").values_list("payload", "body_id")
        if body in named or _holds(gone, payload["first"], payload["last"])
    ]
    left = Body.objects.filter(**key, id__in=[body for _, body in found], erased_at__isnull=True)
    return QuotingTurns(
        tuple(number for number, _ in found), tuple(left.values_list("id", flat=True))
    )


def forget_quoting(session: SessionRow, turns: QuotingTurns) -> None:
    """Take these turns out of the index; their cards are bodies, and are blanked with the others."""
    if turns.numbers:
        forget_turns(session.tenant_id, session.id, turns.numbers)


def _holds(gone: Sequence[int], first: int, last: int) -> bool:
    place = bisect_left(gone, first)
    return place < len(gone) and gone[place] <= last
