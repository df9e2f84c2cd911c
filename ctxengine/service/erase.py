"""`POST people/{id}/erase`: a person's content leaves every session, and what was sent is still proven (design 4).

Session by session, each in a transaction of its own: one that breaks off in the middle is simply done again, and goes on with
what is left. Bodies lose bytes and salt and leave a tombstone that the chain still verifies. Before they go, the digests that
recorded requests rest on are kept; they are rendered before the session's lock is taken. Open runs of the sessions end, since
what they stand on is gone. Only a plan that carried the person's memory snapshot is followed by one without it: a plan that
holds nothing of theirs keeps its epoch and its bytes. A persona is a document of its own and is edited, not erased.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

from django.db import transaction

from ctxengine.engine.events import EventType
from ctxengine.engine.trust.model_view import model_view
from ctxengine.ledger.models import (
    AuditEntry,
    Body,
    ClosedTurn,
    Event,
    SessionRow,
    SnapshotTrace,
)
from ctxengine.service.audit import record_audit
from ctxengine.service.children_without_name import (
    nameless_children_of,
)
from ctxengine.service.plan_specs import PersonErased
from ctxengine.service.session_erasure import Wanted, take_content
from ctxengine.service.snapshots import fence
from ctxengine.service.specs import Actor, ServiceError

BeforeEach = Callable[[int, int], None]
"""(sessions done, sessions in all)."""


def erase_person(
    *,
    actor: Actor,
    principal: str,
    note: str,
    erasure: str = "",
    before_each: BeforeEach | None = None,
) -> PersonErased:
    """Erase a principal's content from all sessions of the tenant. Doing it again erases what is left and what has come since.

    Args:
        erasure: names this erasure, so that one which goes on after it broke off counts what was done before; left out: the
            caller's idempotency key, or a new name.
        before_each: called before each session's turn; may break off by raising.

    Raises:
        ServiceError: `reason_required` (422) without a note; `not_found` (404) where nothing was ever of this person;
            `stale_head` (409) when a session is written to so busily that its turn never came.
    """
    if not note.strip():
        raise ServiceError(
            "reason_required", 422, "Say in `note` why this person's content is erased."
        )
    if not _is_known(actor, principal):
        raise ServiceError(
            "not_found", 404, "No session and no content of this person is known; check the id."
        )
    erasure = erasure or actor.idempotency_key or uuid4().hex
    _record_once(actor, "person.erasure_begun", principal, note, {"erasure": erasure})
    done = []
    told = {"erasure": erasure}
    wanted = Wanted(principal, EventType.PERSON_ERASED, told, "a person's content was erased")
    sessions = _sessions(actor, principal)
    for number, session in enumerate(sessions):
        if before_each is not None:
            before_each(number, len(sessions))
        done.append(take_content(actor=actor, session_id=session, wanted=wanted))
    marked = _marked(actor, principal, erasure)
    # A session that held nothing of theirs has no marker; its run ended all the same.
    unmarked = sum(runs for bodies, runs in done if not bodies)
    erased = PersonErased(
        sessions=len(marked),
        bodies=sum(bodies for bodies, _ in marked),
        runs_ended=sum(runs for _, runs in marked) + unmarked,
    )
    with transaction.atomic():
        fence(actor.tenant_id, principal)
        ClosedTurn.objects.filter(tenant_id=actor.tenant_id, principal=principal).delete()
        figures = {
            "sessions": erased.sessions,
            "bodies": erased.bodies,
            "runs": erased.runs_ended,
        }
        _record_once(actor, "person.erased", principal, note, figures | {"erasure": erasure})
    return erased


def _record_once(
    actor: Actor, action: str, principal: str, note: str, after: dict[str, Any]
) -> None:
    """An erasure that goes on has begun already, and one whose answer was lost has ended."""
    target = model_view(principal)
    entries = AuditEntry.objects.filter(tenant_id=actor.tenant_id, action=action, target=target)
    if not entries.filter(after__erasure=after["erasure"]).exists():
        record_audit(actor=actor, action=action, target=target, reason=note, after=after)


def _marked(actor: Actor, principal: str, erasure: str) -> list[tuple[int, int]]:
    """(bodies, runs) of every session that this erasure has been through, in this attempt or an earlier one."""
    gone = Body.objects.filter(
        tenant_id=actor.tenant_id, owner=principal, erased_at__isnull=False
    ).values("session_id")
    markers = Event.objects.filter(
        tenant_id=actor.tenant_id,
        session_id__in=gone,
        type=EventType.PERSON_ERASED,
        payload__erasure=erasure,
    )
    return [(told["bodies"], told["runs"]) for told in markers.values_list("payload", flat=True)]


def _is_known(actor: Actor, principal: str) -> bool:
    """Whether anything was ever of this person: whoever was erased before still is."""
    tenant = {"tenant_id": actor.tenant_id}
    return (
        Body.objects.filter(**tenant, owner=principal).exists()
        or SessionRow.objects.filter(**tenant, principal=principal).exists()
        or SnapshotTrace.objects.filter(**tenant, principal=principal).exists()
    )


def _sessions(actor: Actor, principal: str) -> list[UUID]:
    tenant = {"tenant_id": actor.tenant_id}
    bodies = Body.objects.filter(**tenant, owner=principal, erased_at__isnull=True)
    found = set(bodies.values_list("session_id", flat=True).distinct())
    found |= set(
        SnapshotTrace.objects.filter(
            **tenant, principal=principal, withdrawn_at__isnull=True
        ).values_list("session_id", flat=True)
    )
    return sorted(found | nameless_children_of(actor.tenant_id, principal))
