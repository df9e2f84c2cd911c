"""What a list has got since it was shown: only numbers, so that a page may ask often."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from ctxengine.ledger.queries.paging import Cursor
from ctxengine.ledger.queries.requests import RequestFilter, narrowed_requests
from ctxengine.ledger.queries.sessions import SessionFilter, narrowed_sessions

MOST = 100
"""Rows that are counted; beyond them it is enough to know that there are more."""


@dataclass(frozen=True, slots=True)
class Newer:
    """How many rows stand above the first one that was shown."""

    number: int
    more: bool


def newer_requests(tenant_id: UUID, where: RequestFilter, first: Cursor) -> Newer:
    """Requests of a filter that were built since. One query."""
    rows = narrowed_requests(tenant_id, where).filter(first.newer("created_at"))
    return _counted(rows.values_list("id", flat=True)[: MOST + 1].count())


def newer_sessions(tenant_id: UUID, where: SessionFilter, first: Cursor) -> Newer:
    """Sessions of a filter that were active since. One query."""
    rows = narrowed_sessions(tenant_id, where).filter(first.newer("active_at"))
    return _counted(rows.values_list("id", flat=True)[: MOST + 1].count())


def _counted(number: int) -> Newer:
    return Newer(min(number, MOST), number > MOST)
