"""Writing model instances without one round trip for each table, and without one statement for each batch (design 12)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from operator import attrgetter
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import JSONField, Model

from ctxengine.ledger.models import Rendering, RequestRow

_HURRIED = "SET LOCAL synchronous_commit TO off"
"""Holds for the one implicit transaction that several statements in one message are."""


class Statement(NamedTuple):
    """SQL with its parameters; several are sent as one."""

    sql: str
    values: Sequence[Any]


def insert(rows: Sequence[Model], *, unless_there: bool = False) -> Statement | None:
    """One INSERT for rows of one model; None for no rows.

    Args:
        unless_there: leave a row with the same key as it is.
    """
    if not rows:
        return None
    model = type(rows[0])
    group = f"({', '.join(['%s'] * len(model._meta.concrete_fields))})"
    # Table and column names are the models' own.
    sql = f"INSERT INTO {_target(model)} VALUES {', '.join([group] * len(rows))}"  # noqa: S608
    if unless_there:
        sql += " ON CONFLICT DO NOTHING"
    return Statement(sql, [value for row in rows for value in _values(row)])


def laid(row: Model, *, durable: bool = True) -> bool:
    """Lay a row in one round trip; False where there is one with its key already.

    Args:
        durable: as in `changed`.
    """
    statement = insert([row], unless_there=True)
    return statement is not None and bool(changed(*statement, durable=durable))


def changed(sql: str, values: Sequence[Any], *, durable: bool = True) -> int:
    """Execute one statement; gives the rows that it wrote.

    Args:
        durable: whether to wait until it is on disk. Otherwise a crash of the database may lose it, within its
            `wal_writer_delay`, unless a later commit was waited for; inside a transaction that says nothing of one's own.
    """
    hurried = not durable and not connection.in_atomic_block
    with connection.cursor() as cursor:
        cursor.execute(f"{_HURRIED}; {sql}" if hurried else sql, values)
        if hurried:
            cursor.nextset()
        written: int = cursor.rowcount
    return written


def send(statements: Iterable[Statement | None]) -> None:
    """Execute statements in one round trip."""
    ready = [statement for statement in statements if statement is not None]
    if not ready:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "; ".join([statement.sql for statement in ready]),
            [value for statement in ready for value in statement.values],
        )


def request_written(
    row: RequestRow, *, pressed: int, renderings: Sequence[Rendering]
) -> list[Statement | None]:
    """What records a built request: its row, the run's step, the session's figures, new segment digests.

    Args:
        pressed: 1 when the request was under pressure, else 0.
    """
    return [
        insert([row]),
        insert(renderings, unless_there=True),
        Statement(
            "UPDATE run SET steps = %s WHERE tenant_id = %s AND id = %s",
            [row.step, row.tenant_id, row.run_id],
        ),
        Statement(
            "UPDATE session SET requests = requests + 1, peak_tokens = greatest(peak_tokens, %s),"
            " pressure_count = pressure_count + %s WHERE tenant_id = %s AND id = %s",
            [row.total_tokens, pressed, row.tenant_id, row.session_id],
        ),
    ]


def copy(model: type[Model], rows: Iterable[Model]) -> None:
    """COPY rows of one model, made one by one."""
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY {_target(model)} FROM STDIN") as stream,
    ):
        for row in rows:
            stream.write_row(_values(row))


def _target(model: type[Model]) -> str:
    quote = connection.ops.quote_name
    columns = ", ".join(quote(str(field.column)) for field in model._meta.concrete_fields)
    return f"{quote(model._meta.db_table)} ({columns})"


def _values(row: Model) -> list[Any]:
    read, prepared = _columns(type(row))
    values = list(read(row))
    for place, field in prepared:
        values[place] = field.get_db_prep_save(values[place], connection)
    return values


@cache
def _columns(model: type[Model]) -> tuple[Callable[[Model], tuple[Any, ...]], list[Any]]:
    """How to read a row's values, and the places of those that must be prepared for the database."""
    fields = model._meta.concrete_fields
    prepared = [
        (place, field) for place, field in enumerate(fields) if isinstance(field, JSONField)
    ]
    return attrgetter(*[field.attname for field in fields]), prepared
