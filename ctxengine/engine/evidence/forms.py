"""All forms one result can stand in, side by side, each with the way back to the whole (capacity spec 3)."""

from __future__ import annotations

from typing import NamedTuple

from ctxengine.engine.derive import text_of_item
from ctxengine.engine.evidence.digest import Shape, digest_of
from ctxengine.engine.evidence.ends import both_ends
from ctxengine.engine.evidence.pointer import pointer_is_shorter, pointer_text
from ctxengine.engine.items import Item

WINDOW_CHARS = 30_000
"""A result of the open run stands word for word up to here (characters)."""


class EvidenceForms(NamedTuple):
    """The texts; a form that would be no shorter than the whole is the whole."""

    whole: str
    """As received."""
    lines: int
    window: str
    """What the open run of a session under the default policy shows of it."""
    digest: str
    """What a closed turn shows of it."""
    shape: Shape
    pointer: str
    """What stands for it where results had to yield."""


def forms_of(item: Item) -> EvidenceForms:
    """The forms of a stored result."""
    text = text_of_item(item)
    reference = str(item.id)
    digest = digest_of(text, reference=reference, is_error=item.is_error)
    shorter = pointer_is_shorter(item.parts, item.bytes_len)
    return EvidenceForms(
        whole=text,
        lines=text.count("\n") + 1,
        window=both_ends(text, WINDOW_CHARS, reference=f'id "{reference}"').text,
        digest=digest.text,
        shape=digest.shape,
        pointer=pointer_text(item) if shorter else text,
    )
