"""A step's recall, knowledge and correction lines: read once, recorded as an event, rendered from it (design 7.16)."""

from __future__ import annotations

import json

from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import ContentFormat
from ctxengine.engine.ports import SessionLog
from ctxengine.engine.step import Memory
from ctxengine.engine.trust.levels import Trust


def memory_draft(memory: Memory, content_head: int, *, owner: str = "") -> EventDraft | None:
    """The event that records what was read for a step; None when nothing was. `owner` is whose memory it is."""
    if not (memory.knowledge or memory.recall or memory.corrections):
        return None
    body = json.dumps(
        {
            "knowledge": [list(line) for line in memory.knowledge],
            "recall": [list(line) for line in memory.recall],
            "corrections": [list(line) for line in memory.corrections],
        }
    )
    return EventDraft(
        type=EventType.MEMORY_READ,
        trust=Trust.MEMORY,
        payload={
            "format": ContentFormat.TEXT.value,
            "knowledge": len(memory.knowledge),
            "recall": len(memory.recall),
            "corrections": len(memory.corrections),
            "content_sequence": content_head,
        },
        body=body,
        owner=owner,
    )


def memory_is_gone(log: SessionLog, sequence: int | None) -> bool:
    """Whether an event recorded lines that were erased since."""
    if sequence is None:
        return False
    (event,) = log.events(after=EventSeq(sequence - 1), limit=1)
    return event.body is not None and log.body(event.body.id) is None


def memory_of(log: SessionLog, sequence: int | None) -> Memory:
    """The lines an event recorded; none when there is no such event or its body was erased."""
    if sequence is None:
        return Memory()
    (event,) = log.events(after=EventSeq(sequence - 1), limit=1)
    text = log.body(event.body.id) if event.body is not None else None
    if text is None:
        return Memory()
    data = json.loads(text)
    return Memory(
        *(
            tuple((line[0], line[1]) for line in data[kind])
            for kind in ("knowledge", "recall", "corrections")
        )
    )
