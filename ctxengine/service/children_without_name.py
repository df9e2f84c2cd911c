"""Child sessions from before children inherited their parent's principal: whose content they hold (design 4).

Nothing in their own rows says it, so that it is read off the run they worked for, up to the session that names a person.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from django.db.models import QuerySet

from ctxengine.ledger.models import Body, PlanRow, RunRow, SessionRow

NOBODY = ""
"""The principal of a session that named none, and the owner of its bodies."""


def nameless_children_of(tenant_id: UUID, principal: str) -> set[UUID]:
    """Sessions without a principal that worked for this person's runs, directly or through others, and still hold content."""
    sessions = SessionRow.objects.filter(tenant_id=tenant_id)
    found: set[UUID] = set()
    parents = set(sessions.filter(principal=principal).values_list("id", flat=True))
    while parents:
        runs = RunRow.objects.filter(tenant_id=tenant_id, session_id__in=parents)
        children = sessions.filter(principal=NOBODY, parent_run_id__in=runs.values("id"))
        parents = set(children.values_list("id", flat=True)) - found
        found |= parents
    return {session for session in found if nameless_bodies(tenant_id, session).exists()}


def owners_of(session: SessionRow, principal: str) -> tuple[str, ...]:
    """The owners whose bodies in this session are the person's: themselves, and nobody where it worked for a run of theirs."""
    worked_for = session
    seen: set[UUID] = set()
    while worked_for.principal == NOBODY and worked_for.id not in seen:
        seen.add(worked_for.id)
        parent = _parent_of(worked_for)
        if parent is None:
            return (principal,)
        worked_for = parent
    nameless = worked_for is not session and worked_for.principal == principal
    return (principal, NOBODY) if nameless else (principal,)


def owned_bodies(session: SessionRow, owners: Iterable[str]) -> QuerySet[Body]:
    """What is left in this session of these owners' content."""
    return remaining_bodies(session).filter(owner__in=tuple(owners))


def remaining_bodies(session: SessionRow) -> QuerySet[Body]:
    """What is left of everybody's content. A plan kept without what was erased of it is no content."""
    kept = PlanRow.objects.filter(
        tenant_id=session.tenant_id, session_id=session.id, redacted_body_id__isnull=False
    )
    return Body.objects.filter(
        tenant_id=session.tenant_id,
        session_id=session.id,
        erased_at__isnull=True,
    ).exclude(id__in=kept.values("redacted_body_id"))


def nameless_bodies(tenant_id: UUID, session_id: UUID) -> QuerySet[Body]:
    """What is left in a session that belongs to nobody by name."""
    return owned_bodies(SessionRow(tenant_id=tenant_id, id=session_id), (NOBODY,))


def _parent_of(session: SessionRow) -> SessionRow | None:
    if session.parent_run_id is None:
        return None
    run = RunRow.objects.filter(tenant_id=session.tenant_id, id=session.parent_run_id).first()
    if run is None:
        return None
    return SessionRow.objects.filter(tenant_id=session.tenant_id, id=run.session_id).first()
