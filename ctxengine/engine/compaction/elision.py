"""Typed pointers: what stands in a summary for content that a summariser must not read (frozen-prefix spec, Compaction)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from pydantic import BaseModel, ConfigDict

from ctxengine.engine.compaction.evidence_texts import brings_unseen
from ctxengine.engine.ids import ItemId, parse_item_id
from ctxengine.engine.items import ForeignPart, Item, ItemKind, TextPart
from ctxengine.engine.trust.levels import Trust

READABLE = frozenset({Trust.USER, Trust.MODEL})
"""A summariser reads these two levels and no other (design 7.15)."""

_NAME = re.compile(r"[\w.:/-]{1,64}")
"""A tool's name that is told; one of another shape is known by the pointer's id alone."""
_BY_TOOL = "tool:"
"""Before a tool's own name in the source of its results."""
_MOST_TOOLS = 6
"""Most tools that one line for many pointers names."""

KIND_NAMES = {
    ItemKind.USER_MESSAGE: "user.message",
    ItemKind.ASSISTANT_MESSAGE: "assistant.message",
    ItemKind.TOOL_CALL: "tool.call",
    ItemKind.TOOL_RESULT: "tool.result",
    ItemKind.SUMMARY: "summary",
}


class ElidedSpan(BaseModel):
    """Content that was there, what it was, how large, how trusted, and where it still is."""

    model_config = ConfigDict(frozen=True)

    item_id: str
    """`sequence.ordinal`; recall takes it."""
    kind: str
    trust_level: Trust
    byte_length: int
    """UTF-8 bytes of the content as received."""
    artifact_ref: str | None = None
    """Where the content lies when that is not the session's own body store."""
    event_id: int
    """Event the content arrived in."""
    tool: str = ""
    """Tool of the plan that it came from; empty for what came from none, and in summaries of before `ledger-summary@2`."""

    @property
    def item(self) -> ItemId:
        """The id as a value."""
        return parse_item_id(self.item_id)


def span_of(item: Item) -> ElidedSpan:
    """The pointer's facts for one item."""
    return ElidedSpan(
        item_id=str(item.id),
        kind=KIND_NAMES[item.kind],
        trust_level=item.trust,
        byte_length=item.bytes_len,
        event_id=item.id.sequence,
    )


def named(
    spans: Iterable[ElidedSpan], items: Iterable[Item], tools: Collection[str]
) -> tuple[ElidedSpan, ...]:
    """The pointers with the tools that their content came from.

    Only a name that the plan pins is told, and only where it is one word: what a model calls a tool may be any text. A
    result of a deferred tool is that tool's, whatever its call was wrapped in.

    Args:
        items: what the pointers stand for, among others.
        tools: names that the plan pins.
    """
    of = {str(item.id): tool for item in items if (tool := _tool_of(item)) in tools}
    return tuple(
        span.model_copy(update={"tool": name})
        if (name := of.get(span.item_id)) and _NAME.fullmatch(name)
        else span
        for span in spans
    )


def _tool_of(item: Item) -> str:
    if item.source.startswith(_BY_TOOL):
        return item.source.removeprefix(_BY_TOOL)
    return item.name or ""


def pointer_line(span: ElidedSpan) -> str:
    """`[elided] tool.result 3.0 (external_untrusted, 4,214 bytes) from web.fetch -> recall "3.0"`."""
    where = span.artifact_ref or f'recall "{span.item_id}"'
    source = f" from {span.tool}" if span.tool else ""
    return (
        f"[elided] {span.kind} {span.item_id} ({span.trust_level.value.lower()}, "
        f"{span.byte_length:,} bytes){source} -> {where}"
    )


def rest_line(spans: Sequence[ElidedSpan]) -> str:
    """One line for pointers that a summary has no room to list one by one; the event lists them all."""
    levels = "/".join(sorted({span.trust_level.value.lower() for span in spans}))
    total = sum(span.byte_length for span in spans)
    return (
        f"[elided] {len(spans)} more between {spans[0].item_id} and {spans[-1].item_id} "
        f"({levels}, {total:,} bytes in all){_sources(spans)} -> recall any of them by its id"
    )


def _sources(spans: Sequence[ElidedSpan]) -> str:
    tools = list(dict.fromkeys(span.tool for span in reversed(spans) if span.tool))
    if not tools:
        return ""
    more = len(tools) - _MOST_TOOLS
    return f" from {', '.join(tools[:_MOST_TOOLS])}{f' and {more} other tools' if more > 0 else ''}"


def is_readable(item: Item) -> bool:
    """Whether a summariser may read the item's text: said by the user or the model, and text at all.

    What stands beside the text (an image, what a provider's own tools brought) it does not read: `holds_more`. Where nobody
    here can read what these brought, the text beside it may repeat that unseen, and is not read either.
    """
    if item.kind is ItemKind.SUMMARY or item.trust not in READABLE or brings_unseen(item):
        return False
    texts = [part.text for part in item.parts if isinstance(part, TextPart)]
    return len(texts) == len(item.parts) or any(text.strip() for text in texts)


def holds_more(item: Item) -> bool:
    """Whether something that is no text stands in the item, to be pointed at."""
    return not all(isinstance(part, TextPart) for part in item.parts)


def has_foreign_block(item: Item) -> bool:
    """Whether a block only one provider understands is among the item's parts."""
    return any(isinstance(part, ForeignPart) for part in item.parts)
