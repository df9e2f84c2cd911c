"""The audit log: who did what, to what, why, with before and after."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from ctxengine.ledger.models import AuditEntry
from ctxengine.ledger.queries.paging import Cursor, Page, every_line, parse_cursor


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """What the log is narrowed to."""

    action: str = ""
    actor: str = ""
    """A whole label such as `user:mara`."""
    target: str = ""
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class AuditLine:
    """One act."""

    id: UUID
    at: datetime
    actor: str
    action: str
    target: str
    reason: str
    before: dict[str, Any]
    after: dict[str, Any]
    changes: tuple[tuple[str, Any, Any], ...]
    """Fields that differ: name, before, after."""

    @property
    def session_id(self) -> UUID | None:
        """The session that was acted on, where the target is a whole id and the act one on a session."""
        text = str(self.after.get("session") or self.target)
        try:
            return UUID(text)
        except ValueError:
            return None


@dataclass(frozen=True, slots=True)
class AuditQuery:
    """A filter with a place in its list."""

    where: AuditFilter = field(default_factory=AuditFilter)
    after: Cursor | None = None
    size: int = 50


def list_audit(tenant_id: UUID, query: AuditQuery) -> Page[AuditLine]:
    """One page of acts, the newest first. One query."""
    rows = _narrowed(tenant_id, query.where)
    if query.after:
        rows = rows.filter(query.after.older("at"))
    found = list(rows.order_by("-at", "-id")[: query.size + 1])
    shown = found[: query.size]
    after = Cursor(shown[-1].at, shown[-1].id).text() if len(found) > query.size else ""
    return Page(tuple(map(_line, shown)), after)


def every_audit(tenant_id: UUID, where: AuditFilter) -> Iterator[AuditLine]:
    """All acts of a filter, read in pages, for exports."""
    return every_line(
        lambda after: list_audit(
            tenant_id, AuditQuery(where, size=200, after=parse_cursor(after) if after else None)
        )
    )


def audit_names(tenant_id: UUID, name: str) -> tuple[str, ...]:
    """Actions or actors that occur, for the filter. One query.

    Args:
        tenant_id: the tenant.
        name: `action` or `actor`.
    """
    rows = AuditEntry.objects.filter(tenant_id=tenant_id).order_by(name)
    return tuple(rows.values_list(name, flat=True).distinct()[:200])


def _narrowed(tenant_id: UUID, where: AuditFilter) -> QuerySet[AuditEntry]:
    rows = AuditEntry.objects.filter(tenant_id=tenant_id)
    exact = {"action": where.action, "actor": where.actor, "target": where.target}
    rows = rows.filter(**{name: value for name, value in exact.items() if value})
    if where.since:
        rows = rows.filter(at__gte=where.since)
    if where.until:
        rows = rows.filter(at__lt=where.until)
    return rows


def _line(row: AuditEntry) -> AuditLine:
    names = dict.fromkeys([*row.before, *row.after])
    changes = tuple(
        (name, row.before.get(name), row.after.get(name))
        for name in names
        if row.before.get(name) != row.after.get(name)
    )
    return AuditLine(
        row.id,
        row.at,
        row.actor,
        row.action,
        row.target,
        row.reason,
        row.before,
        row.after,
        changes,
    )
