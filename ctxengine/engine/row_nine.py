"""Row 9: what stands for everything before the cut (design 6). It is never empty when something is left out."""

from __future__ import annotations

from collections.abc import Sequence

from ctxengine.engine.compaction.packet import Gap, Tile, summary_row
from ctxengine.engine.fresh import omission_text
from ctxengine.engine.history.opening import opening_of
from ctxengine.engine.items import Unit
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
    return opening_of((*history[:1], *active[:1]))
