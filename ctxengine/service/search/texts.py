"""What of an event can be searched: the texts of its items, secrets masked (design 8)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ctxengine.engine.content.errors import ContentError
from ctxengine.engine.events import EventType
from ctxengine.engine.items import (
    ContentFormat,
    DecodedItem,
    FilePart,
    ForeignPart,
    ImagePart,
    ItemKind,
    Part,
    TextPart,
)
from ctxengine.engine.layout import ROW_BY_NAME
from ctxengine.engine.log.hydrate import decode_event
from ctxengine.engine.redaction.redact import redact
from ctxengine.engine.trust.model_view import model_view

MOST_BYTES = 300_000
"""Of one item's text; Postgres keeps at most a megabyte of words for one entry."""
MEMORY_LINE = "memory_line"
"""The kind under which a step's knowledge, recall and corrections are found: they are no items."""
ROLES = ("user", "assistant", "tool", "summary", "memory")
SEARCHED = (
    EventType.USER_MESSAGE,
    EventType.INPUT_RECEIVED,
    EventType.SUMMARY_IMPORTED,
    EventType.RESPONSE_COMPLETED,
    EventType.TOOL_RESULT,
    EventType.MEMORY_READ,
)
"""Types of events whose bodies are searched."""
_ROLE = {
    ItemKind.USER_MESSAGE: "user",
    ItemKind.ASSISTANT_MESSAGE: "assistant",
    ItemKind.TOOL_CALL: "assistant",
    ItemKind.TOOL_RESULT: "tool",
    ItemKind.SUMMARY: "summary",
}


@dataclass(frozen=True, slots=True)
class SearchText:
    """One item as it can be searched."""

    ordinal: int
    kind: str
    role: str
    row: int
    text: str
    cut: bool


def texts_of(type: EventType, format: str, body: str) -> Iterator[SearchText]:
    """The searchable items of one event. A body that cannot be read in its format is searched as it stands."""
    if type is EventType.MEMORY_READ:
        yield _kept(0, MEMORY_LINE, "memory", ROW_BY_NAME["recall"].number, body)
        return
    try:
        items = decode_event(type, ContentFormat(format), body)
    except (ContentError, ValueError):
        items = (DecodedItem(0, ItemKind.USER_MESSAGE, (TextPart(body),)),)
    for item in items:
        row = ROW_BY_NAME["summary" if item.kind is ItemKind.SUMMARY else "conversation"]
        yield _kept(item.ordinal, item.kind, _ROLE[item.kind], row.number, _text(item))


def _text(item: DecodedItem) -> str:
    parts = [item.name or "", item.arguments or "", *map(_part, item.parts)]
    return "\n".join(part for part in parts if part)


def _part(part: Part) -> str:
    match part:
        case TextPart():
            return part.text
        case ForeignPart():
            return part.raw
        case FilePart():
            return " ".join(filter(None, (part.name, part.url)))
        case ImagePart():
            return part.url or ""


def _kept(ordinal: int, kind: str, role: str, row: int, text: str) -> SearchText:
    # Masked before it is cut: half a secret is recognised by nobody.
    masked = model_view(redact(text).text)
    data = masked.encode()
    cut = len(data) > MOST_BYTES
    kept = data[:MOST_BYTES].decode(errors="ignore") if cut else masked
    return SearchText(ordinal, kind, role, row, kept, cut)
