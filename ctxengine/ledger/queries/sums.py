"""Sums of reported usage: numerators and denominators, never averages of ratios (ui 3)."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import BigIntegerField, Count, Q, QuerySet, Sum
from django.db.models.fields.json import KT
from django.db.models.functions import Cast

from ctxengine.ledger.models import RequestRow


@dataclass(frozen=True, slots=True)
class Bill:
    """Reported tokens by disjoint bucket, over some requests."""

    fresh: int
    read: int
    write: int
    output: int
    reported: int
    """Requests whose provider said what it billed."""
    unreported: int
    unusable: int = 0
    """Requests whose reported figures cannot be right; part of no sum."""
    cache_unreported: int = 0
    """Of the reported ones, those that say nothing of cache reads: what they read, if anything, stands under `fresh`."""
    cache_unreported_prompt: int = 0
    """Prompts of these (tokens)."""
    write_unreported: int = 0
    """Of the reported ones, those that say nothing of cache writes."""

    @property
    def prompt(self) -> int:
        """All prompt tokens."""
        return self.fresh + self.read + self.write

    @property
    def total(self) -> int:
        """Prompt and output."""
        return self.prompt + self.output

    @property
    def cache_prompt(self) -> int:
        """Prompts whose cache reads were reported: what a cached share is a share of."""
        return self.prompt - self.cache_unreported_prompt

    @property
    def cache_reported(self) -> bool:
        """Whether any request said what it read from a cache."""
        return self.reported > self.cache_unreported

    @property
    def write_reported(self) -> bool:
        """Whether any request said what it wrote to a cache."""
        return self.reported > self.write_unreported


def usage_sums(rows: QuerySet[RequestRow]) -> Bill:
    """Add up what was reported for these requests; figures that cannot be right are left out. One query."""

    def bucket(name: str, of: Q | None = None) -> Sum:
        return Sum(Cast(KT(f"usage__{name}"), BigIntegerField()), filter=of or told, default=0)

    told = told_usage()
    silent = told & ~told_figure("cache_read")
    unwritten = told & ~told_figure("cache_write_5m") & ~told_figure("cache_write_1h")
    found = rows.order_by().aggregate(
        sum_fresh=bucket("fresh"),
        sum_read=bucket("cache_read"),
        sum_write_5m=bucket("cache_write_5m"),
        sum_write_1h=bucket("cache_write_1h"),
        sum_output=bucket("output"),
        told=Count("id", filter=told),
        silent=Count("id", filter=silent),
        silent_fresh=bucket("fresh", silent),
        silent_short=bucket("cache_write_5m", silent),
        silent_long=bucket("cache_write_1h", silent),
        unwritten=Count("id", filter=unwritten),
        unusable=Count("id", filter=unusable_usage()),
        all=Count("id"),
    )
    return Bill(
        found["sum_fresh"],
        found["sum_read"],
        found["sum_write_5m"] + found["sum_write_1h"],
        found["sum_output"],
        found["told"],
        found["all"] - found["told"] - found["unusable"],
        found["unusable"],
        found["silent"],
        found["silent_fresh"] + found["silent_short"] + found["silent_long"],
        found["unwritten"],
    )


def told_usage() -> Q:
    """Requests whose provider said what it billed, in figures that can be right."""
    return (told_figure("fresh") | told_figure("cache_read")) & ~unusable_usage()


def told_figure(name: str) -> Q:
    """Requests of which one figure was reported; it may stand in the row as null, which says that it was not."""
    field = f"usage__{name}"
    return Q(**{f"{field}__isnull": False}) & ~Q(**{field: None})


def unusable_usage() -> Q:
    """Requests whose reported figures cannot be right."""
    return Q(usage__problems__0__isnull=False)
