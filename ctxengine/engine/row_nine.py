"""Row 9: what stands for everything before the cut (design 6). It is never empty when something is left out."""

from __future__ import annotations

from collections.abc import Sequence

from ctxengine.engine.compaction.packet import Gap, Tile, summary_row
from ctxengine.engine.fresh import OPENING_TEXT, omission_text
from ctxengine.engine.items import ItemKind, Unit
from ctxengine.engine.request import LeftOut


def row_nine_text(
    left_out: LeftOut,
    tiles: Sequence[Tile],
    history: Sequence[Unit],
    active: Sequence[Unit],
    nonce_key: bytes,
) -> str:
    """The row's text: summaries with the gaps between them, else one line, else nothing."""
    if tiles:
        first = tiles[0]
        opening = (
            omission_text(turns=first.turns, units=first.units, through=first.through)
            if isinstance(first, Gap)
            else ""
        )
        return summary_row(tiles, nonce_key, opening)
    if left_out.units:
        return omission_text(turns=left_out.turns, units=left_out.units, through=left_out.through)
    shown = next(iter((*history[:1], *active[:1])), None)
    if shown is None or shown.items[0].kind in {ItemKind.USER_MESSAGE, ItemKind.SUMMARY}:
        return ""
    return OPENING_TEXT
