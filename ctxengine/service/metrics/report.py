"""The metrics of a tenant over a range: sums in cells, added up once along each dimension asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

from ctxengine.engine.events import EventType
from ctxengine.ledger.queries import metrics_events as events
from ctxengine.ledger.queries import metrics_outcomes as ends
from ctxengine.ledger.queries.metrics import (
    Cell,
    Combination,
    GroupBy,
    MetricsFilter,
    combinations,
    session_counts,
    usage_cells,
)
from ctxengine.service.clock import utc_now
from ctxengine.service.metrics.figures import Figures, Ratio
from ctxengine.service.metrics.period import bucket_of, checked_range, steps
from ctxengine.service.metrics.price_list import PriceList
from ctxengine.service.specs import Actor

MOST_GROUPS = 50
"""Groups shown, those with most requests first; the totals hold all."""


@dataclass(frozen=True, slots=True)
class MetricsSpec:
    """What is asked for."""

    since: datetime | None = None
    until: datetime | None = None
    provider: str = ""
    model: str = ""
    agent: str = ""
    engine: str = ""
    imported: bool = False
    group_by: GroupBy | None = None


@dataclass(frozen=True, slots=True)
class ModelEstimate:
    """How far a model's counts were off in the range, and what the estimator has learnt of it so far."""

    provider: str
    model: str
    counters: tuple[str, ...]
    """Versions of the counter that made the counts."""
    reported: int
    error: Ratio
    """Signed; negative when the counts were too low."""
    learnt: events.Factor | None


@dataclass(frozen=True, slots=True)
class Predictions:
    """Predicted cache reads against reported ones."""

    classes: tuple[tuple[str, int, int, int], ...]
    """Verdict, requests, tokens expected, tokens reported."""
    misses: tuple[tuple[str, int, int, int], ...]
    """Cause, requests, how many of them read less than expected, tokens they did not read."""
    disagreements: int
    unknown: int
    """Answered requests without a verdict."""


@dataclass(frozen=True, slots=True)
class Worst:
    """Three lists of sessions, the worst first."""

    cost: tuple[ends.SessionSum, ...]
    cached: tuple[ends.SessionSum, ...]
    rotated: tuple[events.RotatedSession, ...]


@dataclass(frozen=True, slots=True)
class Metrics:
    """Everything about a range."""

    where: MetricsFilter
    group_by: GroupBy | None
    totals: Figures
    groups: tuple[tuple[str, Figures], ...]
    trend: tuple[tuple[datetime, Figures], ...]
    reasons: tuple[events.ReasonCount, ...]
    depths: tuple[tuple[int, int], ...]
    yields: tuple[events.YieldSum, ...]
    exceeded: tuple[tuple[str, int], ...]
    refused_compactions: tuple[tuple[str, int], ...]
    refused_opens: tuple[events.RefusedOpens, ...]
    estimates: tuple[ModelEstimate, ...]
    failures: tuple[tuple[str, int], ...]
    predictions: Predictions
    side_calls: tuple[events.SideCalls, ...]
    worst: Worst
    price_source: str
    unpriced_models: tuple[str, ...]
    combinations: tuple[Combination, ...]
    """What the range holds without the filters, for a door to offer."""


def metrics(*, actor: Actor, spec: MetricsSpec) -> Metrics:
    """Work out the metrics of a range. Twelve queries, each bound to the range.

    Raises:
        ServiceError: `invalid_parameter` for an impossible range.
    """
    now = utc_now()
    where = _filter(spec, now)
    tenant = actor.tenant_id
    unfiltered = replace(where, provider="", model="", agent="", engine="")
    there = combinations(tenant, unfiltered)
    prices = PriceList({(entry.provider, entry.model) for entry in there}, where.since, where.until)
    sums = _Sums(where, spec.group_by, prices)
    cells = usage_cells(tenant, where, lengths=prices.lengths)
    sums.count_requests(cells)
    happened = events.event_cells(tenant, where)
    sums.count_events(happened)
    sums.count_sessions(tenant)
    ended = ends.outcomes(tenant, where)
    return Metrics(
        where=where,
        group_by=spec.group_by,
        totals=sums.totals,
        groups=sums.ranked(),
        trend=tuple(sums.by_step.items()),
        reasons=events.rotation_reasons(tenant, where),
        depths=tuple(
            sorted((int(name or 0), many) for name, many in _of(happened, EventType.COMPACTED))
        ),
        yields=events.yield_sums(tenant, where),
        exceeded=_of(happened, EventType.BUDGET_EXCEEDED),
        refused_compactions=_of(happened, EventType.COMPACTION_REFUSED),
        refused_opens=events.refused_opens(tenant, where),
        estimates=_estimates(cells, events.factors(tenant, where)),
        failures=_failures(ended),
        predictions=_predictions(ended),
        side_calls=events.side_calls(tenant, where),
        worst=_worst(tenant, where, prices),
        price_source=prices.source,
        unpriced_models=_unpriced(cells, prices),
        combinations=there,
    )


def _filter(spec: MetricsSpec, now: datetime) -> MetricsFilter:
    since, until = checked_range(spec.since, spec.until, now=now)
    return MetricsFilter(
        since=since,
        until=until,
        bucket=bucket_of(since, until),
        provider=spec.provider,
        model=spec.model,
        agent=spec.agent,
        engine=spec.engine,
        imported=spec.imported,
    )


@dataclass
class _Sums:
    """Figures in all, for each group and for each step of time."""

    where: MetricsFilter
    group_by: GroupBy | None
    prices: PriceList
    totals: Figures = field(default_factory=Figures)
    by_group: dict[str, Figures] = field(default_factory=dict)
    by_step: dict[datetime, Figures] = field(default_factory=dict)

    def __post_init__(self) -> None:
        where = self.where
        self.by_step = {at: Figures() for at in steps(where.since, where.until, where.bucket)}

    def count_requests(self, cells: Iterable[Cell]) -> None:
        for cell in cells:
            rate = self.prices.rate(cell.provider, cell.model, cell.size, cell.at)
            for figures in self._for(cell):
                figures.add_cell(cell, rate)

    def count_events(self, cells: Iterable[events.EventCell]) -> None:
        for cell in cells:
            for figures in self._for(cell):
                figures.add_event(cell)

    def count_sessions(self, tenant: UUID) -> None:
        for group, at, sessions in session_counts(tenant, self.where, self.group_by):
            if at is not None:
                self.by_step.setdefault(at, Figures()).sessions = sessions
            elif group is None:
                self.totals.sessions = sessions
            elif self.group_by:
                self.by_group.setdefault(group, Figures()).sessions = sessions

    def ranked(self) -> tuple[tuple[str, Figures], ...]:
        found = sorted(self.by_group.items(), key=lambda pair: (-pair[1].requests, pair[0]))
        return tuple(found[:MOST_GROUPS])

    def _for(self, cell: Cell | events.EventCell) -> tuple[Figures, ...]:
        step = self.by_step.setdefault(cell.at, Figures())
        if self.group_by is None:
            return self.totals, step
        key = f"{cell.provider}/{cell.model}"
        if self.group_by is not GroupBy.MODEL:
            key = getattr(cell, self.group_by.value)
        return self.totals, step, self.by_group.setdefault(key, Figures())


def _of(cells: Iterable[events.EventCell], kind: EventType) -> tuple[tuple[str, int], ...]:
    found: Counter[str] = Counter()
    for cell in cells:
        if cell.type == kind:
            found[cell.detail] += cell.events
    return tuple(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))


def _estimates(
    cells: Iterable[Cell], learnt: dict[tuple[str, str], events.Factor]
) -> tuple[ModelEstimate, ...]:
    figures: dict[tuple[str, str], Figures] = {}
    counters: dict[tuple[str, str], set[str]] = {}
    for cell in cells:
        key = cell.provider, cell.model
        figures.setdefault(key, Figures()).add_cell(cell, None)
        counters.setdefault(key, set()).update(cell.counters)
    found = [
        ModelEstimate(
            *key,
            tuple(sorted(counters[key])),
            sums.reported,
            sums.estimator_error,
            learnt.get((key[0], key[1][:200])),
        )
        for key, sums in figures.items()
    ]
    return tuple(sorted(found, key=_lowest_first))


def _lowest_first(estimate: ModelEstimate) -> tuple[bool, float]:
    """Counting too little is what breaks a request, so the most negative error is the worst."""
    value = estimate.error.value
    return value is None, value or 0


def _unpriced(cells: Iterable[Cell], prices: PriceList) -> tuple[str, ...]:
    return tuple(
        sorted(
            {
                f"{cell.provider}/{cell.model}"
                for cell in cells
                if cell.reported
                and prices.rate(cell.provider, cell.model, cell.size, cell.at) is None
            }
        )
    )


def _failures(ended: Iterable[ends.Outcome]) -> tuple[tuple[str, int], ...]:
    found: Counter[str] = Counter()
    for outcome in ended:
        if outcome.status == "failed":
            found[outcome.code or "unknown"] += outcome.requests
    return tuple(found.most_common())


def _predictions(ended: Iterable[ends.Outcome]) -> Predictions:
    classes: dict[str, list[int]] = {}
    misses: dict[str, list[int]] = {}
    disagreements = unknown = 0
    for outcome in ended:
        if not outcome.verdict:
            unknown += outcome.requests if outcome.status == "answered" else 0
            continue
        disagreements += outcome.requests if outcome.disagreed else 0
        _add(classes, outcome.verdict, outcome.requests, outcome.expected, outcome.reported)
        if outcome.cause and outcome.verdict != "unpredicted":
            # Of what nobody predicted, nothing can have been lost.
            short = outcome.verdict == "shortfall"
            lost = outcome.expected - outcome.reported if short else 0
            _add(misses, outcome.cause, outcome.requests, outcome.requests if short else 0, lost)
    return Predictions(
        tuple((name, many, expected, read) for name, (many, expected, read) in classes.items()),
        tuple((name, many, short, lost) for name, (many, short, lost) in misses.items()),
        disagreements,
        unknown,
    )


def _add(sums: dict[str, list[int]], name: str, *figures: int) -> None:
    kept = sums.setdefault(name, [0] * len(figures))
    for place, figure in enumerate(figures):
        kept[place] += figure


def _worst(tenant: UUID, where: MetricsFilter, prices: PriceList) -> Worst:
    sums = ends.worst_sessions(tenant, where, prices.rates, prices.lengths)
    by_cost = sorted(sums, key=lambda one: one.cost_rank)
    by_cache = sorted(
        (one for one in sums if one.cached_rank is not None), key=lambda one: one.cached_rank or 0
    )
    return Worst(
        tuple(one for one in by_cost if one.cost_rank <= ends.WORST),
        tuple(one for one in by_cache if (one.cached_rank or 0) <= ends.WORST),
        events.most_rotated(tenant, where, limit=ends.WORST),
    )
