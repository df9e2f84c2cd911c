"""Turns: a directive with everything up to its final answer; whole, always (capacity spec 2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ctxengine.engine.derive import text_of_item
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import PLATFORM_SOURCE, Item, ItemKind, Unit, said_by_a_guard


@dataclass(frozen=True, slots=True)
class Turn:
    """One closed turn of a session."""

    number: int
    """Place in the session, from 1: what people and `recall` call it by."""
    units: tuple[Unit, ...]

    @property
    def first(self) -> EventSeq:
        """Event that opens it."""
        return self.units[0].sequence

    @property
    def last(self) -> EventSeq:
        """Its newest event."""
        return max(unit.last_sequence for unit in self.units)

    @property
    def items(self) -> tuple[Item, ...]:
        """All items in order."""
        return tuple(item for unit in self.units for item in unit.items)

    @property
    def directives(self) -> tuple[Item, ...]:
        """What the user said: the message that opened it and those that came in later, without what guards said between."""
        return tuple(
            item
            for item in self.items
            if item.kind is ItemKind.USER_MESSAGE and not said_by_a_guard(item)
        )

    @property
    def prose(self) -> tuple[Item, ...]:
        """Everything the assistant said, between calls and at the end."""
        return tuple(item for item in self.items if item.kind is ItemKind.ASSISTANT_MESSAGE)

    @property
    def answer(self) -> tuple[Item, ...]:
        """The assistant's prose of the last step that has any."""
        for unit in reversed(self.units):
            said = [item for item in unit.items if item.kind is ItemKind.ASSISTANT_MESSAGE]
            if any(text_of_item(item).strip() for item in said):
                return tuple(said)
        return ()

    @property
    def narration(self) -> str:
        """The same as text."""
        return "\n".join(text_of_item(item) for item in self.answer).strip()

    @property
    def statement(self) -> str:
        """What the platform itself said at the turn's end, behind the assistant's last word; empty where it said nothing."""
        said: list[str] = []
        for item in reversed(self.items):
            if not (item.kind is ItemKind.USER_MESSAGE and said_by_a_guard(item)):
                break
            if item.source == PLATFORM_SOURCE:
                said.insert(0, text_of_item(item))
        return "\n".join(said).strip()

    @property
    def exchanges(self) -> tuple[tuple[Item, Item | None], ...]:
        """Each tool call with its result, in call order; None where no result ever came."""
        pairs: list[tuple[Item, Item | None]] = []
        for unit in self.units:
            results = {i.wire_call_id: i for i in unit.items if i.kind is ItemKind.TOOL_RESULT}
            pairs.extend(
                (item, results.get(item.wire_call_id))
                for item in unit.items
                if item.kind is ItemKind.TOOL_CALL
            )
        return tuple(pairs)


def turns_of(units: Sequence[Unit], *, first_number: int = 1) -> tuple[Turn, ...]:
    """Split consecutive units into turns.

    A user message opens a turn unless it belongs to the run of the unit before it: a late input is part of its turn. What
    comes before the first user message is a turn of its own.

    Args:
        first_number: number of the first turn among `units`.
    """
    turns: list[list[Unit]] = []
    for unit in units:
        if not turns or (_opens(unit) and not _same_run(turns[-1][-1], unit)):
            turns.append([])
        turns[-1].append(unit)
    return tuple(Turn(number, tuple(some)) for number, some in enumerate(turns, start=first_number))


def _opens(unit: Unit) -> bool:
    return unit.items[0].kind is ItemKind.USER_MESSAGE


def _same_run(before: Unit, unit: Unit) -> bool:
    run = unit.items[0].run
    return run is not None and before.items[0].run == run
