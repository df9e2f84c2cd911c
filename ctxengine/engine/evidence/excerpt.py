"""Excerpts: the head and the tail of a tool result too large to stand in a request (spec, What history selection retains).

Some engines show windows of whole lines instead (capacity spec 3). The result itself stays whole in the log; an excerpt is made
from it when it is rendered, always in the same way. It names the item, so that the rest can be recalled, and it keeps the trust
of what it was made from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ctxengine.engine.evidence.ends import both_ends
from ctxengine.engine.items import Item, ItemKind, Part, TextPart
from ctxengine.engine.trust.truncation import truncate_text

MIN_LIMIT_BYTES = 1_000
"""A smaller limit would leave little beside the note in the middle (bytes)."""

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
        ValueError: the limit is below `MIN_LIMIT_BYTES`.
    """
    if limit_bytes < MIN_LIMIT_BYTES:
        msg = f"An excerpt needs at least {MIN_LIMIT_BYTES:,} bytes, not {limit_bytes:,}; raise the limit."
        raise ValueError(msg)
    total = _size(text)
    if total <= limit_bytes:
        return None
    room = limit_bytes - _NOTE_BYTES
    head = _head(text, room * _HEAD_PARTS // _ALL_PARTS)
    tail = _tail(text[len(head) :], room - room * _HEAD_PARTS // _ALL_PARTS)
    return Excerpt(head, tail, total - _size(head) - _size(tail))


def limit_for(item: Item, policy_limit: int | None) -> int | None:
    """The limit under which an item is excerpted now; None when it is shown whole.

    A result keeps the limit it was counted under. A policy that allows less, or a result from before there was a limit, is
    excerpted under the policy's figure, without touching event or checkpoint.
    """
    if item.kind is not ItemKind.TOOL_RESULT or item.source.startswith(RECALL_SOURCE):
        return None
    limits = [limit for limit in (item.excerpt_limit, policy_limit) if limit]
    if not limits or item.bytes_len <= min(limits):
        return None
    return min(limits)


def is_legacy(item: Item, policy_limit: int | None) -> bool:
    """Whether an item is excerpted under a limit that it was not counted under."""
    limit = limit_for(item, policy_limit)
    return limit is not None and limit != item.excerpt_limit


def shortened(
    parts: Sequence[Part], limit_bytes: int, reference: str, *, whole_lines: bool = False
) -> tuple[Part, ...] | None:
    """Content with its texts excerpted as one, other parts behind it; None when the texts are within the limit.

    Args:
        whole_lines: cut between lines, and say which ones are missing.
    """
    text = "\n".join([part.text for part in parts if isinstance(part, TextPart)])
    shown = _window(text, limit_bytes, reference) if whole_lines else None
    if not whole_lines:
        ends = excerpt(text, limit_bytes)
        shown = None if ends is None else ends.text(reference)
    if shown is None:
        return None
    others = tuple(part for part in parts if not isinstance(part, TextPart))
    return (TextPart(shown), *others)


def _window(text: str, limit_bytes: int, reference: str) -> str | None:
    total = _size(text)
    if total <= limit_bytes:
        return None
    # The same share of the characters as of the bytes, so that what is over the one limit is over the other.
    return both_ends(text, len(text) * limit_bytes // total, reference=f'id "{reference}"').text


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
