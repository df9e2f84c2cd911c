"""Fresh rows that stay where they were sent, read back from the events that keep them (design 7.12)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ctxengine.engine.events import EventType
from ctxengine.engine.history.left_out import turns_left_out
from ctxengine.engine.history.projection import SentBlock
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.log.records import EventRecord
from ctxengine.engine.ports import SessionLog
from ctxengine.engine.tail import without_turns
from ctxengine.engine.turns.closed import closed_turns

_BESIDE = 8
"""Newest blocks that are looked at beside those that are wanted."""


def blocks_of(
    log: SessionLog, sequences: Sequence[int], *, excluded: Collection[str] = ()
) -> tuple[SentBlock, ...]:
    """The blocks that these events keep, in their order.

    Args:
        excluded: items an operator left out: the thread no longer names what was asked in their turns.
    """
    if not sequences:
        return ()
    wanted = set(sequences)
    newest = log.latest({EventType.FRESH_SENT}, limit=2 * len(wanted) + _BESIDE)
    events = [event for event in reversed(newest) if event.sequence in wanted]
    if len(events) != len(wanted):
        # An older request: its blocks are not among the newest ones.
        first, last = min(wanted), max(wanted)
        events = [
            event
            for event in log.events(after=EventSeq(first - 1), limit=last - first + 1)
            if event.sequence in wanted
        ]
    return blocks_from(log, events, excluded=excluded)


def blocks_from(
    log: SessionLog, events: Sequence[EventRecord], *, excluded: Collection[str] = ()
) -> tuple[SentBlock, ...]:
    """The blocks that these events keep, where the events were read already."""
    if not events:
        return ()
    bodies = {event.body.id for event in events if event.body is not None}
    texts = log.texts(bodies)
    out = turns_left_out(closed_turns(log), excluded) if excluded else frozenset()
    return tuple(
        _block(event, texts.get(event.body.id) if event.body else None, out) for event in events
    )


def _block(event: EventRecord, text: str | None, out: Collection[int]) -> SentBlock:
    payload = event.payload
    if text is not None and out:
        text = without_turns(text, out)
    return SentBlock(
        sequence=event.sequence,
        before=EventSeq(payload["before"]),
        text=text,
        digest=payload["digest"],
        tokens=payload["tokens"],
        rows=payload["rows"],
        by_row=payload["by_row"],
        by_trust=payload["by_trust"],
    )
