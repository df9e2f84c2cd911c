"""The log of a session that is being imported: handed over part by part, so that little of it is held (design 4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.log.records import Batch, EventRecord
from ctxengine.engine.memory import MemoryLog, Stored
from ctxengine.engine.trust.levels import Trust

_GONE = EventRecord(
    EventSeq(0),
    EventType.REQUEST_STARTED,
    Trust.PLATFORM,
    {},
    None,
    None,
    0,
    "",
    "",
    datetime.min.replace(tzinfo=UTC),
)
"""Stands where an event's record was."""


class ImportLog(MemoryLog):
    """A log in memory that can let go of what was handed over; sums and open calls stay.

    Whoever hands over must not ask for older events or contents again.
    """

    def __init__(
        self, tenant: str, session: str, *, salt: Callable[[], bytes], body_id: Callable[[int], str]
    ) -> None:
        """Start an empty log; see `MemoryLog`."""
        super().__init__(tenant, session, salt=salt, body_id=body_id)
        self._waiting: list[Batch] = []
        self._kept: list[EventRecord] = []
        """Events with contents that were handed over and may be asked for."""
        self._forgotten = 0
        """Events whose records are gone."""
        self.waiting_bytes = 0
        """Bytes of contents that were not handed over."""

    def append(
        self,
        drafts: Sequence[EventDraft],
        *,
        expected: EventSeq | None,
        at: datetime,
        key: str = "",
    ) -> Batch:
        """Append all drafts or none; see `SessionLog.append`."""
        batch = super().append(drafts, expected=expected, at=at, key=key)
        self._waiting.append(batch)
        for event in batch.events:
            if event.body is not None:
                self.waiting_bytes += event.body.length
        return batch

    def hand_over(self, cut: EventSeq, *, last: bool = False) -> Stored:
        """What was appended since the last time; what stands before `cut` is forgotten with the next call.

        Units may still grow until the end, so they come with the last part.
        """
        self._forget(cut)
        batches, self._waiting, self.waiting_bytes = self._waiting, [], 0
        events = [event for batch in batches for event in batch.events]
        bodies = {}
        for event in events:
            kept = self._bodies.get(event.body.id) if event.body is not None else None
            if event.body is not None and kept is not None:
                bodies[event.body.id] = kept
                self._kept.append(event)
        return Stored(
            events=events,
            items=[item for batch in batches for item in batch.items],
            units=self._units if last else (),
            bodies=bodies,
        )

    def _forget(self, cut: EventSeq) -> None:
        """Drop what stands before the cut: every event's record, and the contents and items of what was handed over."""
        for place in range(self._forgotten, max(self._forgotten, cut - 1)):
            self._events[place] = _GONE
        self._forgotten = max(self._forgotten, cut - 1)
        ahead = []
        for event in self._kept:
            if event.sequence >= cut:
                ahead.append(event)
            elif event.body is not None:
                del self._bodies[event.body.id]
                self._items.pop(event.sequence, None)
        self._kept = ahead
        self.let_go(cut)
