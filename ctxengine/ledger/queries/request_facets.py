"""Facets of the list of requests: values that occur in it, each with its number."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Count, Q, QuerySet

from ctxengine.engine.budget.classes import YIELD_ORDER
from ctxengine.ledger.models import RequestRow
from ctxengine.ledger.queries.cached import yielded
from ctxengine.ledger.queries.requests import RequestFilter, narrowed_requests

COUNTED = 1_000
"""Requests that are counted, the newest ones: a tenant may have millions, and a page counts none of them twice."""


@dataclass(frozen=True, slots=True)
class RequestFacets:
    """Values that occur, with the number of requests of each."""

    models: tuple[tuple[str, int], ...] = ()
    statuses: tuple[tuple[str, int], ...] = ()
    origins: tuple[tuple[str, int], ...] = ()
    yields: tuple[tuple[str, int], ...] = ()
    """`any` and each budget class that can yield."""
    counted: int = 0
    more: bool = False
    """Whether there are older ones that were not counted."""


def request_facets(tenant_id: UUID, where: RequestFilter) -> RequestFacets:
    """Counts over the newest requests of a filter. One query."""
    newest = narrowed_requests(tenant_id, where).order_by("-created_at", "-id").values("id")
    classes = ("any", *(name.value for name in YIELD_ORDER))
    rows: QuerySet[RequestRow, Any] = (
        RequestRow.objects.filter(tenant_id=tenant_id, id__in=newest[: COUNTED + 1])
        .order_by()
        .values("model", "status", "reconstructed")
        .annotate(
            number=Count("id"),
            **{f"yield_{name}": Count("id", filter=Q(yielded(name))) for name in classes},
        )
    )
    counts: dict[str, Counter[str]] = {
        name: Counter() for name in ("model", "status", "origin", "yield")
    }
    total = 0
    for row in rows:
        total += row["number"]
        counts["model"][row["model"]] += row["number"]
        counts["status"][row["status"]] += row["number"]
        counts["origin"]["reconstructed" if row["reconstructed"] else "live"] += row["number"]
        for name in classes:
            counts["yield"][name] += row[f"yield_{name}"]
    return RequestFacets(
        models=_ordered(counts["model"]),
        statuses=_ordered(counts["status"]),
        origins=_ordered(counts["origin"]),
        yields=tuple((name, counts["yield"][name]) for name in classes),
        counted=min(total, COUNTED),
        more=total > COUNTED,
    )


def _ordered(counts: Counter[str]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))
