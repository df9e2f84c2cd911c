"""Imported files and their repair reports."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q

from ctxengine.ledger.models import ImportRow, Job, JobState
from ctxengine.ledger.queries.paging import BadCursor, Page, every_line
from ctxengine.ledger.queries.sessions import session_titles

_OVER = frozenset({JobState.DONE, JobState.FAILED, JobState.CANCELLED})


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
    raw: str
    """Text that was set aside, masked, in the model's view; empty where the line is about none."""
    raw_chars: int
    """Characters it had in the file; what is kept of it may be less."""


@dataclass(frozen=True, slots=True)
class RepairCount:
    """How many lines of a report did the same."""

    action: str
    code: str
    lines: int


@dataclass(frozen=True, slots=True)
class ImportJob:
    """An upload on its way through a worker."""

    id: UUID
    name: str
    rehearsed: bool
    state: str
    phase: str
    percent: int
    status: str
    """`imported` or `unchanged`; empty until it is done."""
    sha256: str
    format: str
    items_in: int
    items_kept: int
    repairs: tuple[RepairCount, ...]
    problem: str
    """Why it failed, or why it has to begin anew."""

    @property
    def over(self) -> bool:
        """Whether nothing more will happen by itself."""
        return self.state in _OVER


@dataclass(frozen=True, slots=True)
class ImportDetail:
    """One file with its report."""

    line: ImportLine
    report: tuple[RepairLine, ...]
    titles: dict[UUID, str]


def list_imports(tenant_id: UUID, *, after: str = "", size: int = 50) -> Page[ImportLine]:
    """Imported files, newest first. One query, two behind a cursor.

    Args:
        after: hash of the last file seen; the page behind it is given.

    Raises:
        BadCursor: no file has that hash.
    """
    rows = ImportRow.objects.filter(tenant_id=tenant_id).order_by("-created_at", "sha256")
    if after:
        last = ImportRow.objects.filter(tenant_id=tenant_id, sha256=after[:100]).first()
        if last is None:
            raise BadCursor("The page cursor is not valid. Start from the first page.")
        same = Q(created_at=last.created_at, sha256__gt=last.sha256)
        rows = rows.filter(Q(created_at__lt=last.created_at) | same)
    found = [_line(row) for row in rows[: size + 1]]
    shown = tuple(found[:size])
    return Page(shown, shown[-1].sha256 if len(found) > size else "")


def every_import(tenant_id: UUID) -> Iterator[ImportLine]:
    """All imported files, read in pages, for exports."""
    return every_line(lambda after: list_imports(tenant_id, after=after, size=200))


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


def import_job(tenant_id: UUID, job_id: UUID) -> ImportJob | None:
    """A job that imports an upload, or None. One query."""
    row = Job.objects.filter(tenant_id=tenant_id, id=job_id, kind="transcript.import").first()
    if row is None:
        return None
    result = row.result
    return ImportJob(
        id=row.id,
        name=row.subject,
        rehearsed=bool(row.arguments.get("dry_run")),
        state=row.state,
        phase=row.phase,
        percent=row.percent,
        status=result.get("status", ""),
        sha256=result.get("sha256", ""),
        format=result.get("format", ""),
        items_in=result.get("items_in", 0),
        items_kept=result.get("items_kept", 0),
        repairs=tuple(RepairCount(**entry) for entry in result.get("repairs", ())),
        problem=row.error.get("detail", ""),
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
        str(entry.get("raw", "")),
        int(entry.get("raw_chars", len(entry.get("raw", "")))),
    )
