"""How the requests of a range ended, what was predicted of their caches, and which sessions stand out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID

from ctxengine.ledger.queries.metrics import BEFORE, SEEN, MetricsFilter, fetched

WORST = 10
"""Sessions in each list of the worst."""


class Outcome(NamedTuple):
    """Requests with one status, failure and verdict on their predicted cache reads."""

    status: str
    code: str
    """Code of the failure; empty when there was none."""
    verdict: str
    """Class of the verdict; empty while there is none."""
    cause: str
    """Cause of a shortfall."""
    disagreed: bool
    """Whether the provider's own reason for a miss is another one."""
    requests: int
    expected: int
    """Cache reads predicted, in tokens, where a verdict tells them."""
    reported: int


class Rate(NamedTuple):
    """Prices of one model for prompts of one size class, in microdollars for each token, for as long as they held."""

    provider: str
    model: str
    size: int
    fresh: Decimal
    read: Decimal
    write_short: Decimal
    write_long: Decimal
    output: Decimal
    since: datetime
    until: datetime
    """Exclusive."""


class SessionSum(NamedTuple):
    """A session's figures in the range."""

    session_id: UUID
    title: str
    agent: str
    requests: int
    reported: int
    read: int
    prompt: int
    cache_prompt: int
    """Prompts of the requests whose cache reads were reported."""
    follows: int
    follows_read: int
    preceding: int
    cost_microdollars: Decimal | None
    """None where no request has a known price."""
    unpriced: int
    """Reported requests without a known price."""
    cost_rank: int
    cached_rank: int | None


_OUTCOMES = """
SELECT status, coalesce(error ->> 'code', ''), coalesce(verdict ->> 'class', ''), coalesce(verdict ->> 'cause', ''),
       coalesce(verdict ->> 'disagreement', '') NOT IN ('', 'false', '{}', '[]'), count(*),
       coalesce(sum((verdict ->> 'expected_read')::bigint), 0)::bigint,
       coalesce(sum((verdict ->> 'reported_read')::bigint), 0)::bigint
FROM seen GROUP BY 1, 2, 3, 4, 5 ORDER BY 6 DESC, 1, 2, 3, 4, 5
"""

_WORST = """
, rates AS (
  SELECT * FROM unnest(%(providers)s::text[], %(models)s::text[], %(sizes)s::int[], %(fresh)s::numeric[],
    %(read)s::numeric[], %(short)s::numeric[], %(long)s::numeric[], %(output)s::numeric[],
    %(starts)s::timestamptz[], %(ends)s::timestamptz[])
    AS t (provider, model, size, fresh, "read", write_short, write_long, output, starts, ends)
), sums AS (
  SELECT f.session_id, min(f.agent) AS agent, count(*) AS requests, count(*) FILTER (WHERE f.told) AS reported,
         sum(f."read")::bigint AS "read", sum(f.prompt)::bigint AS prompt,
         coalesce(sum(f.prompt) FILTER (WHERE f.tells_cache), 0)::bigint AS cache_prompt, count(f.before) AS follows,
         coalesce(sum(f."read") FILTER (WHERE f.before IS NOT NULL), 0)::bigint AS follows_read,
         coalesce(sum(f.before), 0)::bigint AS preceding,
         sum((f.fresh + f.extra_input) * t.fresh + f."read" * t."read" + f.write_short * t.write_short
             + f.write_long * t.write_long + (f.output + f.extra_output) * t.output) FILTER (WHERE f.told) AS cost,
         count(*) FILTER (WHERE f.told AND t.provider IS NULL) AS unpriced
  FROM follow f
  LEFT JOIN rates t ON t.provider = f.provider AND t.model = f.model
                   AND t.size = width_bucket(f.prompt - 1, %(lengths)s::bigint[])
                   AND t.starts <= f.created_at AND f.created_at < t.ends
  GROUP BY f.session_id
), ranked AS (
  SELECT sums.*, row_number() OVER (ORDER BY cost DESC NULLS LAST, prompt DESC, session_id) AS cost_rank,
         CASE WHEN preceding > 0 THEN row_number() OVER (
           ORDER BY (preceding > 0) DESC, follows_read::numeric / nullif(preceding, 0),
                    preceding - follows_read DESC, session_id) END AS cached_rank
  FROM sums WHERE reported > 0
)
SELECT r.session_id, s.title, r.agent, r.requests, r.reported, r."read", r.prompt, r.cache_prompt, r.follows,
       r.follows_read, r.preceding, r.cost, r.unpriced, r.cost_rank, r.cached_rank
FROM ranked r JOIN session s ON s.tenant_id = %(tenant)s AND s.id = r.session_id
WHERE r.cost_rank <= %(worst)s OR r.cached_rank <= %(worst)s
"""


def outcomes(tenant_id: UUID, where: MetricsFilter) -> tuple[Outcome, ...]:
    """Requests of the range by how they ended and how their predicted reads fared. One query."""
    return tuple(Outcome(*row) for row in fetched(where.parameters(tenant_id), SEEN, _OUTCOMES))


def worst_sessions(
    tenant_id: UUID, where: MetricsFilter, rates: Sequence[Rate], lengths: tuple[int, ...]
) -> tuple[SessionSum, ...]:
    """The sessions that cost most and those whose cache did worst, both lists in one. One query.

    A session is ranked by its cache only once two of its calls in a row were reported.
    """
    values = {
        **where.parameters(tenant_id),
        "lengths": list(lengths) or [1 << 62],
        "worst": WORST,
        "providers": [rate.provider for rate in rates],
        "models": [rate.model for rate in rates],
        "sizes": [rate.size for rate in rates],
        "fresh": [rate.fresh for rate in rates],
        "read": [rate.read for rate in rates],
        "short": [rate.write_short for rate in rates],
        "long": [rate.write_long for rate in rates],
        "output": [rate.output for rate in rates],
        "starts": [rate.since for rate in rates],
        "ends": [rate.until for rate in rates],
    }
    return tuple(SessionSum(*row) for row in fetched(values, SEEN, BEFORE, _WORST))
