"""All forms one result can stand in, side by side, each with the way back to the whole (capacity spec 3)."""

from __future__ import annotations

from typing import NamedTuple

from ctxengine.engine.derive import text_of_item
from ctxengine.engine.evidence.digest import CURRENT_DIGESTS, Shape, digest_of
from ctxengine.engine.evidence.ends import both_ends
from ctxengine.engine.evidence.excerpt import limit_for, limit_of, shortened
from ctxengine.engine.evidence.inline import INLINE_MAXIMUM, NO_LIMIT, InlineLimit
from ctxengine.engine.evidence.pointer import pointer_is_shorter, pointer_text
from ctxengine.engine.items import Item, TextPart


class EvidenceForms(NamedTuple):
    """The texts; a form that would be no shorter than the whole is the whole."""

    whole: str
    """As received."""
    lines: int
    window: str
    """What the open run shows of it: the whole within the limit in force."""
    window_ends: bool
    """Whether it shows more than `INLINE_MAXIMUM` characters by a higher limit or none; `window` is then both ends of it."""
    limit: int | None
    """That limit, in the unit of the policy; None where it stands whole however long it is."""
    digest: str
    """What a closed turn shows of it."""
    shape: Shape
    pointer: str
    """What stands for it where results had to yield."""


def forms_of(
    item: Item,
    *,
    inline: InlineLimit = NO_LIMIT,
    whole_lines: bool = False,
    digests: int = CURRENT_DIGESTS,
) -> EvidenceForms:
    """The forms of a stored result.

    Args:
        inline: the limit of the session's policy; what the item was counted under is known from itself.
        whole_lines: whether the session's engine shows windows of whole lines.
        digests: version of the digests that the item's turn shows.
    """
    text = text_of_item(item)
    digest = digest_of(text, reference=str(item.id), is_error=item.is_error, version=digests)
    shorter = pointer_is_shorter(item.parts, item.bytes_len)
    limit = limit_of(item, inline)
    window = _window(item, text, inline, whole_lines)
    over = (limit is None or limit > INLINE_MAXIMUM) and len(window) > INLINE_MAXIMUM
    return EvidenceForms(
        whole=text,
        lines=text.count("\n") + 1,
        limit=limit,
        window=_ends(item, text) if over else window,
        window_ends=over,
        digest=digest.text,
        shape=digest.shape,
        pointer=pointer_text(item) if shorter else text,
    )


def _ends(item: Item, text: str) -> str:
    return both_ends(text, INLINE_MAXIMUM, reference=f'id "{item.id}"').text


def _window(item: Item, text: str, inline: InlineLimit, whole_lines: bool) -> str:
    limit = limit_for(item, inline)
    if limit is None:
        return text
    shown = shortened(item.parts, limit, str(item.id), whole_lines=whole_lines, unit=inline.unit)
    return text if shown is None else "\n".join(p.text for p in shown if isinstance(p, TextPart))
