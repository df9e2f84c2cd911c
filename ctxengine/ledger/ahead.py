"""Reading ahead: what a step is about to ask of the database, asked in one round trip (design 12).

A round trip takes several times as long as its answer. So a use case names its reads before it makes them; each of them then
finds its rows here, once, and goes to the database itself where they are not. What is read ahead is as old as the head that
was read with it, which must be the first of them: an append compares that head, so that nothing stale is ever built upon.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from threading import local
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from django.db import connection

Rows = list[tuple[Any, ...]]


_PARAMETER = re.compile("%s")
_PREPARED: WeakKeyDictionary[Any, dict[str, str]] = WeakKeyDictionary()
"""What each open connection has prepared: names by statement. There are as many statements as the code spells out, no more."""


class Read(NamedTuple):
    """One SELECT with its parameters."""

    sql: str
    values: Sequence[Any]
    prepared: bool = True
    """False: planned for these values each time, where a plan for the mean session would be wrong for a long one."""


class _Ahead(local):
    """What the thread has read ahead and not yet asked for."""

    rows: dict[tuple[Any, ...], Rows] | None = None


_AHEAD = _Ahead()


@contextmanager
def read_ahead(*reads: Read) -> Iterator[None]:
    """Make these reads now, in this order; rows that nobody has asked for by the end of the block are let go."""
    outer = _AHEAD.rows
    _AHEAD.rows = dict(zip(map(_key, reads), _together(reads), strict=True))
    try:
        yield
    finally:
        _AHEAD.rows = outer


def let_go() -> None:
    """Forget what was read ahead: something is about to be written."""
    if _AHEAD.rows is not None:
        _AHEAD.rows.clear()


def fetch(sql: str, values: Sequence[Any], prepared: bool = True) -> Rows:
    """The rows of a SELECT: those read ahead, the first time, else those of now."""
    read = Read(sql, values, prepared)
    if _AHEAD.rows:
        rows = _AHEAD.rows.pop(_key(read), None)
        if rows is not None:
            return rows
    return _together((read,))[0]


def _together(reads: Sequence[Read]) -> list[Rows]:
    if not reads:
        return []
    with connection.cursor() as cursor:
        names = _prepared(cursor, [read for read in reads if read.prepared])
        calls = [
            f"EXECUTE {names[read.sql]}({', '.join(['%s'] * len(read.values))})"
            if read.prepared
            else read.sql
            for read in reads
        ]
        cursor.execute("; ".join(calls), [value for read in reads for value in read.values])
        rows = [cursor.fetchall()]
        while cursor.nextset():
            rows.append(cursor.fetchall())
    return rows


def _prepared(cursor: Any, reads: Sequence[Read]) -> Mapping[str, str]:
    """Names under which the connection knows the statements; a new one is prepared: planning takes longer than reading."""
    known = _PREPARED.setdefault(cursor.connection, {})
    for sql in {read.sql: None for read in reads}:
        if sql not in known:
            name = f"ctx_read_{len(known)}"
            numbers = count(1)
            numbered = _PARAMETER.sub(lambda _: f"${next(numbers)}", sql)  # noqa: B023
            cursor.execute(f"PREPARE {name} AS {numbered}")
            known[sql] = name
    return known


def _key(read: Read) -> tuple[Any, ...]:
    return (read.sql, *(tuple(v) if isinstance(v, list) else v for v in read.values))
