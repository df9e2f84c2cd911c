"""Packets as brackets over the turns of a table (ui, session page)."""

from __future__ import annotations

from collections.abc import Sequence

from ctxengine.service.turns.packets import PacketRange
from inspector.turn_contexts import Bracket

MOST = 3
"""Brackets beside one table: the one in force, then the newest that cover other turns."""


def brackets_of(packets: Sequence[PacketRange], in_force: int | None) -> tuple[Bracket, ...]:
    """Those worth drawing; of several over one range, the one that stands.

    Args:
        in_force: event of the packet that the newest plan shows.
    """
    chosen: list[Bracket] = []
    ranges = set()
    standing = [packet for packet in packets if not packet.undone and not packet.held_out]
    for packet in sorted(standing, key=lambda p: (p.event != in_force, p.reserve, -p.event)):
        if (packet.first, packet.last) not in ranges and len(chosen) < MOST:
            ranges.add((packet.first, packet.last))
            chosen.append(Bracket(packet, packet.event == in_force))
    return tuple(chosen)


def place_in(bracket: Bracket, turn: int) -> str:
    """Where a turn stands in a bracket; empty outside of it."""
    first, last = bracket.packet.first, bracket.packet.last
    if not first <= turn <= last:
        return ""
    if first == last:
        return "only"
    return "start" if turn == first else "end" if turn == last else "inside"
