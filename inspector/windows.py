"""Lists that are read at once and are too long for one page: a window of them, with a cursor as every list has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from ctxengine.ledger.queries.paging import Page
from ctxengine.service.specs import ServiceError

SHOWN = 50
"""Rows of one page."""
T = TypeVar("T")


def window(rows: Sequence[T], after: str, key: Callable[[T], object], size: int = SHOWN) -> Page[T]:
    """The rows behind the one that a cursor names, in the order given.

    Args:
        after: the key of the last row seen, as `?after=` has it; empty for the first page.
        key: what names a row among all of them.

    Raises:
        ServiceError: `invalid_parameter` (400): no row has such a key; start again from the first page.
    """
    start = 0
    if after:
        keys = [str(key(row)) for row in rows]
        if after not in keys:
            raise ServiceError(
                "invalid_parameter",
                400,
                "The page cursor is not valid. Start from the first page.",
            )
        start = keys.index(after) + 1
    shown = tuple(rows[start : start + size])
    more = bool(shown) and start + size < len(rows)
    return Page(shown, str(key(shown[-1])) if more else "")
