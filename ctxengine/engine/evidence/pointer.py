"""Pointers: the typed line that stands for content that is not sent (frozen-prefix spec, Yield order; Trust labeling)."""

from __future__ import annotations

from collections.abc import Sequence

from ctxengine.engine.items import Item, Part, TextPart

MAX_POINTER_BYTES = 160
"""No pointer is longer (bytes); a result that is no longer than this stands as it is."""


def pointer_text(item: Item) -> str:
    """What a result was, how large, how trusted, and how to get it back."""
    return pointer_line(str(item.id), item.trust.value.lower(), item.bytes_len)


def pointer_line(reference: str, trust: str, bytes_len: int) -> str:
    """The same, of what it says: the item's id, its trust in small letters, its length in bytes."""
    return (
        f"[elided] tool result {reference} ({trust}, {bytes_len:,} bytes); "
        f'the whole text is kept: recall it with id "{reference}".'
    )


def pointer_is_shorter(parts: Sequence[Part], bytes_len: int) -> bool:
    """Whether a result gains from standing as its pointer: decided by its content, whatever counts it.

    Args:
        bytes_len: UTF-8 length of the result as received.
    """
    return bytes_len > MAX_POINTER_BYTES or any(not isinstance(part, TextPart) for part in parts)
