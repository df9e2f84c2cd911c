"""Worlds that are made once in each process: further tests get the rows that the use cases wrote for the first one.

To make a session takes as long as a runtime needs for it, to put its rows back some milliseconds. Each test has rows of its own
all the same, which its transaction, or the flush behind it, takes away.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from typing import Any, NamedTuple, TypeVar

from django.db import connection, transaction

from ctxengine.service import warm

_STALE_S = 240.0
"""Age from which a world is made anew: pages tell how long ago things were."""
_GONE = "made_once_gone"
_T = TypeVar("_T")


class _Made(NamedTuple):
    value: Any
    gone: dict[str, list[bytes]]
    """Rows that stood before and were changed, by table, as COPY writes them."""
    rows: dict[str, list[bytes]]
    """Rows that stand afterwards and did not before."""
    at: float


_made: dict[str, _Made] = {}


def made_once(name: str, make: Callable[[], _T]) -> _T:
    """What `make` gives, with the rows that it writes.

    Args:
        name: of the world; it must tell apart what stood in the database before, where `make` builds on that.
        make: what it gives can be copied deeply.
    """
    known = _made.get(name)
    if known is not None and time.monotonic() - known.at < _STALE_S:
        _put_back(name, known)
        value: _T = deepcopy(known.value)
        return value
    before, at = _all_rows(), time.monotonic()
    value = make()
    after = _all_rows()
    _made[name] = _Made(deepcopy(value), _without(before, after), _without(after, before), at)
    return value


def _all_rows() -> dict[str, Counter[bytes]]:
    """Every row of every table that has any."""
    found = {}
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            with cursor.copy(f'COPY "{table}" TO STDOUT') as out:
                if rows := b"".join(out).splitlines(keepends=True):
                    found[table] = Counter(rows)
    return found


def _without(
    rows: dict[str, Counter[bytes]], others: dict[str, Counter[bytes]]
) -> dict[str, list[bytes]]:
    left = {table: found - others.get(table, Counter()) for table, found in rows.items()}
    return {table: list(found.elements()) for table, found in left.items() if found}


def _put_back(name: str, made: _Made) -> None:
    # The same sessions went on in other ways in earlier tests.
    warm._SESSIONS = warm._Sessions(warm.SESSIONS_KEPT)
    with transaction.atomic(), connection.cursor() as cursor:
        for table, lines in made.gone.items():
            cursor.execute(f'CREATE TEMPORARY TABLE {_GONE} (LIKE "{table}") ON COMMIT DROP')
            _copy(cursor, _GONE, lines)
            cursor.execute(
                f'DELETE FROM "{table}" r USING {_GONE} g WHERE r IS NOT DISTINCT FROM g'
            )
            assert cursor.rowcount == len(lines), f"{name}: {table} holds other rows than before"
            cursor.execute(f"DROP TABLE {_GONE}")
        for table, lines in made.rows.items():
            _copy(cursor, table, lines)


def _copy(cursor: Any, table: str, lines: list[bytes]) -> None:
    with cursor.copy(f'COPY "{table}" FROM STDIN') as into:
        into.write(b"".join(lines))
