"""Where a session's turns begin and end, for any engine: read off its units, without their content (capacity spec 2)."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from django.db.models import F, Q, Window
from django.db.models.functions import Lag, RowNumber

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


def turns_from(tenant: UUID | str, session: UUID | str, first: int = 0) -> int:
    """How many turns begin at this place or behind it; counted where the units are, split as `turn_spans` splits them.

    Args:
        first: event that opens a turn; 0 for the session's first.
    """
    units = UnitRow.objects.filter(tenant_id=tenant, session_id=session, sequence__gte=first)
    in_order = F("sequence").asc()
    placed = units.annotate(
        place=Window(RowNumber(), order_by=in_order),
        run_before=Window(Lag("run_id"), order_by=in_order),
    )
    goes_on = Q(run_id__isnull=False, run_before__isnull=False, run_before=F("run_id"))
    return placed.filter(Q(place=1) | Q(kind__in=sorted(_OPENING)) & ~goes_on).count()
