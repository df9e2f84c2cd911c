"""Imported files and their repair reports."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from ctxengine.ledger.models import ImportRow
from ctxengine.ledger.queries.sessions import session_titles


@dataclass(frozen=True, slots=True)
class ImportLine:
    """One file of the list."""

    sha256: str
    name: str
    format: str
    sessions: tuple[UUID, ...]
    items_in: int
    items_kept: int
    repairs: int
    """Lines of the report."""
    created_at: datetime

    @property
    def items_reported(self) -> int:
        """Items that the report accounts for instead of the ledger."""
        return self.items_in - self.items_kept


@dataclass(frozen=True, slots=True)
class RepairLine:
    """One line of a repair report."""

    action: str
    code: str
    where: str
    detail: str
    items: int


@dataclass(frozen=True, slots=True)
class ImportDetail:
    """One file with its report."""

    line: ImportLine
    report: tuple[RepairLine, ...]
    titles: dict[UUID, str]


def list_imports(tenant_id: UUID, *, limit: int = 500) -> tuple[ImportLine, ...]:
    """Imported files, newest first. One query."""
    rows = ImportRow.objects.filter(tenant_id=tenant_id).order_by("-created_at", "sha256")
    return tuple(_line(row) for row in rows[:limit])


def import_detail(tenant_id: UUID, sha256: str) -> ImportDetail | None:
    """One file with its report, or None. Two queries."""
    row = ImportRow.objects.filter(tenant_id=tenant_id, sha256=sha256).first()
    if row is None:
        return None
    line = _line(row)
    return ImportDetail(
        line,
        tuple(_repair(entry) for entry in row.report),
        session_titles(tenant_id, set(line.sessions)),
    )


def _line(row: ImportRow) -> ImportLine:
    return ImportLine(
        sha256=row.sha256,
        name=row.name,
        format=row.format,
        sessions=tuple(UUID(str(session)) for session in row.sessions),
        items_in=row.items_in,
        items_kept=row.items_kept,
        repairs=len(row.report),
        created_at=row.created_at,
    )


def _repair(entry: dict[str, Any]) -> RepairLine:
    return RepairLine(
        str(entry.get("action", "")),
        str(entry.get("code", "")),
        str(entry.get("where", "")),
        str(entry.get("detail", "")),
        int(entry.get("items", 0)),
    )
