"""The list of sessions: filters, facets and keyset pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery

from ctxengine.ledger.models import Event, PlanRow, RequestRow, SessionRow
from ctxengine.ledger.queries.cached import (
    CacheBound,
    sessions_cached_within,
    sessions_holding_trust,
    sessions_that_yielded,
)
from ctxengine.ledger.queries.paging import COUNTED, Cursor, Page, every_line, parse_cursor
from ctxengine.ledger.queries.session import HELPED_NOTHING


@dataclass(frozen=True, slots=True)
class SessionFilter:
    """What a list of sessions is narrowed to; every field is optional."""

    words: tuple[str, ...] = ()
    """Each must occur in the title, agent, model or principal, or start the id."""
    engine: str = ""
    model: str = ""
    agent: str = ""
    import_format: str = ""
    """A format name, `live` for sessions that were not imported, or `any` for imported ones. With `event`, `live` asks for
    sessions in which it happened live: an imported session may go on, and its transcript's own events do not count."""
    state: str = ""
    epoch_over: int | None = None
    parent: str = ""
    """`child` keeps child sessions only."""
    provider: str = ""
    agent_exact: str = ""
    """An agent's whole name, or `name@version`."""
    policy: str = ""
    """`name@version` of the budget policy of the current epoch."""
    event: str = ""
    """Only sessions with an event of this type; between the times below, where they are given."""
    since: datetime | None = None
    until: datetime | None = None
    """Exclusive. Without `event` they bound the session's latest activity."""
    yielded: str = ""
    """A budget class that gave up tokens in one of its requests, or `any`."""
    trust: str = ""
    """A trust level that one of its items has."""
    cached: CacheBound | None = None
    """A bound on the cached share of everything billed for its live requests."""


@dataclass(frozen=True, slots=True)
class SessionLine:
    """One session in a list."""

    id: UUID
    title: str
    agent: str
    engine: str
    provider: str
    model: str
    state: str
    import_format: str
    occasion: str
    epoch: int
    runs: int
    requests: int
    items: int
    tokens: int
    """Raw tokens of all items."""
    peak_tokens: int
    """Largest request."""
    room_tokens: int | None
    """What the newest request could be at most, in the same counting; None before the first one."""
    pressure_count: int
    active_at: datetime


@dataclass(frozen=True, slots=True)
class Facets:
    """Values that occur, with the number of sessions of each."""

    engines: tuple[tuple[str, int], ...] = ()
    models: tuple[tuple[str, int], ...] = ()
    formats: tuple[tuple[str, int], ...] = ()
    states: tuple[tuple[str, int], ...] = ()
    total: int = 0
    more: bool = False
    """Whether there are older ones that were not counted."""


@dataclass(frozen=True, slots=True)
class SessionQuery:
    """A filter with a place in its list."""

    where: SessionFilter = field(default_factory=SessionFilter)
    after: Cursor | None = None
    size: int = 50


def list_sessions(tenant_id: UUID, query: SessionQuery) -> Page[SessionLine]:
    """One page of sessions, the most recently active first. One query."""
    rows = narrowed_sessions(tenant_id, query.where)
    if query.after:
        rows = rows.filter(query.after.older("active_at"))
    found = list(_with_room(rows).order_by("-active_at", "-id")[: query.size + 1])
    shown = found[: query.size]
    more = len(found) > query.size
    after = Cursor(shown[-1]["active_at"], shown[-1]["id"]).text() if more else ""
    return Page(tuple(_line(row) for row in shown), after)


def every_session(tenant_id: UUID, where: SessionFilter) -> Iterator[SessionLine]:
    """All sessions of a filter, read in pages of 200, for exports."""
    return every_line(
        lambda after: list_sessions(
            tenant_id, SessionQuery(where, size=200, after=parse_cursor(after) if after else None)
        )
    )


def session_facets(tenant_id: UUID) -> Facets:
    """Counts over the most recently active sessions of the tenant, so that no page waits for its whole past. One query."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in _FACETS}
    total = 0
    newest = SessionRow.objects.filter(tenant_id=tenant_id).order_by("-active_at", "id")
    grouped = (
        SessionRow.objects.filter(tenant_id=tenant_id, id__in=newest.values("id")[: COUNTED + 1])
        .order_by()
        .values(*_FACETS)
        .annotate(number=Count("id"))
    )
    for row in grouped:
        total += row["number"]
        for name in _FACETS:
            counts[name][row[name]] += row["number"]
    return Facets(
        engines=_ordered(counts["engine"]),
        models=_ordered(counts["model"]),
        formats=_ordered(counts["import_format"]),
        states=_ordered(counts["state"]),
        total=min(total, COUNTED),
        more=total > COUNTED,
    )


def sessions_found(tenant_id: UUID, text: str, *, limit: int = 8) -> list[SessionRow]:
    """Sessions with a request that all words of a text are found in, those worked on last first. One query."""
    rows = narrowed_sessions(tenant_id, SessionFilter(words=tuple(text.split())))
    return list(rows.filter(requests__gt=0).order_by("-active_at", "-id")[:limit])


def models_of_sessions(tenant_id: UUID, *, looked_at: int = 200) -> list[str]:
    """Models of the newest sessions as PROVIDER/NAME, the most frequent first. One query."""
    rows = SessionRow.objects.filter(tenant_id=tenant_id).order_by("-active_at")[:looked_at]
    counted = Counter(
        f"{provider}/{model}" for provider, model in rows.values_list("provider", "model")
    )
    return [name for name, _ in counted.most_common()]


def session_titles(tenant_id: UUID, ids: set[UUID]) -> dict[UUID, str]:
    """Titles by id, for lists that name sessions. One query."""
    rows = SessionRow.objects.filter(tenant_id=tenant_id, id__in=ids).values_list("id", "title")
    return dict(rows)


_FACETS = ("engine", "model", "import_format", "state")
_FIELDS = (
    "id",
    "title",
    "agent_name",
    "agent_version",
    "engine",
    "provider",
    "model",
    "state",
    "import_format",
    "occasion",
    "epoch",
    "runs",
    "requests",
    "items",
    "tokens",
    "peak_tokens",
    "pressure_count",
    "active_at",
)


def narrowed_sessions(tenant_id: UUID, where: SessionFilter) -> QuerySet[SessionRow]:
    """The sessions of a filter, in no order."""
    rows = SessionRow.objects.filter(tenant_id=tenant_id)
    for word in where.words:
        rows = rows.filter(_matches(word))
    exact = {"engine": where.engine, "model": where.model, "state": where.state}
    rows = rows.filter(**{name: value for name, value in exact.items() if value})
    if where.agent:
        rows = rows.filter(agent_name__icontains=where.agent)
    if where.import_format == "live":
        rows = rows if where.event else rows.filter(import_format="")
    elif where.import_format == "any":
        rows = rows.exclude(import_format="")
    elif where.import_format:
        rows = rows.filter(import_format=where.import_format)
    if where.epoch_over is not None:
        rows = rows.filter(epoch__gt=where.epoch_over)
    if where.parent == "child":
        rows = rows.filter(parent_run_id__isnull=False)
    if where.yielded:
        rows = sessions_that_yielded(rows, where.yielded)
    if where.trust:
        rows = sessions_holding_trust(rows, where.trust)
    if where.cached:
        rows = sessions_cached_within(rows, where.cached)
    return _by_facts(rows, where)


def _by_facts(rows: QuerySet[SessionRow], where: SessionFilter) -> QuerySet[SessionRow]:
    """Narrow to a provider, an agent version, a policy and what happened in a range of time."""
    if where.provider:
        rows = rows.filter(provider=where.provider)
    if where.agent_exact:
        rows = rows.filter(agent_named(where.agent_exact))
    if where.policy:
        name, _, version = where.policy.rpartition("@")
        plans = PlanRow.objects.filter(
            tenant_id=OuterRef("tenant_id"),
            session_id=OuterRef("id"),
            epoch=OuterRef("epoch"),
            policy__name=name,
            policy__version=version,
        )
        rows = rows.filter(Exists(plans))
    events = {"recorded_at__gte": where.since, "recorded_at__lt": where.until}
    bounds = {name: moment for name, moment in events.items() if moment}
    if where.event:
        happened = Event.objects.filter(
            tenant_id=OuterRef("tenant_id"),
            session_id=OuterRef("id"),
            type=where.event,
            **bounds,
        ).exclude(HELPED_NOTHING)
        if where.import_format == "live":
            # An import records all its events at one moment, that of the first.
            first = Event.objects.filter(
                tenant_id=OuterRef("tenant_id"), session_id=OuterRef("session_id"), sequence=1
            )
            later = happened.filter(recorded_at__gt=Subquery(first.values("recorded_at")))
            return rows.filter(Q(Exists(happened), import_format="") | Q(Exists(later)))
        return rows.filter(Exists(happened))
    return rows.filter(
        **{name.replace("recorded_at", "active_at"): moment for name, moment in bounds.items()}
    )


def agent_named(text: str) -> Q:
    """Sessions of an agent, by its whole name or by `name@version`."""
    name, at, version = text.rpartition("@")
    found = Q(agent_name=text)
    return found | Q(agent_name=name, agent_version=version) if at else found


def _matches(word: str) -> Q:
    # Postgres text holds no NUL, so a word with one can match nothing.
    if "\x00" in word:
        return Q(pk__in=[])
    found = Q()
    for name in ("title", "agent_name", "model", "principal"):
        found |= Q(**{f"{name}__icontains": word})
    return found | Q(id__startswith=word.lower())


def _with_room(rows: QuerySet[SessionRow]) -> QuerySet[SessionRow, Any]:
    newest = (
        RequestRow.objects.filter(tenant_id=OuterRef("tenant_id"), session_id=OuterRef("id"))
        .order_by("-number")
        .annotate(room=F("budget__usable"))
        .values("room")[:1]
    )
    found: QuerySet[SessionRow, Any] = rows.annotate(room=Subquery(newest)).values(*_FIELDS, "room")
    return found


def _line(row: dict[str, Any]) -> SessionLine:
    agent = f"{row['agent_name']}@{row['agent_version']}"
    room = row["room"]
    return SessionLine(
        agent=agent,
        room_tokens=int(room) if room is not None else None,
        **{name: row[name] for name in _FIELDS if not name.startswith("agent_")},
    )


def _ordered(counts: Counter[str]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))
