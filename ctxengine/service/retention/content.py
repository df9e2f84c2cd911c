"""Content of sessions that have passed their keeping time: which they are, and taking it away one by one."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import InterfaceError, OperationalError
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from ctxengine.engine.events import EventType
from ctxengine.ledger.models import Body, Event, ImportRow, PlanRow, SessionRow
from ctxengine.service.session_erasure import Wanted, take_content
from ctxengine.service.specs import Actor, ServiceError

_log = logging.getLogger(__name__)
_NOTE = "content has passed its keeping time"


class LeftBehind(Exception):
    """Sessions that could not be taken from; the others were."""

    def __init__(self, sessions: list[UUID]) -> None:
        """Name them.

        Args:
            sessions: their ids, oldest first.
        """
        self.sessions = sessions
        named = ", ".join(str(session) for session in sessions[:10])
        super().__init__(f"{len(sessions)} sessions could not be taken from: {named}.")


def before(days: int) -> Any:
    """The moment so many days ago, by the database's clock."""
    return Now() - timedelta(days=days)


def lately_imported(tenant_id: UUID, days: int) -> QuerySet[SessionRow]:
    """Sessions that came with a file since: their moments are the file's, their keeping time begins with the import."""
    files = ImportRow.objects.filter(
        tenant_id=tenant_id, sha256=OuterRef("import_sha256"), created_at__gte=before(days)
    )
    return SessionRow.objects.filter(Exists(files), tenant_id=tenant_id)


def idle_sessions(tenant_id: UUID, days: int) -> QuerySet[SessionRow]:
    """Idle sessions that hold content: neither a plan kept without what was erased of it, nor what an expiry wrote itself."""
    kept = PlanRow.objects.filter(
        tenant_id=OuterRef("tenant_id"),
        session_id=OuterRef("session_id"),
        redacted_body_id=OuterRef("id"),
    )
    content = Body.objects.filter(
        ~Exists(kept),
        tenant_id=OuterRef("tenant_id"),
        session_id=OuterRef("id"),
        erased_at__isnull=True,
    )
    imported = lately_imported(tenant_id, days).filter(id=OuterRef("id"))
    return SessionRow.objects.filter(
        ~_untouched_since_it_expired(),
        Exists(content),
        ~Exists(imported),
        tenant_id=tenant_id,
        active_at__lt=before(days),
    )


def _untouched_since_it_expired() -> Q:
    """Whether the log ends with an expiry: what it wrote itself, a plan or results of calls that it cut off, is no content."""
    of_session = Event.objects.filter(tenant_id=OuterRef("tenant_id"), session_id=OuterRef("id"))
    expired = of_session.filter(type=EventType.CONTENT_EXPIRED)
    last = OuterRef("last_sequence")
    turned = expired.filter(sequence=last - 1, payload__snapshot=True)
    rotated = of_session.filter(sequence=last, type=EventType.EPOCH_ROTATED)
    return Q(Exists(expired.filter(sequence=last))) | Q(Exists(turned), Exists(rotated))


def remove_content(actor: Actor, days: int) -> Iterator[int]:
    """Take the content of idle sessions, oldest first; one that somebody came back to waits for another day.

    Raises:
        LeftBehind: at the end, where some could not be taken from.
    """

    def still(session_id: UUID) -> bool:
        return idle_sessions(actor.tenant_id, days).filter(id=session_id).exists()

    wanted = Wanted(None, EventType.CONTENT_EXPIRED, {"days": days}, _NOTE, still)
    idle = idle_sessions(actor.tenant_id, days).order_by("active_at", "id")
    failed = []
    for session_id in list(idle.values_list("id", flat=True)):
        if not still(session_id):
            continue
        try:
            take_content(actor=actor, session_id=session_id, wanted=wanted)
        except (OperationalError, InterfaceError):
            raise
        except Exception as error:
            if not (isinstance(error, ServiceError) and error.code == "stale_head"):
                _log.exception("content of session %s could not be taken away", session_id)
                failed.append(session_id)
            continue
        yield 1
    if failed:
        raise LeftBehind(failed)
