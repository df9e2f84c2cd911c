"""Keyset pages: a cursor names the last row shown, so that new rows never shift a page."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar
from uuid import UUID

from django.db.models import Q, QuerySet

PAGE_SIZES = (50, 200)

Line = TypeVar("Line")


class BadCursor(ValueError):
    """The text of a cursor was not made by us."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """Place after one row of a list that is ordered by time, then id, newest first."""

    at: datetime
    id: UUID

    def text(self) -> str:
        """The form that stands in a URL."""
        plain = f"{self.at.isoformat()}|{self.id}"
        return base64.urlsafe_b64encode(plain.encode()).decode().rstrip("=")

    def older(self, time_field: str) -> Q:
        """Rows that come after this place."""
        return Q(**{f"{time_field}__lt": self.at}) | Q(**{time_field: self.at, "id__lt": self.id})

    def newer(self, time_field: str) -> Q:
        """Rows that come before this place."""
        return Q(**{f"{time_field}__gt": self.at}) | Q(**{time_field: self.at, "id__gt": self.id})


def parse_cursor(text: str) -> Cursor:
    """Read a cursor back.

    Raises:
        BadCursor: the text is not one of ours; start again from the first page.
    """
    try:
        plain = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
        at, _, ident = plain.partition("|")
        moment = datetime.fromisoformat(at)
        cursor = Cursor(moment, UUID(ident))
    except (binascii.Error, ValueError) as error:
        raise BadCursor("The page cursor is not valid. Start from the first page.") from error
    if moment.tzinfo is None:
        raise BadCursor("The page cursor has a time without zone. Start from the first page.")
    return cursor


@dataclass(frozen=True, slots=True)
class Total:
    """How many rows a list has."""

    number: int
    more: bool
    """Whether there are more than `number`, which were not counted."""


COUNTED = 5_000
"""Rows that a count reads at most."""


def total_of(rows: QuerySet[Any, Any], *, most: int = COUNTED) -> Total:
    """Count rows up to a bound. One query; where an index gives the rows it reads no more of them than that."""
    number = rows.order_by().values("pk")[: most + 1].count()
    return Total(min(number, most), number > most)


def total_within(
    every: QuerySet[Any, Any], rows: QuerySet[Any, Any], *, most: int = COUNTED
) -> Total | None:
    """Count rows that no index gives among those that one does; None where these are too many to look through.

    Two queries. A bound on the matches alone would bound nothing: where they are few, all of `every` is read to find them.
    """
    return None if total_of(every, most=most).more else total_of(rows, most=most)


@dataclass(frozen=True, slots=True)
class Page(Generic[Line]):
    """One page of a list."""

    rows: tuple[Line, ...]
    after: str
    """Cursor of the next, older page; empty on the last one."""


def every_line(page_behind: Callable[[str], Page[Line]]) -> Iterator[Line]:
    """All rows of a list, read page by page, for exports.

    Args:
        page_behind: gives the page behind a cursor's text; "" asks for the first.
    """
    after = ""
    while True:
        page = page_behind(after)
        yield from page.rows
        after = page.after
        if not after:
            return
