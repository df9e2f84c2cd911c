"""The list of requests across sessions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet

from ctxengine.ledger.models import RequestRow, SessionRow
from ctxengine.ledger.queries.cached import CacheBound, cached_within, holds_trust, yielded
from ctxengine.ledger.queries.paging import Cursor, Page, every_line, parse_cursor
from ctxengine.ledger.queries.request import foreseen_of
from ctxengine.ledger.queries.session import ran_classes
from ctxengine.ledger.queries.sessions import agent_named, session_titles
from ctxengine.ledger.queries.sums import told_figure, told_usage, unusable_usage
from ctxengine.ledger.queries.usage import Usage, usage_of


@dataclass(frozen=True, slots=True)
class RequestFilter:
    """What a list of requests is narrowed to."""

    words: tuple[str, ...] = ()
    """Each must start the request's, session's or prefix's hash or id, or occur in the model."""
    engine: str = ""
    model: str = ""
    status: str = ""
    yielded: str = ""
    """A budget class that gave up tokens, or `any`."""
    origin: str = ""
    """`live` or `reconstructed`."""
    epoch_over: int | None = None
    session_id: UUID | None = None
    provider: str = ""
    agent: str = ""
    """An agent's name, or `name@version`."""
    code: str = ""
    """Code of the failure."""
    verdict: str = ""
    """Class of the verdict on its cache; `none` for answered requests without one."""
    cause: str = ""
    """Cause of that verdict; one that predicted nothing is listed only where `verdict` asks for such."""
    disagreement: bool = False
    """Only requests whose provider names another reason for a cache miss."""
    usage: str = ""
    """`reported`, `unreported`, `unusable` (figures that cannot be right) or `no_cache_figures` (none of the cache)."""
    trust: str = ""
    """A trust level that some of its tokens have."""
    cached: CacheBound | None = None
    """A bound on the share of billed prompt tokens that were read from the cache."""
    since: datetime | None = None
    until: datetime | None = None
    """Exclusive."""


@dataclass(frozen=True, slots=True)
class RequestLine:
    """One request in a list."""

    id: UUID
    session_id: UUID
    session_title: str
    number: int
    label: str
    """`run.step`, as people name it."""
    engine: str
    provider: str
    model: str
    epoch: int
    total_tokens: int
    usable_tokens: int
    predicted_read: int | None
    usage: Usage
    yields: tuple[str, ...]
    status: str
    reconstructed: bool
    build_ms: float
    request_sha256: str
    created_at: datetime

    @property
    def outlined(self) -> bool:
        """Whether an import only outlined it: it has no rows to show until somebody opens it."""
        return self.reconstructed and not self.request_sha256

    @property
    def read_gap(self) -> int | None:
        """Reported minus predicted cache reads; None where either is unknown."""
        if self.predicted_read is None or self.usage.read is None:
            return None
        return self.usage.read - self.predicted_read


@dataclass(frozen=True, slots=True)
class RequestQuery:
    """A filter with a place in its list."""

    where: RequestFilter = field(default_factory=RequestFilter)
    after: Cursor | None = None
    size: int = 50


def list_requests(tenant_id: UUID, query: RequestQuery) -> Page[RequestLine]:
    """One page of requests, newest first. Two queries."""
    rows = narrowed_requests(tenant_id, query.where)
    if query.after:
        rows = rows.filter(query.after.older("created_at"))
    found = list(rows.order_by("-created_at", "-id").values(*_FIELDS)[: query.size + 1])
    shown = found[: query.size]
    titles = session_titles(tenant_id, {row["session_id"] for row in shown}) if shown else {}
    more = len(found) > query.size
    after = Cursor(shown[-1]["created_at"], shown[-1]["id"]).text() if more else ""
    return Page(tuple(_line(row, titles) for row in shown), after)


def one_request(tenant_id: UUID, request_id: UUID) -> RequestLine | None:
    """One request as a list shows it, or None when this tenant has no such request. Two queries."""
    row = RequestRow.objects.filter(tenant_id=tenant_id, id=request_id).values(*_FIELDS).first()
    if row is None:
        return None
    return _line(row, session_titles(tenant_id, {row["session_id"]}))


def every_request(tenant_id: UUID, where: RequestFilter) -> Iterator[RequestLine]:
    """All requests of a filter, read in pages of 200, for exports."""
    return every_line(
        lambda after: list_requests(
            tenant_id, RequestQuery(where, size=200, after=parse_cursor(after) if after else None)
        )
    )


@dataclass(frozen=True, slots=True)
class Around:
    """The requests beside one in a filtered list, newest first."""

    before: tuple[UUID, str] | None
    """Id and label of the one above it in the list: the newer one."""
    after: tuple[UUID, str] | None


def around(tenant_id: UUID, where: RequestFilter, at: datetime, request_id: UUID) -> Around:
    """What stands above and below a request in a list, whether or not it is itself on it. Two queries."""
    rows = narrowed_requests(tenant_id, where).values_list("id", "run_number", "step")
    newer = Q(created_at__gt=at) | Q(created_at=at, id__gt=request_id)
    older = Cursor(at, request_id).older("created_at")
    above = rows.filter(newer).order_by("created_at", "id").first()
    below = rows.filter(older).order_by("-created_at", "-id").first()
    return Around(
        (above[0], f"{above[1]}.{above[2]}") if above else None,
        (below[0], f"{below[1]}.{below[2]}") if below else None,
    )


def request_models(tenant_id: UUID) -> tuple[str, ...]:
    """Models that this tenant's sessions are bound to, for the filter. One query."""
    rows = SessionRow.objects.filter(tenant_id=tenant_id).order_by("model")
    return tuple(rows.values_list("model", flat=True).distinct()[:200])


_FIELDS = (
    "id",
    "session_id",
    "number",
    "run_number",
    "step",
    "engine",
    "provider",
    "model",
    "epoch",
    "total_tokens",
    "budget__usable",
    "cache__predicted",
    "usage",
    "manifest__yields",
    "status",
    "reconstructed",
    "build_ms",
    "request_sha256",
    "created_at",
)


def narrowed_requests(tenant_id: UUID, where: RequestFilter) -> QuerySet[RequestRow]:
    """The requests of a filter, in no order."""
    rows = RequestRow.objects.filter(tenant_id=tenant_id)
    for word in where.words:
        rows = rows.filter(_matches(word))
    exact = {"engine": where.engine, "model": where.model, "status": where.status}
    rows = rows.filter(**{name: value for name, value in exact.items() if value})
    if where.session_id:
        rows = rows.filter(session_id=where.session_id)
    if where.epoch_over is not None:
        rows = rows.filter(epoch__gt=where.epoch_over)
    if where.origin:
        rows = rows.filter(reconstructed=where.origin == "reconstructed")
    if where.yielded:
        rows = rows.filter(yielded(where.yielded))
    if where.trust:
        rows = rows.filter(holds_trust(where.trust))
    if where.cached:
        rows = cached_within(rows, where.cached)
    return _by_outcome(_by_place(rows, where), where)


def _by_place(rows: QuerySet[RequestRow], where: RequestFilter) -> QuerySet[RequestRow]:
    """Narrow to a provider, an agent and a range of time."""
    if where.provider:
        rows = rows.filter(provider=where.provider)
    if where.since:
        rows = rows.filter(created_at__gte=where.since)
    if where.until:
        rows = rows.filter(created_at__lt=where.until)
    if where.agent:
        sessions = SessionRow.objects.filter(
            agent_named(where.agent), tenant_id=OuterRef("tenant_id"), id=OuterRef("session_id")
        )
        rows = rows.filter(Exists(sessions))
    return rows


def _by_outcome(rows: QuerySet[RequestRow], where: RequestFilter) -> QuerySet[RequestRow]:
    """Narrow to how requests ended."""
    if where.code:
        rows = rows.filter(error__code=where.code)
    if where.verdict == "none":
        rows = rows.filter(status="answered", verdict__class__isnull=True)
    elif where.verdict:
        rows = rows.filter(verdict__class=where.verdict)
    if where.cause:
        rows = rows.filter(verdict__cause=where.cause)
        if where.verdict != "unpredicted":
            # As the metrics count a cause: of what nobody predicted, nothing can have been lost.
            rows = rows.exclude(verdict__class="unpredicted")
    if where.disagreement:
        rows = rows.filter(verdict__disagreement=True)
    if where.usage:
        rows = rows.filter(_of_usage(where.usage))
    return rows


def _of_usage(usage: str) -> Q:
    if usage == "unusable":
        return unusable_usage()
    if usage == "no_cache_figures":
        return told_usage() & ~told_figure("cache_read")
    return told_usage() if usage == "reported" else ~told_usage() & ~unusable_usage()


def _matches(word: str) -> Q:
    if "\x00" in word:
        return Q(pk__in=[])
    low = word.lower()
    found = Q(model__icontains=word)
    for name in ("id", "session_id", "request_sha256", "prefix_sha256"):
        found |= Q(**{f"{name}__startswith": low})
    return found


def _line(row: dict[str, Any], titles: dict[UUID, str]) -> RequestLine:
    predicted = foreseen_of(row["cache__predicted"] or {})
    return RequestLine(
        id=row["id"],
        session_id=row["session_id"],
        session_title=titles.get(row["session_id"], ""),
        number=row["number"],
        label=f"{row['run_number']}.{row['step']}",
        engine=row["engine"],
        provider=row["provider"],
        model=row["model"],
        epoch=row["epoch"],
        total_tokens=row["total_tokens"],
        usable_tokens=row["budget__usable"] or 0,
        predicted_read=predicted.get("read"),
        usage=usage_of(row["usage"]),
        yields=ran_classes(row["manifest__yields"]),
        status=row["status"],
        reconstructed=row["reconstructed"],
        build_ms=row["build_ms"],
        request_sha256=row["request_sha256"],
        created_at=row["created_at"],
    )
