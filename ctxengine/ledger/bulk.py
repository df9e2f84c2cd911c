"""Writing a whole log at once: imports build in memory and land in one transaction (design 4)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from uuid import UUID

from django.db import connection

from ctxengine.engine.memory import Stored
from ctxengine.ledger.copy_lines import (
    BODY,
    EVENT,
    ITEM,
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


def write_log(tenant_id: UUID, session_id: UUID, stored: Stored, *, owner: str = "") -> None:
    """Insert every row of a new session's log; call it inside a transaction, before anybody can see the session."""
    key = Key(str(tenant_id), str(session_id))
    commitments = {event.body.id: event.body for event in stored.events if event.body is not None}
    copy_lines(
        BODY,
        (
            body_line(key, salt, data, commitments[name], owner)
            for name, (salt, data) in stored.bodies.items()
        ),
    )
    copy_lines(EVENT, (event_line(key, event) for event in stored.events))
    copy_lines(ITEM, (item_line(key, item) for item in stored.items))
    copy_lines(UNIT, (unit_line(key, unit) for unit in stored.units))


def copy_lines(columns: Columns, lines: Iterable[str]) -> None:
    """COPY lines of one table."""
    quote = connection.ops.quote_name
    names = ", ".join(map(quote, columns.names))
    table = quote(columns.model._meta.db_table)
    waiting = iter(lines)
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY {table} ({names}) FROM STDIN") as stream,
    ):
        while batch := "".join(islice(waiting, _LINES)):
            stream.write(batch.encode())
