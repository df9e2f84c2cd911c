"""What a page may be asked in its address: one rule for all lists, so that no odd filter passes for another one.

A page names its parameters once. A parameter that it has not, one that stands twice, or a value that it does not take is a 400
that says what there is; nothing is quietly replaced by something else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time
from uuid import UUID

from django.http import HttpRequest, QueryDict

from ctxengine.ledger.queries.paging import PAGE_SIZES
from ctxengine.service.specs import ServiceError
from inspector.visible import one_line

Ask = Callable[[str], str]
"""What a value must be where it is not that; empty where it is."""
Asks = Mapping[str, Ask]
"""Parameters of a page by name."""

_MOST, _MOST_DIGITS = 2**62, 19
_SHOWN_CHARS = 60
_MOST_WORDS = 24


class AskError(ServiceError):
    """The address asks for something that the page has not."""

    def __init__(self, detail: str) -> None:
        super().__init__("invalid_filter", 400, detail)


def checked(request: HttpRequest, asks: Asks) -> None:
    """Let an address through whose parameters the page knows.

    Raises:
        AskError: naming the first parameter that it does not know or whose value it does not take.
    """
    checked_query(request.GET, asks)


def checked_query(query: QueryDict, asks: Asks) -> None:
    """The same for a query string that stands somewhere else.

    Raises:
        AskError: as `checked`.
    """
    for name, values in query.lists():
        ask = asks.get(name)
        if ask is None:
            known = ", ".join(asks) or "none"
            raise AskError(f"This page has no filter {_shown(name)}. It has: {known}.")
        if len(values) > 1:
            raise AskError(f"The filter {_shown(name)} stands {len(values)} times. Keep one.")
        wanted = ask(values[0]) if values[0] else ""
        if wanted:
            raise AskError(f"The filter {name} takes {wanted}, not {_shown(values[0])}.")


def free(value: str) -> str:
    """Any text."""
    return ""


def one_of(*allowed: str) -> Ask:
    """One word of a closed set."""

    def ask(value: str) -> str:
        if value in allowed:
            return ""
        more = " and so on" if len(allowed) > _MOST_WORDS else ""
        return f"{', '.join(allowed[:_MOST_WORDS])}{more}"

    return ask


def whole_number(value: str) -> str:
    """A whole number from nought up."""
    return "a whole number" if read_whole(value) is None else ""


def read_whole(value: str, *, most: int = _MOST) -> int | None:
    """A whole number from nought up to `most`; None where the text is none. Thousands of digits are never converted."""
    if not (value.isascii() and value.isdigit()) or len(value) > _MOST_DIGITS:
        return None
    number = int(value)
    return number if number <= most else None


page_size = one_of(*map(str, PAGE_SIZES))
"""How many lines a page of a list has: it stands in the address, and the cursors keep it."""


def size_of(request: HttpRequest) -> int:
    """Lines of a page; the first size where the address asks for none that there is."""
    asked = request.GET.get("size", "")
    return int(asked) if asked and not page_size(asked) else PAGE_SIZES[0]


def identifier(value: str) -> str:
    """The whole id of something, as addresses carry it."""
    try:
        UUID(value)
    except ValueError:
        return "a whole id such as 0f8fad5b-d9cb-469f-a165-70867728950e"
    return ""


def moment(value: str) -> str:
    """A day or a time."""
    return (
        "" if read_moment(value) else "a day such as 2026-11-30 or a time such as 2026-11-30T08:00Z"
    )


def read_moment(value: str) -> datetime | None:
    """A day (its beginning) or a time; UTC where it names no offset. None where it is neither."""
    try:
        if len(value) == len("2026-11-30"):
            return datetime.combine(date.fromisoformat(value), time(), UTC)
        found = datetime.fromisoformat(value)
    except ValueError:
        return None
    try:
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except OverflowError:
        return None


def _shown(text: str) -> str:
    return f"“{one_line(text[:_SHOWN_CHARS])}{'…' if len(text) > _SHOWN_CHARS else ''}”"
