"""What was said, looked up by its words."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib.postgres.search import SearchQuery
from django.db.models import Count, Max, Q, QuerySet

from ctxengine.ledger.models import SearchEntry, SearchHead, SessionRow
from ctxengine.ledger.queries.paging import Cursor, Page
from ctxengine.ledger.queries.sessions import session_titles
from ctxengine.ledger.search_words import Wanted, places, tenant_word, wanted

FACET_LIMIT = 5_000
"""Hits over which facets are counted; beyond them a count is a lower bound and says so."""
_AROUND_CHARS = 140
_MOST_PLACES = 4


@dataclass(frozen=True, slots=True)
class SearchFilter:
    """What is looked for."""

    text: str = ""
    """Words, "phrases" and -left-out words."""
    role: str = ""
    kind: str = ""
    trust: str = ""
    row: int | None = None
    tool: str = ""
    session_id: UUID | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A stretch of a text around the words that were found."""

    pieces: tuple[tuple[str, bool], ...]
    """Text, and whether it is what was looked for."""
    before: bool
    """Whether text stands before it."""
    after: bool


@dataclass(frozen=True, slots=True)
class Hit:
    """One item whose text has the words."""

    session_id: UUID
    session_title: str
    sequence: int
    ordinal: int
    kind: str
    role: str
    row: int
    trust: str
    name: str
    at: datetime
    chars: int
    cut: bool
    excerpt: Excerpt

    @property
    def item(self) -> str:
        """Its id in the session."""
        return f"{self.sequence}.{self.ordinal}"


@dataclass(frozen=True, slots=True)
class SearchFacets:
    """How the hits spread, over at most `FACET_LIMIT` of them."""

    total: int
    more: bool
    """Whether there are more hits than were counted."""
    roles: tuple[tuple[str, int], ...] = ()
    trusts: tuple[tuple[str, int], ...] = ()
    kinds: tuple[tuple[str, int], ...] = ()
    sessions: tuple[tuple[UUID, str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class SearchQueryPage:
    """A filter with a place in its list."""

    where: SearchFilter = field(default_factory=SearchFilter)
    after: Cursor | None = None
    size: int = 20


@dataclass(frozen=True, slots=True)
class Lag:
    """How far the index is behind."""

    sessions: int
    """Sessions with events that cannot be found yet."""
    indexed: int
    """Sessions in the index."""


def search_items(tenant_id: UUID, query: SearchQueryPage) -> Page[Hit]:
    """One page of hits, the newest first. Two queries."""
    words = wanted(query.where.text)
    rows = _narrowed(tenant_id, query.where, words)
    if query.after:
        rows = rows.filter(query.after.older("at"))
    found = list(rows.defer("document").order_by("-at", "-id")[: query.size + 1])
    shown = found[: query.size]
    titles = session_titles(tenant_id, {row.session_id for row in shown}) if shown else {}
    more = len(found) > query.size
    after = Cursor(shown[-1].at, shown[-1].id).text() if more else ""
    return Page(tuple(_hit(row, titles, words) for row in shown), after)


def search_facets(tenant_id: UUID, where: SearchFilter) -> SearchFacets:
    """Counts by role, trust, kind and session. Two queries."""
    rows = _narrowed(tenant_id, where, wanted(where.text))
    found = list(
        rows.order_by("-at", "-id").values_list("role", "trust", "kind", "session_id")[
            : FACET_LIMIT + 1
        ]
    )
    counted = found[:FACET_LIMIT]
    sessions = _counts([row[3] for row in counted])[:8]
    titles = session_titles(tenant_id, {one for one, _ in sessions}) if sessions else {}
    return SearchFacets(
        total=len(counted),
        more=len(found) > FACET_LIMIT,
        roles=_counts([row[0] for row in counted]),
        trusts=_counts([row[1] for row in counted]),
        kinds=_counts([row[2] for row in counted]),
        sessions=tuple((one, titles.get(one, ""), number) for one, number in sessions),
    )


def index_lag(tenant_id: UUID) -> Lag:
    """How many sessions went on since they were indexed. Two queries."""
    heads = dict(
        SearchHead.objects.filter(tenant_id=tenant_id).values_list("session_id", "through")
    )
    ends = SessionRow.objects.filter(tenant_id=tenant_id).values_list("id", "last_sequence")
    return Lag(sum(1 for one, last in ends if heads.get(one, 0) < last), len(heads))


def newest_indexed(tenant_id: UUID) -> datetime | None:
    """Time of the newest text that can be found. One query."""
    found: datetime | None = SearchEntry.objects.filter(tenant_id=tenant_id).aggregate(
        at=Max("at")
    )["at"]
    return found


def tool_names(tenant_id: UUID) -> tuple[tuple[str, int], ...]:
    """Tools whose calls and results are indexed, the busiest first. One query."""
    rows = (
        SearchEntry.objects.filter(tenant_id=tenant_id)
        .exclude(name="")
        .order_by()
        .values_list("name")
        .annotate(number=Count("id"))
    )
    return tuple(sorted(rows, key=lambda pair: (-pair[1], pair[0]))[:50])


def _narrowed(tenant_id: UUID, where: SearchFilter, words: Wanted) -> QuerySet[SearchEntry]:
    rows = SearchEntry.objects.filter(tenant_id=tenant_id)
    if words.asked:
        asked = f"{tenant_word(tenant_id)} {words.asked}"
        rows = rows.filter(document=SearchQuery(asked, config="simple", search_type="websearch"))
    exact = {
        "role": where.role,
        "kind": where.kind,
        "trust": where.trust,
        "name": where.tool,
        "session_id": where.session_id,
    }
    rows = rows.filter(**{name: value for name, value in exact.items() if value})
    bounds = Q()
    if where.row is not None:
        bounds &= Q(row=where.row)
    if where.since:
        bounds &= Q(at__gte=where.since)
    if where.until:
        bounds &= Q(at__lt=where.until)
    return rows.filter(bounds)


def _counts(values: list[Any]) -> tuple[tuple[Any, int], ...]:
    counts: dict[Any, int] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    return tuple(sorted(counts.items(), key=lambda pair: (-pair[1], str(pair[0]))))


def _hit(row: SearchEntry, titles: dict[UUID, str], words: Wanted) -> Hit:
    return Hit(
        session_id=row.session_id,
        session_title=titles.get(row.session_id, ""),
        sequence=row.sequence,
        ordinal=row.ordinal,
        kind=row.kind,
        role=row.role,
        row=row.row,
        trust=row.trust,
        name=row.name,
        at=row.at,
        chars=len(row.text),
        cut=row.cut,
        excerpt=excerpt_of(row.text, words),
    )


def excerpt_of(text: str, words: Wanted) -> Excerpt:
    """The stretch around the first words found, with all of them in it marked."""
    found = places(text, words.phrases)
    start = max(0, found[0][0] - _AROUND_CHARS // 2) if found else 0
    end = min(len(text), (found[0][1] if found else 0) + 2 * _AROUND_CHARS)
    pieces: list[tuple[str, bool]] = []
    at = start
    for low, high in [span for span in found if span[1] <= end][:_MOST_PLACES]:
        pieces += [(text[at:low], False), (text[low:high], True)]
        at = high
    pieces.append((text[at:end], False))
    return Excerpt(tuple(piece for piece in pieces if piece[0]), start > 0, end < len(text))
