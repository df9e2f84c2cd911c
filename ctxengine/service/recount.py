"""Counts of a session under another model's counter: derived rows, made anew when the family changes (design 4).

Counting happens before the lock is taken; writing belongs to the transaction that pins the new plan, which compares the head.
"""

from __future__ import annotations

from typing import NamedTuple

from django.db import connection
from django.db.models import Sum

from ctxengine.engine.derive import Derivation, recounted
from ctxengine.engine.evidence.excerpt import WINDOWED_ENGINES
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import Item, TextPart
from ctxengine.engine.log.hydrate import ERASED_TEXT
from ctxengine.engine.plan.plan import Plan
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import SessionRow, UnitRow
from ctxengine.service.imports.complete import complete_requests
from ctxengine.service.wiring import counter_of

_WINDOW = 2_000
"""Sequences read at a time."""

_ITEMS = (
    "UPDATE item SET tokens = %s, pointer_tokens = %s"
    " WHERE tenant_id = %s AND session_id = %s AND sequence = %s AND ordinal = %s"
)
_UNITS = (
    "UPDATE unit SET tokens = s.tokens, pointer_tokens = s.pointer, result_tokens = s.results"
    " FROM (SELECT unit_sequence, sum(tokens) AS tokens, sum(pointer_tokens) AS pointer,"
    " coalesce(sum(tokens) FILTER (WHERE kind = 'tool_result'), 0) AS results FROM item"
    " WHERE tenant_id = %(tenant)s AND session_id = %(session)s GROUP BY unit_sequence) s"
    " WHERE tenant_id = %(tenant)s AND session_id = %(session)s AND sequence = s.unit_sequence"
)
_SUMS = (
    "UPDATE unit SET before_tokens = w.tokens, before_pointer_tokens = w.pointer,"
    " before_result_tokens = w.results, before_saved_tokens = w.tokens - w.pointer"
    " FROM (SELECT sequence AS at, coalesce(sum(tokens) OVER earlier, 0) AS tokens,"
    " coalesce(sum(pointer_tokens) OVER earlier, 0) AS pointer,"
    " coalesce(sum(result_tokens) OVER earlier, 0) AS results FROM unit"
    " WHERE tenant_id = %(tenant)s AND session_id = %(session)s"
    " WINDOW earlier AS (ORDER BY sequence ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) w"
    " WHERE tenant_id = %(tenant)s AND session_id = %(session)s AND sequence = w.at"
)


class ItemCount(NamedTuple):
    """One item's new counts."""

    tokens: int
    pointer_tokens: int
    sequence: int
    ordinal: int


def counts_for(session: SessionRow, log: PostgresLog, plan: Plan) -> list[ItemCount] | None:
    """The session's items counted as the plan's model counts; None when they are already."""
    if plan.counter == session.counter:
        return None
    if session.import_sha256:
        # Requests that are not rebuilt yet are rebuilt under the counts that they were outlined with.
        complete_requests(tenant_id=session.tenant_id, session_id=session.id)
    derivation = Derivation(
        counter_of(plan.provider, plan.model),
        foreign_as_pointer=bool(session.import_sha256),
        inline=plan.policy.inline,
        whole_lines=session.engine in WINDOWED_ENGINES,
        kept_aside=plan.aside_tokens,
    )
    found: list[ItemCount] = []
    head = log.head().sequence
    for first in range(1, head + 1, _WINDOW):
        units = log.units(EventSeq(first), EventSeq(first + _WINDOW))
        found += [
            ItemCount(*recounted(item, derivation), item.id.sequence, item.id.ordinal)
            for unit in units
            for item in unit.items
            if not _erased(item)
        ]
    return found


def _erased(item: Item) -> bool:
    """What was erased keeps the count it had: nothing is left to count."""
    return item.parts == (TextPart(ERASED_TEXT),)


def store_counts(session: SessionRow, counts: list[ItemCount] | None, counter: str) -> None:
    """Write new counts and every sum that rests on them; call it in the transaction that pins the plan."""
    if counts is None:
        return
    key = {"tenant": str(session.tenant_id), "session": str(session.id)}
    with connection.cursor() as cursor:
        cursor.executemany(
            _ITEMS,
            [
                (count.tokens, count.pointer_tokens, *key.values(), count.sequence, count.ordinal)
                for count in counts
            ],
        )
        cursor.execute(_UNITS, key)
        cursor.execute(_SUMS, key)
    units = UnitRow.objects.filter(tenant_id=session.tenant_id, session_id=session.id)
    sums = units.aggregate(
        tokens=Sum("tokens"),
        pointer_tokens=Sum("pointer_tokens"),
        result_tokens=Sum("result_tokens"),
    )
    SessionRow.objects.filter(tenant_id=session.tenant_id, id=session.id).update(
        counter=counter, **{name: value or 0 for name, value in sums.items()}
    )
    session.counter = counter
