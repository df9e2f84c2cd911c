"""Persona documents of a tenant: who has one, its revisions, which sessions follow it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Count

from ctxengine.ledger.models import PersonaRevision, SessionRow

MOST_REVISIONS = 100
MOST_PRINCIPALS = 500


@dataclass(frozen=True, slots=True)
class PersonaLine:
    """A principal, with the newest revision where one was saved."""

    principal: str
    revision: int
    """0: nothing was saved."""
    entries: int
    tokens: int
    note: str
    saved_by: str
    saved_at: datetime | None
    open_sessions: int


@dataclass(frozen=True, slots=True)
class RevisionLine:
    """One saved revision."""

    revision: int
    entries: tuple[str, ...]
    tokens: int
    difference: int
    """Tokens against the revision before."""
    note: str
    saved_by: str
    saved_at: datetime


def persona_lines(tenant_id: UUID) -> tuple[PersonaLine, ...]:
    """Principals with a document or an open session, by name; at most 500. Two queries."""
    sessions = SessionRow.objects.filter(tenant_id=tenant_id, state="open").exclude(principal="")
    counts = dict(
        sessions.values("principal")
        .annotate(n=Count("id"))
        .order_by("principal")
        .values_list("principal", "n")[:MOST_PRINCIPALS]
    )
    rows = (
        PersonaRevision.objects.filter(tenant_id=tenant_id)
        .order_by("principal", "-revision")
        .distinct("principal")[:MOST_PRINCIPALS]
    )
    lines = {row.principal: _line(row, counts.get(row.principal, 0)) for row in rows}
    for principal, sessions_open in counts.items():
        if principal not in lines:
            lines[principal] = PersonaLine(principal, 0, 0, 0, "", "", None, sessions_open)
    return tuple(lines[principal] for principal in sorted(lines))


def revision_lines(tenant_id: UUID, principal: str) -> tuple[RevisionLine, ...]:
    """The newest hundred revisions of a document, newest first. One query."""
    rows = list(
        PersonaRevision.objects.filter(tenant_id=tenant_id, principal=principal).order_by(
            "-revision"
        )[: MOST_REVISIONS + 1]
    )
    before = [row.tokens for row in rows[1:]] + [0] if rows else []
    return tuple(
        RevisionLine(
            revision=row.revision,
            entries=tuple(json.loads(row.entries)),
            tokens=row.tokens,
            difference=row.tokens - was,
            note=row.note,
            saved_by=row.saved_by,
            saved_at=row.saved_at,
        )
        for row, was in list(zip(rows, before, strict=True))[:MOST_REVISIONS]
    )


def principal_is_known(tenant_id: UUID, principal: str) -> bool:
    """Whether the principal has a document or a session. At most two queries."""
    return (
        PersonaRevision.objects.filter(tenant_id=tenant_id, principal=principal).exists()
        or SessionRow.objects.filter(tenant_id=tenant_id, principal=principal).exists()
    )


def _line(row: PersonaRevision, open_sessions: int) -> PersonaLine:
    return PersonaLine(
        principal=row.principal,
        revision=row.revision,
        entries=len(json.loads(row.entries)),
        tokens=row.tokens,
        note=row.note,
        saved_by=row.saved_by,
        saved_at=row.saved_at,
        open_sessions=open_sessions,
    )
