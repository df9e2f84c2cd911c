"""Sums over the requests of a range, in cells small enough to be added up along any dimension (frozen-prefix spec, metrics).

Every figure is a numerator or a denominator; ratios are made once, from sums, by whoever shows them. All SQL here is
fixed text: a filter that is not set is the empty string, so that nothing is ever spliced into a statement.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection


class Bucket(StrEnum):
    """Width of a step of a trend."""

    HOUR = "hour"
    DAY = "day"


class GroupBy(StrEnum):
    """What figures may be grouped by; one at a time."""

    PROVIDER = "provider"
    MODEL = "model"
    AGENT = "agent"
    ENGINE = "engine"


ENGINES = ("suffix", "working_set", "boundary")
"""Engines that a filter may name."""


@dataclass(frozen=True, slots=True)
class MetricsFilter:
    """Which requests count. Empty texts do not narrow."""

    since: datetime
    until: datetime
    """Exclusive."""
    bucket: Bucket = Bucket.DAY
    provider: str = ""
    model: str = ""
    """A model's name, or `provider/name`."""
    agent: str = ""
    """An agent's name, or `name@version`."""
    engine: str = ""
    imported: bool = False
    """Whether what was made from imported transcripts counts too: their requests and their events.

    What a session did after its import is live and counts either way.
    """

    def parameters(self, tenant_id: UUID) -> dict[str, Any]:
        """Values for the statements of the metrics modules."""
        return {
            "tenant": tenant_id,
            "since": self.since,
            "until": self.until,
            "bucket": self.bucket.value,
            "provider": self.provider,
            "model": self.model,
            "agent": self.agent,
            "engine": self.engine,
            "imported": self.imported,
        }


class Cell(NamedTuple):
    """Sums over the requests that share one step of time and one value of each dimension. All tokens are as reported."""

    at: datetime
    provider: str
    model: str
    engine: str
    agent: str
    size: int
    """How many of the given prompt lengths the prompts exceed: some providers charge all tokens of longer prompts more."""
    counters: list[str]
    """Counter versions that made the estimates."""
    requests: int
    answered: int
    failed: int
    reported: int
    """Requests whose provider said what it billed; the token sums are theirs."""
    cache_reported: int
    """Of these, requests whose provider said what it read from its cache: no ratio of the cache counts another."""
    cache_prompt: int
    """Prompts of these."""
    unusable: int
    """Requests whose reported figures cannot be right: kept with the request, and part of no sum."""
    fresh: int
    read: int
    write_short: int
    write_long: int
    output: int
    extra_input: int
    """Billed beside the prompts, for what server-side iterations read."""
    extra_output: int
    """Billed beside the answers, for what these iterations wrote."""
    follows: int
    """Requests whose cache reads were reported, with an earlier reported one in their session."""
    follows_read: int
    """Tokens that these read from the cache."""
    preceding: int
    """Whole input of the calls right before them."""
    prefix_read: int
    """Of the pinned prefix, what later requests of a session read from the cache."""
    prefix: int
    """The pinned prefix of these requests."""
    estimated: int
    """Our counts of the reported requests."""


class SessionCount(NamedTuple):
    """Distinct sessions with a request in the range."""

    group: str | None
    at: datetime | None
    sessions: int


SEEN = """
WITH seen AS (
  SELECT r.id, r.session_id, r.number, r.created_at, r.provider, r.model, r.engine, r.status, r.error, r.verdict,
         r.epoch, r.total_tokens, s.agent_name || '@' || s.agent_version AS agent, s.counter,
         (u.sound ->> 'fresh') IS NOT NULL OR (u.sound ->> 'cache_read') IS NOT NULL AS told,
         (u.sound ->> 'cache_read') IS NOT NULL AS tells_cache,
         r.usage @? '$.problems[*]' AS unusable,
         coalesce((u.sound ->> 'fresh')::bigint, 0) AS fresh,
         coalesce((u.sound ->> 'cache_read')::bigint, 0) AS "read",
         coalesce((u.sound ->> 'cache_write_5m')::bigint, 0) AS write_short,
         coalesce((u.sound ->> 'cache_write_1h')::bigint, 0) AS write_long,
         coalesce((u.sound ->> 'output')::bigint, 0) AS output,
         coalesce((u.sound ->> 'extra_input')::bigint, 0) AS extra_input,
         coalesce((u.sound ->> 'extra_output')::bigint, 0) AS extra_output
  FROM request r
  JOIN session s ON s.tenant_id = r.tenant_id AND s.id = r.session_id
  CROSS JOIN LATERAL (SELECT CASE WHEN r.usage @? '$.problems[*]' THEN '{}' ELSE r.usage END AS sound) u
  WHERE r.tenant_id = %(tenant)s AND r.created_at >= %(since)s AND r.created_at < %(until)s
    AND (%(imported)s OR NOT r.reconstructed)
    AND (%(provider)s = '' OR r.provider = %(provider)s)
    AND (%(model)s = '' OR r.model = %(model)s OR r.provider || '/' || r.model = %(model)s)
    AND (%(engine)s = '' OR r.engine = %(engine)s)
    AND (%(agent)s = '' OR s.agent_name = %(agent)s OR s.agent_name || '@' || s.agent_version = %(agent)s)
)
"""
"""The requests of the range; later statements go on from here. Figures that cannot be right count for nothing."""

BEFORE = """
, follow AS (
  SELECT seen.*, seen.fresh + seen."read" + seen.write_short + seen.write_long AS prompt, b.prompt AS before
  FROM seen LEFT JOIN LATERAL (
    SELECT coalesce((e.usage ->> 'fresh')::bigint, 0) + coalesce((e.usage ->> 'cache_read')::bigint, 0)
         + coalesce((e.usage ->> 'cache_write_5m')::bigint, 0)
         + coalesce((e.usage ->> 'cache_write_1h')::bigint, 0) AS prompt
    FROM request e
    WHERE e.tenant_id = %(tenant)s AND e.session_id = seen.session_id AND e.number < seen.number
      AND (%(imported)s OR NOT e.reconstructed)
      AND ((e.usage ->> 'fresh') IS NOT NULL OR (e.usage ->> 'cache_read') IS NOT NULL)
      AND NOT e.usage @? '$.problems[*]'
    ORDER BY e.number DESC LIMIT 1
  ) b ON seen.tells_cache
)
"""
"""Each request with the whole input of the reported call right before it, also where that lies before the range."""

_MODELS = """
SELECT provider, model, engine, agent, count(*) FROM seen GROUP BY 1, 2, 3, 4 ORDER BY 5 DESC, 1, 2, 3, 4
"""

_CELLS = """
SELECT date_trunc(%(bucket)s, f.created_at, 'UTC'), f.provider, f.model, f.engine, f.agent,
       width_bucket(f.prompt - 1, %(lengths)s::bigint[]), array_agg(DISTINCT f.counter),
       count(*), count(*) FILTER (WHERE f.status = 'answered'), count(*) FILTER (WHERE f.status = 'failed'),
       count(*) FILTER (WHERE f.told), count(*) FILTER (WHERE f.tells_cache),
       coalesce(sum(f.prompt) FILTER (WHERE f.tells_cache), 0)::bigint, count(*) FILTER (WHERE f.unusable),
       sum(f.fresh)::bigint, sum(f."read")::bigint, sum(f.write_short)::bigint,
       sum(f.write_long)::bigint, sum(f.output)::bigint, sum(f.extra_input)::bigint, sum(f.extra_output)::bigint,
       count(f.before), coalesce(sum(f."read") FILTER (WHERE f.before IS NOT NULL), 0)::bigint,
       coalesce(sum(f.before), 0)::bigint,
       coalesce(sum(least(f."read", p.prefix_tokens)) FILTER (WHERE f.tells_cache AND f.number > 1), 0)::bigint,
       coalesce(sum(p.prefix_tokens) FILTER (WHERE f.tells_cache AND f.number > 1), 0)::bigint,
       coalesce(sum(f.total_tokens) FILTER (WHERE f.told), 0)::bigint
FROM follow f
LEFT JOIN plan p ON p.tenant_id = %(tenant)s AND p.session_id = f.session_id AND p.epoch = f.epoch
GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 1, 2, 3, 4, 5, 6
"""

_SESSIONS = """
, keyed AS (
  SELECT session_id, date_trunc(%(bucket)s, created_at, 'UTC') AS at,
         CASE %(group)s WHEN 'provider' THEN provider WHEN 'model' THEN provider || '/' || model
                        WHEN 'agent' THEN agent WHEN 'engine' THEN engine ELSE '' END AS grouped
  FROM seen
)
SELECT grouped, at, count(DISTINCT session_id) FROM keyed GROUP BY GROUPING SETS ((), (grouped), (at))
"""


class Combination(NamedTuple):
    """Values of the dimensions that occur together in the range."""

    provider: str
    model: str
    engine: str
    agent: str
    requests: int


def combinations(tenant_id: UUID, where: MetricsFilter) -> tuple[Combination, ...]:
    """Which providers, models, engines and agents the range holds, the most used first. One query."""
    return tuple(Combination(*row) for row in fetched(where.parameters(tenant_id), SEEN, _MODELS))


def usage_cells(
    tenant_id: UUID, where: MetricsFilter, *, lengths: tuple[int, ...] = ()
) -> tuple[Cell, ...]:
    """All sums of the range. One query; it reads the range and, for each request, the call before it.

    Args:
        tenant_id: whose requests.
        where: which of them.
        lengths: prompt lengths, rising, at which a model's prices change.
    """
    values = {**where.parameters(tenant_id), "lengths": list(lengths) or [1 << 62]}
    return tuple(Cell(*row) for row in fetched(values, SEEN, BEFORE, _CELLS))


def session_counts(
    tenant_id: UUID, where: MetricsFilter, group: GroupBy | None
) -> tuple[SessionCount, ...]:
    """Distinct sessions in all, for each group and for each step of time. One query."""
    values = {**where.parameters(tenant_id), "group": group.value if group else ""}
    return tuple(SessionCount(*row) for row in fetched(values, SEEN, _SESSIONS))


def fetched(values: dict[str, Any], *parts: str) -> Iterator[tuple[Any, ...]]:
    """The rows of a statement that is made of these fixed parts."""
    with connection.cursor() as cursor:
        cursor.execute("".join(parts), values)
        yield from cursor.fetchall()
