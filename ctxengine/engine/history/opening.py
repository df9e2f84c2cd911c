"""The line in front of a conversation that opens with the assistant's own message: every API wants the user first."""

from __future__ import annotations

from collections.abc import Sequence

from ctxengine.engine.fresh import OPENING_TEXT
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import ItemKind, Unit
from ctxengine.engine.ports import UnitSource


def opening_line(history: Sequence[Unit], log: UnitSource, boundary: EventSeq) -> str:
    """That line; empty where the user speaks first, or nobody yet.

    Args:
        boundary: where the open run begins: it opens the conversation where there is no history.
    """
    return opening_of(history or log.units(boundary, EventSeq(boundary + 1)))


def opening_of(shown: Sequence[Unit]) -> str:
    """That line for units in front of which nothing else stands."""
    if not shown or shown[0].items[0].kind in {ItemKind.USER_MESSAGE, ItemKind.SUMMARY}:
        return ""
    return OPENING_TEXT
