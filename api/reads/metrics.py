"""Metrics as REST shows them."""

from __future__ import annotations

from typing import Any

from ctxengine.ledger.queries.metrics import GroupBy
from ctxengine.service.metrics.document import metrics_document
from ctxengine.service.metrics.report import MetricsSpec, metrics
from ctxengine.service.specs import Actor


def metrics_of(actor: Actor, query: dict[str, Any]) -> dict[str, Any]:
    """The metrics of a range. Twelve queries.

    Raises:
        ServiceError: `invalid_parameter` for an impossible range.
    """
    grouped = query.get("group_by")
    spec = MetricsSpec(
        since=query.get("from"),
        until=query.get("to"),
        provider=query.get("provider", ""),
        model=query.get("model", ""),
        agent=query.get("agent", ""),
        engine=query.get("engine", ""),
        imported=query.get("imported", False),
        group_by=GroupBy(grouped) if grouped else None,
    )
    return metrics_document(metrics(actor=actor, spec=spec))
