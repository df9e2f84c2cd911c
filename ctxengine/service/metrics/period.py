"""Which range of time is asked for, and its steps."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from ctxengine.ledger.queries.metrics import Bucket
from ctxengine.service.specs import ServiceError

WINDOWS = {
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
    "90d": timedelta(days=90),
}
"""Ranges that have a name; each ends now."""
USUAL = "7d"
LONGEST = timedelta(days=400)
_HOURLY_UP_TO = timedelta(hours=50)
_STEP = {Bucket.HOUR: timedelta(hours=1), Bucket.DAY: timedelta(days=1)}


def checked_range(
    since: datetime | None, until: datetime | None, *, now: datetime
) -> tuple[datetime, datetime]:
    """The range in UTC; without an end it ends now, without a start it lasts seven days.

    Raises:
        ServiceError: `invalid_parameter` (400) for a range that is empty, runs backwards or is longer than 400 days.
    """
    end = (until or now).astimezone(UTC)
    start = since.astimezone(UTC) if since else end - WINDOWS[USUAL]
    if start >= end:
        raise ServiceError(
            "invalid_parameter",
            400,
            f"The range begins at {start:%Y-%m-%d %H:%M} UTC and ends at {end:%Y-%m-%d %H:%M} UTC."
            " Let it end after it begins.",
        )
    if end - start > LONGEST:
        raise ServiceError(
            "invalid_parameter",
            400,
            f"The range is {(end - start).days:,} days long; {LONGEST.days} are the most. Ask for a shorter one.",
        )
    return start, end


def bucket_of(since: datetime, until: datetime) -> Bucket:
    """Hours for up to two days, days beyond."""
    return Bucket.HOUR if until - since <= _HOURLY_UP_TO else Bucket.DAY


def steps(since: datetime, until: datetime, bucket: Bucket) -> tuple[datetime, ...]:
    """Starts of all steps that the range touches, in UTC."""
    first = since.replace(minute=0, second=0, microsecond=0)
    if bucket is Bucket.DAY:
        first = first.replace(hour=0)
    found = []
    while first < until:
        found.append(first)
        first += _STEP[bucket]
    return tuple(found)
