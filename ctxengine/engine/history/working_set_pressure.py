"""When an open turn no longer fits beside closed history, and how much of that is to give way (design 6, 7.16).

Pure: a step that was prepared, or that could not be, and the plan in force decide.
"""

from __future__ import annotations

from collections.abc import Iterator

from ctxengine.engine.budget.classes import BudgetClass
from ctxengine.engine.errors import BudgetExceeded
from ctxengine.engine.history.projection import Projection
from ctxengine.engine.history.working_set_record import PlannedSet
from ctxengine.engine.inputs import Prepared
from ctxengine.engine.turns.relevance import Values

PRESSURE_SHARE = 0.5
"""What closed turns keep of what would still fit, so that the next steps of a growing turn only append."""


def smaller_rooms(
    pressed: Prepared | BudgetExceeded, projection: Projection, room_tokens: int
) -> Iterator[int]:
    """Rooms (tokens) to plan closed turns anew for, the larger first; none where the open turn fits beside them.

    Args:
        pressed: a step that would shorten the run's own results, or that could not be built at all.
        room_tokens: the room of the plan in force.
    """
    excess = _excess(pressed, projection)
    if excess is None:
        return
    shown = projection.tokens + projection.row_nine_tokens
    for most in (int(max(0, shown - excess) * PRESSURE_SHARE), 0):
        if most < room_tokens:
            yield most


def _excess(pressed: Prepared | BudgetExceeded, projection: Projection) -> int | None:
    """By how much the open run is too large beside closed history (tokens); None where it is not."""
    if isinstance(pressed, BudgetExceeded):
        needed, available = (int(str(pressed.numbers[name])) for name in ("needed", "available"))
        return max(0, needed - available)
    for raised in pressed.allocation.raises:
        if raised.budget_class is BudgetClass.TOOL_RESULTS:
            return max(0, raised.before + projection.row_nine_tokens - pressed.run.fixed.body)
    return None


def same_forms(one: PlannedSet, other: PlannedSet) -> bool:
    """Whether two plans show every closed turn alike."""
    return _forms(one) == _forms(other)


def _forms(record: PlannedSet) -> tuple[object, ...]:
    return (
        (record.packet, record.packet_through, record.full_from, record.promoted),
        (record.sent_numbers, record.brought_for),
    )


def recorded_values(record: PlannedSet) -> dict[int, Values]:
    """The values that a plan keeps of its turns."""
    return {
        int(number): Values(*(value / 1000 for value in three))
        for number, three in record.values.items()
    }
