"""The server's clock, in one place."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ctxengine.service.specs import ServiceError


def utc_now() -> datetime:
    """The time now, with offset."""
    return datetime.now(UTC)


def local_time(moment: datetime, timezone: str) -> str:
    """`moment` in a named zone as ISO 8601 with offset; what a request records as its `now`.

    Raises:
        ServiceError: the zone is not known, or the moment has no offset.
    """
    if moment.tzinfo is None:
        raise ServiceError(
            "invalid_time", 422, "`now` needs an offset, for example 2026-03-28T22:59:30Z."
        )
    if not timezone:
        return moment.isoformat()
    try:
        zone = ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ServiceError(
            "invalid_timezone",
            422,
            f"{timezone!r} is no time zone of the IANA database, such as Europe/Oslo.",
        ) from error
    return moment.astimezone(zone).isoformat()
