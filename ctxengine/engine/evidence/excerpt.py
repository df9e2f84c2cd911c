"""Excerpts: the head and the tail of a tool result too large to stand in a request (spec, What history selection retains).

Some engines show windows of whole lines instead (capacity spec 3). The result itself stays whole in the log; an excerpt is made
from it when it is rendered, always in the same way. It names the item, so that the rest can be recalled, and it keeps the trust
of what it was made from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ctxengine.engine.evidence.ends import both_ends
from ctxengine.engine.evidence.inline import MIN_INLINE, InlineLimit, InlineUnit
from ctxengine.engine.items import Item, ItemKind, Part, TextPart
from ctxengine.engine.trust.truncation import truncate_text

RECALL_SOURCE = "recall:"
"""How the source of a recall's answer starts: recall gives the whole, so its answers are never excerpted."""

WINDOWED_ENGINES = frozenset({"working_set"})
"""Engines that show a large result of the open run as a window of whole lines."""

_NOTE_BYTES = 256
_HEAD_PARTS, _ALL_PARTS = 2, 3


class Excerpt(NamedTuple):
    """Both ends of a text."""

    head: str
    tail: str
    left_out_bytes: int

    def text(self, reference: str) -> str:
        """The ends with a note between them that says what is missing and how to read it."""
        return (
            f"{self.head}\n[... {self.left_out_bytes:,} bytes left out; the whole result is kept: "
            f'recall it with id "{reference}" ...]\n{self.tail}'
        )


def excerpt(text: str, limit_bytes: int) -> Excerpt | None:
    """Both ends of a text above the limit, no character torn; None when the text is within it.

    Raises:
        ValueError: the limit is below `MIN_INLINE`.
    """
    if limit_bytes < MIN_INLINE:
        msg = (
            f"An excerpt needs at least {MIN_INLINE:,} bytes, not {limit_bytes:,}; raise the limit."
        )
        raise ValueError(msg)
    total = _size(text)
    if total <= limit_bytes:
        return None
    room = limit_bytes - _NOTE_BYTES
    head = _head(text, room * _HEAD_PARTS // _ALL_PARTS)
    tail = _tail(text[len(head) :], room - room * _HEAD_PARTS // _ALL_PARTS)
    return Excerpt(head, tail, total - _size(head) - _size(tail))


def limit_of(item: Item, limit: InlineLimit) -> int | None:
    """The limit that holds for an item now, in the policy's unit; None where none does.

    A result keeps the limit it was counted under. A policy that allows less, or a result from before there was a limit, is
    excerpted under the policy's figure, without touching event or checkpoint.
    """
    if item.kind is not ItemKind.TOOL_RESULT or item.source.startswith(RECALL_SOURCE):
        return None
    return min((most for most in (item.excerpt_limit, limit.most) if most), default=None)


def limit_for(item: Item, limit: InlineLimit) -> int | None:
    """The same; None as well where the item is within it, and shown whole."""
    most = limit_of(item, limit)
    return None if most is None or _length(item, limit.unit) <= most else most


def is_legacy(item: Item, limit: InlineLimit) -> bool:
    """Whether an item is excerpted under a limit that it was not counted under."""
    most = limit_for(item, limit)
    return most is not None and most != item.excerpt_limit


def shortened(
    parts: Sequence[Part],
    limit: int,
    reference: str,
    *,
    whole_lines: bool = False,
    unit: InlineUnit = InlineUnit.BYTES,
) -> tuple[Part, ...] | None:
    """Content with its texts excerpted as one, other parts behind it; None when the texts are within the limit.

    Args:
        limit: in `unit`.
        whole_lines: cut between lines, and say which ones are missing; a limit in characters always does.
    """
    text = _text(parts)
    if unit is InlineUnit.CHARACTERS:
        shown = _window(text, limit, reference)
    elif whole_lines:
        # The same share of the characters as of the bytes, so that what is over the one limit is over the other.
        shown = _window(text, len(text) * limit // max(1, _size(text)), reference)
    else:
        ends = excerpt(text, limit)
        shown = None if ends is None else ends.text(reference)
    if shown is None:
        return None
    others = tuple(part for part in parts if not isinstance(part, TextPart))
    return (TextPart(shown), *others)


def _window(text: str, most: int, reference: str) -> str | None:
    return None if len(text) <= most else both_ends(text, most, reference=f'id "{reference}"').text


def _text(parts: Sequence[Part]) -> str:
    return "\n".join([part.text for part in parts if isinstance(part, TextPart)])


def _length(item: Item, unit: InlineUnit) -> int:
    return item.bytes_len if unit is InlineUnit.BYTES else len(_text(item.parts))


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _head(text: str, max_bytes: int) -> str:
    """The longest head within a size, up to the three bytes that a character may take more."""
    kept = text[:max_bytes]
    while (excess := _size(kept) - max_bytes) > 0:
        kept = kept[: len(kept) - -(-excess // 4)]
    return truncate_text(text, len(kept))


def _tail(text: str, max_bytes: int) -> str:
    kept = text[max(0, len(text) - max_bytes) :]
    while (excess := _size(kept) - max_bytes) > 0:
        kept = kept[-(-excess // 4) :]
    start = len(text) - len(kept)
    # A boundary is looked for backwards, so the tail may grow by one cluster.
    return text[len(truncate_text(text, start)) :]
