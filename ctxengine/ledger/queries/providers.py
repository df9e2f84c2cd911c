"""How providers fared: requests of sessions and calls of our own, by model, with what went wrong."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, Max

from ctxengine.ledger.models import RequestRow, SideCallRow

MOST_MODELS = 200


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of failure."""

    code: str
    count: int
    last_at: datetime


NO_FAULT = frozenset({"completed", "cancelled"})
"""Outcomes of a side call that say nothing against the provider: we ended it, or it ended well."""


@dataclass(slots=True)
class ProviderLine:
    """One model of one provider since a moment."""

    provider: str
    model: str
    answered: int = 0
    failed: int = 0
    unanswered: int = 0
    """Requests that were built and of which nothing was heard."""
    shortfalls: int = 0
    disagreements: int = 0
    side_calls: int = 0
    side_failed: int = 0
    last_at: datetime | None = None
    faults: list[Fault] = field(default_factory=list)
    """Of requests and side calls together, the most frequent first."""

    @property
    def failed_percent(self) -> float | None:
        """Failures among what was heard of; None when nothing was."""
        heard = self.answered + self.failed + self.side_calls
        return 100 * (self.failed + self.side_failed) / heard if heard else None


def provider_lines(tenant_id: UUID, since: datetime) -> tuple[ProviderLine, ...]:
    """Models with any request or side call since then, those with most failures first. Two queries."""
    lines: dict[tuple[str, str], ProviderLine] = {}
    faults: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    last: dict[tuple[str, str, str], datetime] = {}

    def line(provider: str, model: str, at: datetime) -> ProviderLine:
        found = lines.setdefault((provider, model), ProviderLine(provider, model))
        found.last_at = max(found.last_at or at, at)
        return found

    def fault(provider: str, model: str, code: str, count: int, at: datetime) -> None:
        faults[provider, model][code] += count
        key = (provider, model, code)
        last[key] = max(last.get(key, at), at)

    for row in _requests(tenant_id, since):
        provider, model, status, code, outcome, disagrees, count, at = row
        found = line(provider, model, at)
        if status == "failed":
            found.failed += count
            fault(provider, model, code or "unknown", count, at)
        elif status == "answered":
            found.answered += count
            found.shortfalls += count if outcome == "shortfall" else 0
            found.disagreements += count if disagrees is True else 0
        else:
            found.unanswered += count
    for provider, model, outcome, count, at in _side_calls(tenant_id, since):
        found = line(provider, model, at)
        found.side_calls += count
        if outcome not in NO_FAULT:
            found.side_failed += count
            fault(provider, model, outcome, count, at)
    for key, found in lines.items():
        found.faults = [
            Fault(code, count, last[(*key, code)]) for code, count in faults[key].most_common()
        ]
    ordered = sorted(
        lines.values(), key=lambda one: (-(one.failed + one.side_failed), one.provider, one.model)
    )
    return tuple(ordered[:MOST_MODELS])


def _requests(tenant_id: UUID, since: datetime) -> Iterable[tuple[Any, ...]]:
    rows = RequestRow.objects.filter(
        tenant_id=tenant_id, created_at__gte=since, reconstructed=False
    )
    grouped = rows.values_list(
        "provider", "model", "status", "error__code", "verdict__class", "verdict__disagreement"
    )
    return grouped.annotate(count=Count("id"), at=Max("created_at")).order_by()


def _side_calls(tenant_id: UUID, since: datetime) -> Iterable[tuple[Any, ...]]:
    rows = SideCallRow.objects.filter(tenant_id=tenant_id, at__gte=since)
    grouped = rows.values_list("provider", "model", "outcome")
    return grouped.annotate(count=Count("id"), latest=Max("at")).order_by()
