"""What an operator left out, asked of ranges and turns instead of single items (design 8).

A text made of a whole range (a handoff, a packet, a line of the thread) cannot lose one item, so it is judged as a whole.
"""

from __future__ import annotations

from collections.abc import Collection

from ctxengine.engine.compaction.acts import HandForm
from ctxengine.engine.events import EventType
from ctxengine.engine.ports import SessionLog
from ctxengine.engine.turns.closed import ClosedTurns


def any_within(excluded: Collection[str], first: int, last: int) -> bool:
    """Whether an item of these stands between two events, both included."""
    return any(first <= event_of(item) <= last for item in excluded)


def turns_left_out(closed: ClosedTurns, excluded: Collection[str]) -> frozenset[int]:
    """Numbers of the closed turns of which an operator left something out."""
    if not excluded:
        return frozenset()
    return frozenset(
        event.payload["number"]
        for event in closed.events
        if any_within(excluded, event.payload["first"], event.payload["last"])
    )


def left_out_since(
    log: SessionLog, event: int, first: int, last: int, *, excluded: Collection[str], acts: int
) -> bool:
    """Whether a text that was written at `event` over a range may hold what an operator has left out since.

    Args:
        first: first event of the range.
        last: last event of the range.
        excluded: item ids left out now.
        acts: newest act that counts, so that a later one changes nothing of what was sent.
    """
    if not any_within(excluded, first, last):
        return False
    return any(
        event < act.sequence <= acts
        and act.payload["ordinal"] is not None
        and act.payload["form"] == HandForm.EXCLUDED.value
        and first <= act.payload["sequences"][0] <= last
        and f"{act.payload['sequences'][0]}.{act.payload['ordinal']}" in excluded
        for act in log.every(EventType.PRESENTATION_SET)
    )


def event_of(item: str) -> int:
    """Sequence of the event an item came in."""
    return int(item.partition(".")[0])
