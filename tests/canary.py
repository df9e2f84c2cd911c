"""Looking for a text in every table: what must never be stored in the clear is in no row."""

from __future__ import annotations

from django.apps import apps
from django.db import connection


def tables_with(text: str, *, but: frozenset[str] = frozenset()) -> list[str]:
    """Tables of which some row holds the text, in any column, bytes included."""
    wanted = text.encode()
    return sorted(
        table
        for table in {model._meta.db_table for model in apps.get_app_config("ledger").get_models()}
        if table not in but and _holds(table, wanted)
    )


def _holds(table: str, wanted: bytes) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT * FROM "{table}"')
        return any(
            wanted in (bytes(value) if isinstance(value, memoryview) else repr(value).encode())
            for row in cursor.fetchall()
            for value in row
        )
