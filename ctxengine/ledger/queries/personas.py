"""Persona documents of a tenant: who has one, its revisions, which sessions follow it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Count

from ctxengine.ledger.models import PersonaRevision, SessionRow
from ctxengine.ledger.queries.paging import Page, every_line

MOST_REVISIONS = 100


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


def persona_lines(tenant_id: UUID, *, after: str = "", size: int = 50) -> Page[PersonaLine]:
    """Principals with a document or an open session, by name as the database orders names. Three queries.

    Args:
        after: the last principal seen; those behind it are given.
    """
    sessions = SessionRow.objects.filter(tenant_id=tenant_id, state="open")
    revisions = PersonaRevision.objects.filter(tenant_id=tenant_id)
    named = [
        rows.filter(principal__gt=after).values_list("principal") for rows in (sessions, revisions)
    ]
    names = [name for (name,) in named[0].union(named[1]).order_by("principal")[: size + 1]]
    shown = names[:size]
    counts = dict(
        sessions.filter(principal__in=shown)
        .order_by()
        .values("principal")
        .annotate(n=Count("id"))
        .values_list("principal", "n")
    )
    newest = revisions.filter(principal__in=shown).order_by("principal", "-revision")
    known = {row.principal: row for row in newest.distinct("principal")}
    lines = tuple(
        _line(known[name], counts.get(name, 0))
        if name in known
        else PersonaLine(name, 0, 0, 0, "", "", None, counts.get(name, 0))
        for name in shown
    )
    return Page(lines, shown[-1] if len(names) > size else "")


def every_persona(tenant_id: UUID) -> Iterator[PersonaLine]:
    """All principals, read in pages, for exports."""
    return every_line(lambda after: persona_lines(tenant_id, after=after, size=200))


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
