"""The one table of figures that an alert may watch."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from ctxengine.ledger.models import Job, JobState
from ctxengine.ledger.queries.promises import promises
from ctxengine.service.metrics.report import Metrics, MetricsSpec, metrics
from ctxengine.service.specs import Actor


class Facts:
    """A tenant's figures over one range; what no rule asks for is not worked out."""

    def __init__(self, tenant_id: UUID, since: datetime, until: datetime) -> None:
        """Name the range."""
        self.tenant_id = tenant_id
        self.since = since
        self.until = until
        self._metrics: Metrics | None = None

    @property
    def metrics(self) -> Metrics:
        """The metrics of the range, worked out once."""
        if self._metrics is None:
            spec = MetricsSpec(since=self.since, until=self.until)
            self._metrics = metrics(actor=Actor(self.tenant_id, "system"), spec=spec)
        return self._metrics


class Measure(NamedTuple):
    """A figure that an alert may watch."""

    name: str
    title: str
    unit: str
    above: bool
    """Whether it is too much beyond the bound; otherwise too little below it."""
    usual: float
    """The bound that a new rule begins with."""
    read: Callable[[Facts], float | None]
    """The figure; None where there is nothing to measure."""


def _cached(facts: Facts) -> float | None:
    return facts.metrics.totals.cached_of_preceding.value


def _epochs(facts: Facts) -> float | None:
    return facts.metrics.totals.epochs_per_session.value


def _failed(facts: Facts) -> float | None:
    return facts.metrics.totals.failed_share.value


def _pressure(facts: Facts) -> float | None:
    return facts.metrics.totals.pressure_share.value


def _cost(facts: Facts) -> float | None:
    total = facts.metrics.totals.cost.total
    return None if total is None else float(total) / 1_000_000


def _too_low(facts: Facts) -> float | None:
    errors = [row.error.value for row in facts.metrics.estimates if row.error.value is not None]
    return max((-error for error in errors), default=None)


def _disagreements(facts: Facts) -> float | None:
    return float(facts.metrics.predictions.disagreements)


def _exceeded(facts: Facts) -> float | None:
    return float(facts.metrics.totals.exceeded)


def _refused_opens(facts: Facts) -> float | None:
    return float(sum(row.opens for row in facts.metrics.refused_opens))


def _broken(facts: Facts) -> float | None:
    return float(sum(len(one.breaches) for one in promises(facts.tenant_id, facts.since)))


def _failed_jobs(facts: Facts) -> float | None:
    rows = Job.objects.filter(
        tenant_id=facts.tenant_id, state=JobState.FAILED, finished_at__gte=facts.since
    )
    return float(rows.count())


MEASURES: tuple[Measure, ...] = (
    Measure("broken_promises", "Broken promises", "places", True, 0, _broken),
    Measure("cached_ratio", "Cached of the preceding call", "share", False, 0.9, _cached),
    Measure("cache_disagreements", "Cache misses explained otherwise by the provider", "requests", True, 0, _disagreements),
    Measure("epochs_per_session", "Epochs per session", "epochs", True, 1.1, _epochs),
    Measure("estimator_too_low", "Counts below the bill, worst model", "share", True, 0.05, _too_low),
    Measure("failed_share", "Failed requests", "share", True, 0.05, _failed),
    Measure("pressure_share", "Requests that had to yield", "share", True, 0.2, _pressure),
    Measure("budget_exceeded", "Steps that did not fit", "steps", True, 0, _exceeded),
    Measure("refused_opens", "Sessions refused at open", "sessions", True, 0, _refused_opens),
    Measure("failed_jobs", "Failed jobs", "jobs", True, 0, _failed_jobs),
    Measure("cost", "Cost", "USD", True, 100, _cost),
)  # fmt: skip

BY_NAME = {measure.name: measure for measure in MEASURES}


def beyond(measure: Measure, value: float | None, bound: float) -> bool:
    """Whether a figure is past its bound. What was not measured is not."""
    if value is None:
        return False
    return value > bound if measure.above else value < bound
