"""Single rows by their key, for what every step reads: one statement each, its SQL written once per process.

Compiling a statement takes the ORM several times as long as Postgres takes to answer it. Everything else asks the ORM.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, TypeVar

from django.db import connection
from django.db.models import Model

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
    read = _read(model, tuple(key), newest)
    with connection.cursor() as cursor:
        cursor.execute(read.sql, list(key.values()))
        values = cursor.fetchone()
    if values is None:
        return None
    if read.converted:
        values = list(values)
        for place, convert, expression in read.converted:
            values[place] = convert(values[place], expression, connection)
    return model.from_db(connection.alias, read.names, values)


@cache
def _read(model: type[Model], key: tuple[str, ...], newest: str) -> _Read:
    quote = connection.ops.quote_name
    fields = model._meta.concrete_fields
    columns = ", ".join(quote(str(field.column)) for field in fields)
    wanted = " AND ".join(f"{quote(name)} = %s" for name in key)
    # Table and column names are the models' own.
    sql = f"SELECT {columns} FROM {quote(model._meta.db_table)} WHERE {wanted}"  # noqa: S608
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
