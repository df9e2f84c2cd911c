"""The last day of every tenant, for a monitor that reads all of them: sums only, by provider, model and engine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef

from ctxengine.ledger.models import OpenRefusal, RequestRow, Tenant
from ctxengine.ledger.queries import metrics_events as events
from ctxengine.ledger.queries.metrics import (
    MetricsFilter,
    combinations,
    session_counts,
    usage_cells,
)
from ctxengine.service.clock import utc_now
from ctxengine.service.metrics.figures import Figures
from ctxengine.service.metrics.price_list import PriceList

SPAN = timedelta(hours=24)

Labels = tuple[str, str, str]
"""Provider, model, engine."""


@dataclass(frozen=True, slots=True)
class TenantDay:
    """What one tenant did in the last day."""

    slug: str
    sessions: int
    figures: dict[Labels, Figures]
    failed_opens: dict[str, int]
    """By budget class."""


def last_day() -> Iterator[TenantDay]:
    """Every tenant with a request or a refused open in the last 24 hours, by slug. Five queries for each.

    Whoever calls this answers for who may see it: it crosses tenants.
    """
    now = utc_now()
    since = now - SPAN
    recent = {"tenant_id": OuterRef("id")}
    active = Tenant.objects.filter(
        Exists(RequestRow.objects.filter(**recent, created_at__gte=since, reconstructed=False))
        | Exists(OpenRefusal.objects.filter(**recent, at__gte=since))
    )
    for tenant in active.order_by("slug"):
        yield _day(tenant, MetricsFilter(since, now), now)


def _day(tenant: Tenant, where: MetricsFilter, now: datetime) -> TenantDay:
    there = combinations(tenant.id, where)
    prices = PriceList({(entry.provider, entry.model) for entry in there}, where.since, now)
    figures: dict[Labels, Figures] = {}
    for cell in usage_cells(tenant.id, where, lengths=prices.lengths):
        rate = prices.rate(cell.provider, cell.model, cell.size, cell.at)
        key = cell.provider, cell.model, cell.engine
        figures.setdefault(key, Figures()).add_cell(cell, rate)
    for happened in events.event_cells(tenant.id, where):
        key = happened.provider, happened.model, happened.engine
        figures.setdefault(key, Figures()).add_event(happened)
    refused: dict[str, int] = {}
    for row in events.refused_opens(tenant.id, where):
        refused[row.budget_class] = refused.get(row.budget_class, 0) + row.opens + row.rotations
    counted = session_counts(tenant.id, where, None)
    in_all = next((c.sessions for c in counted if c.group is None and c.at is None), 0)
    return TenantDay(tenant.slug, in_all, figures, refused)
