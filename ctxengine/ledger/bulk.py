"""Writing a whole log at once: imports build in memory and land in one transaction (design 4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from uuid import UUID

from django.db import connection

from ctxengine.engine.memory import Stored
from ctxengine.ledger.copy_lines import (
    BODY,
    EVENT,
    ITEM,
    REQUEST,
    UNIT,
    Columns,
    Key,
    body_line,
    event_line,
    item_line,
    unit_line,
)

_LINES = 400
"""Lines handed over at once: few enough to stay small, enough to make each hand-over worth it."""


Take = Callable[[Columns, Iterable[str]], None]
"""Is given the lines of one table."""


def write_log(
    tenant_id: UUID, session_id: UUID, stored: Stored, *, owner: str = "", take: Take | None = None
) -> None:
    """Insert every row of a new session's log; call it inside a transaction, before anybody can see the session.

    Args:
        take: is given the lines of each table; by default they are copied at once.
    """
    copied = take or copy_lines
    key = Key(str(tenant_id), str(session_id))
    commitments = {event.body.id: event.body for event in stored.events if event.body is not None}
    copied(
        BODY,
        (
            body_line(key, salt, data, commitments[name], owner)
            for name, (salt, data) in stored.bodies.items()
        ),
    )
    copied(EVENT, (event_line(key, event) for event in stored.events))
    copied(ITEM, (item_line(key, item) for item in stored.items))
    copied(UNIT, (unit_line(key, unit) for unit in stored.units))


def copy_lines(columns: Columns, lines: Iterable[str]) -> None:
    """COPY lines of one table."""
    waiting = iter(lines)
    with connection.cursor() as cursor, cursor.copy(copy_command(columns)) as stream:
        while batch := "".join(islice(waiting, _LINES)):
            stream.write(batch.encode())


def copy_command(columns: Columns) -> str:
    """The COPY that takes lines of one table."""
    quote = connection.ops.quote_name
    names = ", ".join(map(quote, columns.names))
    return f"COPY {quote(columns.model._meta.db_table)} ({names}) FROM STDIN"


def refresh_statistics() -> None:
    """Tell the planner of a log that was written at once: until it knows, it reads all of a session for each of its rows."""
    with connection.cursor() as cursor:
        for columns in (BODY, EVENT, ITEM, UNIT, REQUEST):
            cursor.execute(f"ANALYZE {connection.ops.quote_name(columns.model._meta.db_table)}")
