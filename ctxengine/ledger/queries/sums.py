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

    @property
    def prompt(self) -> int:
        """All prompt tokens."""
        return self.fresh + self.read + self.write

    @property
    def total(self) -> int:
        """Prompt and output."""
        return self.prompt + self.output


def usage_sums(rows: QuerySet[RequestRow]) -> Bill:
    """Add up what was reported for these requests; figures that cannot be right are left out. One query."""

    def bucket(name: str) -> Sum:
        return Sum(Cast(KT(f"usage__{name}"), BigIntegerField()), filter=told, default=0)

    told = told_usage()
    found = rows.order_by().aggregate(
        sum_fresh=bucket("fresh"),
        sum_read=bucket("cache_read"),
        sum_write_5m=bucket("cache_write_5m"),
        sum_write_1h=bucket("cache_write_1h"),
        sum_output=bucket("output"),
        told=Count("id", filter=told),
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
    )


def told_usage() -> Q:
    """Requests whose provider said what it billed, in figures that can be right."""
    some = Q(usage__fresh__isnull=False) | Q(usage__cache_read__isnull=False)
    return some & ~unusable_usage()


def unusable_usage() -> Q:
    """Requests whose reported figures cannot be right."""
    return Q(usage__problems__0__isnull=False)
