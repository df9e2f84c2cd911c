"""Single rows by their key, for what every step reads: one statement each, its SQL written once per process.

Compiling a statement takes the ORM several times as long as Postgres takes to answer it. Everything else asks the ORM.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeVar

from django.db import connection
from django.db.models import Model

from ctxengine.ledger.ahead import Read, Rows, fetch

Row = TypeVar("Row", bound=Model)


class _Read(NamedTuple):
    sql: str
    names: tuple[str, ...]
    converted: tuple[tuple[int, Callable[..., Any], Any], ...]
    """(place, conversion, expression) of columns that the driver does not give as the model holds them."""


def row_by(model: type[Row], *, newest: str = "", **key: Any) -> Row | None:
    """The row with these column values; None where there is none.

    Args:
        newest: column whose greatest value wins, where the key alone leaves several.
        key: values by column name. Names come from the caller's code, never from input.
    """
    return _row(model, _by(model, tuple(key), newest), tuple(key.values()))


def row_where(model: type[Row], condition: str, *values: Any) -> Row | None:
    """The row for which a condition of the caller's code, never of input, holds; None where there is none."""
    return _row(model, _read(model, condition, ""), values)


def asks_row_by(model: type[Model], *, newest: str = "", **key: Any) -> Read:
    """What `row_by` asks, to be read ahead."""
    return Read(_by(model, tuple(key), newest).sql, tuple(key.values()))


def asks_row_where(model: type[Model], condition: str, *values: Any) -> Read:
    """What `row_where` asks, to be read ahead."""
    return Read(_read(model, condition, "").sql, values)


def _row(model: type[Row], read: _Read, key: tuple[Any, ...]) -> Row | None:
    rows = fetch(read.sql, key)
    return _instance(model, read, rows[0]) if rows else None


def instances(model: type[Row], rows: Rows) -> list[Row]:
    """Instances of rows that hold all columns of their table, in the model's order (`columns_of`)."""
    read = _read(model, "", "")
    return [_instance(model, read, row) for row in rows]


def columns_of(model: type[Model]) -> str:
    """All columns of a table, in the model's order."""
    quote = connection.ops.quote_name
    return ", ".join(quote(str(field.column)) for field in model._meta.concrete_fields)


def _instance(model: type[Row], read: _Read, row: Sequence[Any]) -> Row:
    values = row
    if read.converted:
        values = list(row)
        for place, convert, expression in read.converted:
            values[place] = convert(values[place], expression, connection)
    return model.from_db(connection.alias, read.names, values)


@cache
def _by(model: type[Model], key: tuple[str, ...], newest: str) -> _Read:
    quote = connection.ops.quote_name
    return _read(model, " AND ".join(f"{quote(name)} = %s" for name in key), newest)


@cache
def _read(model: type[Model], wanted: str, newest: str) -> _Read:
    quote = connection.ops.quote_name
    fields = model._meta.concrete_fields
    # Table and column names are the models' own.
    sql = f"SELECT {columns_of(model)} FROM {quote(model._meta.db_table)} WHERE {wanted}"  # noqa: S608
    if newest:
        sql += f" ORDER BY {quote(newest)} DESC"
    converted = []
    for place, field in enumerate(fields):
        expression = field.get_col(model._meta.db_table)
        found = [
            *connection.ops.get_db_converters(expression),
            *field.get_db_converters(connection),
        ]
        converted += [(place, convert, expression) for convert in found]
    return _Read(f"{sql} LIMIT 1", tuple(field.attname for field in fields), tuple(converted))
