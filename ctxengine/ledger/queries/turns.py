"""Where a session's turns begin and end, for any engine: read off its units, without their content (capacity spec 2)."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from ctxengine.ledger.models import UnitRow


class TurnSpan(NamedTuple):
    """One turn of a session, open or closed."""

    number: int
    """Place in the session, from 1."""
    first: int
    """Event that opens it."""
    last: int
    """Its newest event with items."""
    run: UUID | None


_OPENING = frozenset({"user", "input"})


def turn_spans(tenant: UUID | str, session: UUID | str) -> tuple[TurnSpan, ...]:
    """All turns in order, split as `engine.turns.turn.turns_of` splits units."""
    rows = UnitRow.objects.filter(tenant_id=tenant, session_id=session).order_by("sequence")
    spans: list[TurnSpan] = []
    before: UUID | None = None
    first, newest, opened_by = 0, 0, before
    # A session may have thousands of turns: each becomes one value, made when the next begins.
    for sequence, last, kind, run in rows.values_list(
        "sequence", "last_sequence", "kind", "run_id"
    ):
        if not newest or (kind in _OPENING and (run is None or run != before)):
            if newest:
                spans.append(TurnSpan(len(spans) + 1, first, newest, opened_by))
            first, newest, opened_by = sequence, last, run
        elif last > newest:
            newest = last
        before = run
    if newest:
        spans.append(TurnSpan(len(spans) + 1, first, newest, opened_by))
    return tuple(spans)
