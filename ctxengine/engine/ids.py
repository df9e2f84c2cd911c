"""Identifier types of the engine.

A sequence (position of an event in a session's ledger) and an index (position in some list) are different
types and are never compared; design section 2.
"""

from __future__ import annotations

from typing import NamedTuple, NewType

TenantId = NewType("TenantId", str)
SessionId = NewType("SessionId", str)
RunId = NewType("RunId", str)
RequestId = NewType("RequestId", str)
EvidenceId = NewType("EvidenceId", str)
EventSeq = NewType("EventSeq", int)
ItemIndex = NewType("ItemIndex", int)


class ItemId(NamedTuple):
    """Where an item lives: the event it arrived in and its place inside that event."""

    sequence: EventSeq
    ordinal: int

    def __str__(self) -> str:
        return f"{self.sequence}.{self.ordinal}"


def parse_item_id(text: str) -> ItemId:
    """Read the `sequence.ordinal` form back.

    Raises:
        ValueError: the text is not two whole numbers joined by a dot.
    """
    sequence, dot, ordinal = text.partition(".")
    if not dot:
        raise ValueError(f"An item id looks like 12.0, not {text!r}.")
    return ItemId(EventSeq(int(sequence)), int(ordinal))
