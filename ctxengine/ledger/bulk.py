"""Writing lines of many rows at once: imports build in memory and land in one transaction (design 4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice

from django.db import connection, transaction

from ctxengine.ledger.copy_lines import BODY, EVENT, ITEM, REQUEST, UNIT, Columns

_FOUND_BY = frozenset(
    (
        "tenant_id", "session_id", "id", "run_id", "sequence", "unit_sequence", "ordinal", "type", "kind", "number",
        "run_number", "step", "body_id", "index",
    )
)  # fmt: skip
_SAMPLED = 10
"""The database's own measure of how closely it looks; by default it is ten times that, and takes as much longer."""
_LINES = 400
"""Lines handed over at once: few enough to stay small, enough to make each hand-over worth it."""


def write_lines(
    tables: Iterable[tuple[Columns, Iterable[str]]],
    take: Callable[[Columns, Iterable[str]], None] | None = None,
) -> None:
    """Hand over lines of several tables.

    Args:
        take: is given them table by table; by default they are copied at once.
    """
    for columns, lines in tables:
        (take or copy_lines)(columns, lines)


def copy_lines(columns: Columns, lines: Iterable[str]) -> None:
    """COPY lines of one table.

    Raises:
        DatabaseError: what writing has raised, as the database layer names it.
    """
    waiting = iter(lines)
    with (
        connection.wrap_database_errors,
        connection.cursor() as cursor,
        cursor.copy(copy_command(columns)) as stream,
    ):
        while batch := "".join(islice(waiting, _LINES)):
            stream.write(batch.encode())


def copy_command(columns: Columns) -> str:
    """The COPY that takes lines of one table."""
    quote = connection.ops.quote_name
    names = ", ".join(map(quote, columns.names))
    return f"COPY {quote(columns.model._meta.db_table)} ({names}) FROM STDIN"


def refresh_statistics() -> None:
    """Tell the planner of a log that was written at once: until it knows, it reads all of a session for each of its rows.

    It is told of what rows are found by, from a small sample. The rest is many times as much and follows with the database's
    own round.
    """
    quote = connection.ops.quote_name
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL default_statistics_target = {_SAMPLED:d}")
        for columns in (BODY, EVENT, ITEM, UNIT, REQUEST):
            found_by = [name for name in columns.names if name in _FOUND_BY]
            table = quote(columns.model._meta.db_table)
            cursor.execute(f"ANALYZE {table} ({', '.join(map(quote, found_by))})")
