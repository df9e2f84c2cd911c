"""Which part of a history may be compacted, and what of it must be shown again behind the result (boundary spec, retention).

A boundary falls where a turn begins, so that no batch of calls is split and nothing of the open run is covered. A call without
a result restricts it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ctxengine.engine.boundary.checkpoint import Checkpoint, Operations, marks_below
from ctxengine.engine.canonical import digest_of
from ctxengine.engine.compaction.acts import Marks
from ctxengine.engine.events import EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import ItemKind, Unit
from ctxengine.engine.log.records import EventRecord
from ctxengine.engine.ports import SessionLog

_RETAINED_TYPES = frozenset(
    {EventType.USER_MESSAGE, EventType.INPUT_RECEIVED, EventType.TOOL_RESULT}
)
OVERLAYS = frozenset({"reminder", "hook"})
"""Retained content that a provider does not read: it follows the window instead."""


class Kept(NamedTuple):
    """Units to be shown again, by the sequence that opens them."""

    retained: tuple[int, ...]
    """For good: the first objective, and what is marked."""
    operations: Operations
    """While they are alive: a later result closes them."""
    overlays: frozenset[int]
    """Those retained now that the provider does not read."""


@dataclass(frozen=True, slots=True)
class Covered:
    """What one compaction would cover: the checkpoint before it, and the units since."""

    base: Checkpoint | None
    units: tuple[Unit, ...]
    """Newly covered units, as an operator's acts show them, oldest first."""
    cut: EventSeq
    """Where what stays whole begins."""
    kept: Kept
    """What must be shown again behind the result, of the base as well."""
    pinned: tuple[int, ...]
    """Units that an operator has pinned for now: shown again as well, and no part of the result."""
    source: str
    """Digest of all of it."""
    marks: str

    @property
    def shown(self) -> tuple[int, ...]:
        """Units to be shown again behind the result, by the sequence that opens them."""
        alive = (unit for _, unit in self.kept.operations)
        return tuple(sorted({*self.kept.retained, *alive, *self.pinned}))

    @property
    def first(self) -> int:
        """First sequence of the newly covered units."""
        return self.units[0].sequence

    @property
    def tokens(self) -> int:
        """Tokens of what the result would replace: the base and the newly covered units."""
        return sum(unit.tokens for unit in self.units) + (self.base.tokens if self.base else 0)

    @property
    def turns(self) -> int:
        """Turns that the result would cover."""
        return len(turn_starts(self.units)) + (self.base.turns if self.base else 0)


def turn_starts(units: Sequence[Unit]) -> list[int]:
    """Places in `units` where a turn begins: a message of another run than the unit before."""
    return [
        place
        for place, unit in enumerate(units)
        if not place or unit.items[0].run != units[place - 1].items[0].run
    ]


def settled(
    log: SessionLog,
    units: Sequence[Unit],
    *,
    base: Checkpoint | None,
    marks: Marks,
    below: EventSeq,
    keep_turns: int,
    keep_tokens: int,
    through: int | None = None,
) -> Covered | None:
    """The longest settled part in front of the recent turns; None where nothing is settled.

    Args:
        units: everything behind the base's cut and before the open run, as shown.
        below: where the open run begins.
        keep_turns: most recent turns that stay whole.
        keep_tokens: most tokens that they may take; fewer turns stay where they take more.
        through: last event that may be covered, where somebody said so.
    """
    starts = turn_starts(units)
    limit = next((p for p, unit in enumerate(units) if unit.open_calls), len(units))
    if through is not None:
        limit = min(limit, sum(unit.last_sequence <= through for unit in units))
    place = len(units)
    kept = 0
    for start in reversed(starts):
        tokens = sum(unit.tokens for unit in units[start:])
        if kept >= keep_turns or tokens > keep_tokens:
            break
        place, kept = start, kept + 1
    if place > limit:
        place = max((start for start in starts if start <= limit), default=0)
    if place == 0:
        return None
    cut = units[place].sequence if place < len(units) else below
    return covered_until(log, units[:place], base=base, marks=marks, cut=cut)


def covered_until(
    log: SessionLog,
    units: Sequence[Unit],
    *,
    base: Checkpoint | None,
    marks: Marks,
    cut: EventSeq,
) -> Covered | None:
    """Exactly these units behind a base, with what must be shown again; None for no unit at all."""
    if not units:
        return None
    acts = marks_below(marks, cut)
    source = source_of_units(base, units, acts)
    pinned = tuple(sequence for sequence in marks.pinned if sequence < cut)
    return Covered(base, tuple(units), cut, _kept(log, units, base), pinned, source, acts)


def source_of_units(base: Checkpoint | None, units: Iterable[Unit], marks: str) -> str:
    """Digest of what a checkpoint covers: the one before it, each unit since, and the acts on them."""
    return digest_of(
        {
            "base": base.source if base else "",
            "units": [[unit.sequence, [item.digest for item in unit.items]] for unit in units],
            "marks": marks,
        }
    )


def _kept(log: SessionLog, units: Sequence[Unit], base: Checkpoint | None) -> Kept:
    """What must follow the result: the first objective, what is marked, operations that are alive at its end."""
    first = units[0]
    kept = set(base.retained) if base else {int(first.sequence)}
    owner = {item.id.sequence: unit for unit in units for item in unit.items}
    overlays: set[int] = set()
    alive = dict(base.operations) if base else {}
    for event in _between(log, first.sequence, units[-1].last_sequence):
        unit = owner.get(event.sequence)
        retain, operation = event.payload.get("retain"), event.payload.get("operation_id")
        if unit is None:
            continue
        if operation and retain != "operation":
            # A plain result of an operation closes it: its identity need not be kept any longer.
            alive.pop(str(operation), None)
        if retain == "operation":
            alive[str(operation or event.sequence)] = int(unit.sequence)
        elif retain:
            kept.add(int(unit.sequence))
            if retain in OVERLAYS and unit.items[0].kind is ItemKind.USER_MESSAGE:
                overlays.add(int(unit.sequence))
    return Kept(tuple(sorted(kept)), tuple(alive.items()), frozenset(overlays))


def _between(log: SessionLog, first: int, last: int) -> Iterable[EventRecord]:
    """Content events of a range that may be marked to be retained, oldest first."""
    events = log.events(after=EventSeq(first - 1), limit=last - first + 1)
    return (event for event in events if event.type in _RETAINED_TYPES)
