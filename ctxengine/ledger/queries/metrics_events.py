"""What sessions recorded in a range: rotations, compactions, yields, pressure, refusals at open (spec, Tracked metrics)."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.db.models import Count, Max, Q, Sum

from ctxengine.engine.events import EventType
from ctxengine.ledger.models import Calibration, OpenRefusal, SideCallRow
from ctxengine.ledger.queries.metrics import MetricsFilter, fetched
from ctxengine.ledger.queries.providers import NO_FAULT

COUNTED = (
    EventType.EPOCH_ROTATED,
    EventType.USER_MESSAGE,
    EventType.COMPACTED,
    EventType.COMPACTION_UNDONE,
    EventType.COMPACTION_REFUSED,
    EventType.BUDGET_PRESSURE,
    EventType.BUDGET_EXCEEDED,
)


class EventCell(NamedTuple):
    """Events that share one step of time, one value of each dimension (of their session), a type and a detail."""

    at: datetime
    provider: str
    model: str
    engine: str
    agent: str
    type: str
    detail: str
    """Depth of a compaction, class that was exceeded, reason of a refused compaction; else empty."""
    events: int
    tokens: int
    """Tokens given up by compactions, or re-cached by rotations; else 0."""


class YieldSum(NamedTuple):
    """What one class gave up under pressure."""

    budget_class: str
    steps: int
    tokens: int
    items: int


class ReasonCount(NamedTuple):
    """How often a rotation named a reason, and what those rotations re-cached."""

    reason: str
    rotations: int
    tokens: int


class RotatedSession(NamedTuple):
    """A session with its rotations in the range."""

    session_id: UUID
    title: str
    agent: str
    epoch: int
    rotations: int
    reasons: list[str]


class RefusedOpens(NamedTuple):
    """Opens and rotations refused because one class did not fit."""

    budget_class: str
    code: str
    opens: int
    rotations: int
    needed_most: int
    """Largest size asked for, in tokens."""


class Factor(NamedTuple):
    """The estimator's state for one model, as of now: it has no range."""

    provider: str
    model: str
    factor: float
    samples: int
    last_error: float
    """Signed, of what was billed; negative when the estimate was too low."""


class SideCalls(NamedTuple):
    """Our own calls of a purpose."""

    purpose: str
    calls: int
    failed: int
    cost_microdollars: int | None
    """Of those with a known price; None when none has one."""
    unpriced: int


_OF_SESSION = """
  FROM event e
  JOIN session s ON s.tenant_id = e.tenant_id AND s.id = e.session_id
  WHERE e.tenant_id = %(tenant)s AND e.type = ANY(%(types)s)
    AND e.recorded_at >= %(since)s AND e.recorded_at < %(until)s
    AND (%(imported)s OR s.import_format = '' OR e.recorded_at > (
      SELECT f.recorded_at FROM event f
      WHERE f.tenant_id = s.tenant_id AND f.session_id = s.id AND f.sequence = 1))
    AND (e.type <> 'context.budget.pressure' OR coalesce((e.payload ->> 'fits')::boolean, true))
    AND (e.type <> 'context.compacted' OR e.payload ->> 'reason' IS DISTINCT FROM 'working_set' OR EXISTS (
      SELECT 1 FROM event p
      WHERE p.tenant_id = e.tenant_id AND p.session_id = e.session_id AND p.type = 'context.working_set.planned'
        AND p.sequence > e.sequence AND p.payload ->> 'packet' = e.sequence::text))
    AND (%(provider)s = '' OR s.provider = %(provider)s)
    AND (%(model)s = '' OR s.model = %(model)s OR s.provider || '/' || s.model = %(model)s)
    AND (%(engine)s = '' OR s.engine = %(engine)s)
    AND (%(agent)s = '' OR s.agent_name = %(agent)s OR s.agent_name || '@' || s.agent_version = %(agent)s)
"""
"""Events of the range, as the requests of it are chosen.

An import records all its events at one moment, that of the first; whatever came after is live. Pressure that did not help
led to no request: the step stands under `context.budget.exceeded` alone. A packet of a working set is a cache: it counts as a
compaction once a plan shows it, at the moment it was written, so one in reserve or written ahead does not.
"""

_EVENTS = """
SELECT date_trunc(%(bucket)s, e.recorded_at, 'UTC'), s.provider, s.model, s.engine,
       s.agent_name || '@' || s.agent_version, e.type,
       coalesce(CASE e.type WHEN 'context.compacted' THEN e.payload ->> 'depth'
                            WHEN 'context.budget.exceeded' THEN e.payload ->> 'class'
                            WHEN 'context.compaction.refused' THEN e.payload ->> 'reason' END, ''),
       count(*),
       coalesce(sum(CASE e.type
         WHEN 'context.compacted'
           THEN (e.payload ->> 'tokens_before')::bigint - (e.payload ->> 'tokens_after')::bigint
         WHEN 'context.epoch.rotated' THEN (e.payload ->> 'recached_tokens')::bigint END), 0)::bigint
"""

_EVENTS_GROUPED = "GROUP BY 1, 2, 3, 4, 5, 6, 7 ORDER BY 1, 2, 3, 4, 5, 6, 7"

_PAYLOADS = "WITH chosen AS (SELECT e.session_id, e.sequence, e.payload"

_REASONS = """)
SELECT reason, count(*), coalesce(sum((payload ->> 'recached_tokens')::bigint), 0)::bigint
FROM chosen, jsonb_array_elements_text(payload -> 'reasons') AS reason
GROUP BY 1 ORDER BY 2 DESC, 1
"""

_YIELDS = """)
SELECT step ->> 'budget_class', count(*),
       sum((step ->> 'tokens_before')::bigint - (step ->> 'tokens_after')::bigint)::bigint,
       sum((step ->> 'items')::bigint)::bigint
FROM chosen, jsonb_array_elements(payload -> 'steps') AS step
WHERE step ->> 'outcome' = 'ran'
GROUP BY 1 ORDER BY 3 DESC, 1
"""


_ROTATED = """
), turned AS (
  SELECT chosen.session_id, chosen.sequence, reason
  FROM chosen LEFT JOIN LATERAL jsonb_array_elements_text(chosen.payload -> 'reasons') AS reason ON true
)
SELECT t.session_id, s.title, s.agent_name || '@' || s.agent_version, s.epoch, count(DISTINCT t.sequence),
       coalesce(array_agg(DISTINCT t.reason ORDER BY t.reason) FILTER (WHERE t.reason IS NOT NULL), '{}')
FROM turned t JOIN session s ON s.tenant_id = %(tenant)s AND s.id = t.session_id
GROUP BY 1, 2, 3, 4 ORDER BY 5 DESC, 4 DESC, 1 LIMIT %(worst)s
"""


def event_cells(tenant_id: UUID, where: MetricsFilter) -> tuple[EventCell, ...]:
    """Counts of the range by type and detail. One query."""
    rows = fetched(_values(tenant_id, where, *COUNTED), _EVENTS, _OF_SESSION, _EVENTS_GROUPED)
    return tuple(EventCell(*row) for row in rows)


def rotation_reasons(tenant_id: UUID, where: MetricsFilter) -> tuple[ReasonCount, ...]:
    """Reasons that the range's rotations named; one rotation may name several. One query."""
    values = _values(tenant_id, where, EventType.EPOCH_ROTATED)
    return tuple(ReasonCount(*row) for row in fetched(values, _PAYLOADS, _OF_SESSION, _REASONS))


def most_rotated(
    tenant_id: UUID, where: MetricsFilter, *, limit: int
) -> tuple[RotatedSession, ...]:
    """The sessions with most rotations in the range. One query."""
    values = _values(tenant_id, where, EventType.EPOCH_ROTATED) | {"worst": limit}
    return tuple(RotatedSession(*row) for row in fetched(values, _PAYLOADS, _OF_SESSION, _ROTATED))


def yield_sums(tenant_id: UUID, where: MetricsFilter) -> tuple[YieldSum, ...]:
    """What each class gave up in the range. One query."""
    values = _values(tenant_id, where, EventType.BUDGET_PRESSURE)
    return tuple(YieldSum(*row) for row in fetched(values, _PAYLOADS, _OF_SESSION, _YIELDS))


def refused_opens(tenant_id: UUID, where: MetricsFilter) -> tuple[RefusedOpens, ...]:
    """Sessions and rotations refused in the range, by class. One query."""
    rows = OpenRefusal.objects.filter(
        _named(where), tenant_id=tenant_id, at__gte=where.since, at__lt=where.until
    )
    if where.engine:
        rows = rows.filter(engine=where.engine)
    if where.agent:
        rows = rows.filter(agent_name=where.agent.rpartition("@")[0] or where.agent)
    found = (
        rows.order_by()
        .values("budget_class", "code")
        .annotate(
            opens=Count("id", filter=Q(session_id__isnull=True)),
            rotations=Count("id", filter=Q(session_id__isnull=False)),
            needed_most=Max("needed"),
        )
        .order_by("budget_class", "code")
    )
    return tuple(RefusedOpens(**row) for row in found)


def factors(tenant_id: UUID, where: MetricsFilter) -> dict[tuple[str, str], Factor]:
    """What the estimator has learnt for each model so far. One query."""
    rows = Calibration.objects.filter(_named(where), tenant_id=tenant_id)
    return {
        (row.provider, row.model): Factor(
            row.provider,
            row.model,
            row.factor_millionths / 1_000_000,
            row.samples,
            # Kept as what the estimate lacked; shown as the estimator's error is.
            -row.last_error_millionths / 1_000_000,
        )
        for row in rows
    }


def side_calls(tenant_id: UUID, where: MetricsFilter) -> tuple[SideCalls, ...]:
    """Our own calls in the range, by purpose. They are no agent's and no engine's. One query."""
    rows = SideCallRow.objects.filter(
        _named(where), tenant_id=tenant_id, at__gte=where.since, at__lt=where.until
    )
    found = (
        rows.order_by()
        .values("purpose")
        .annotate(
            calls=Count("id"),
            failed=Count("id", filter=~Q(outcome__in=NO_FAULT)),
            cost=Sum("cost_microdollars"),
            unpriced=Count("id", filter=Q(cost_microdollars__isnull=True)),
        )
        .order_by("purpose")
    )
    return tuple(
        SideCalls(row["purpose"], row["calls"], row["failed"], row["cost"], row["unpriced"])
        for row in found
    )


def _named(where: MetricsFilter) -> Q:
    """The filter's provider and model, for tables that hold both."""
    found = Q()
    if where.provider:
        found &= Q(provider=where.provider)
    if where.model:
        provider, slash, name = where.model.partition("/")
        found &= Q(model=where.model) | (Q(provider=provider, model=name) if slash else Q())
    return found


def _values(tenant_id: UUID, where: MetricsFilter, *types: EventType) -> dict[str, object]:
    return {**where.parameters(tenant_id), "types": [entry.value for entry in types]}
