"""Everything that is kept of one person, as records that can be read without this product (design 4: bodies have owners)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

from ctxengine.engine.redaction.redact import redact
from ctxengine.engine.trust.model_view import model_view
from ctxengine.ledger.models import Event, PersonaRevision, SessionRow
from ctxengine.service.audit import record_audit
from ctxengine.service.children_without_name import nameless_children_of, owned_bodies, owners_of
from ctxengine.service.specs import Actor, ServiceError
from ctxengine.service.wiring import log_of

Record = dict[str, Any]

_CHUNK = 200


def export_person(
    *, actor: Actor, principal: str, note: str, raw: bool = False
) -> Iterator[Record]:
    """The records of a principal, oldest session first: `persona`, `session`, `content`.

    What was erased is gone and does not appear. The export stands in the audit log before the first record is given.

    Args:
        raw: leave secrets in the content as they are; otherwise they are masked, as in every export.

    Raises:
        ServiceError: `reason_required` (422) without a note; `not_found` (404) where nothing is kept of this person.
    """
    if not note.strip():
        raise ServiceError(
            "reason_required", 422, "Say in `note` why this person's data is exported."
        )
    sessions = _sessions(actor, principal)
    revisions = PersonaRevision.objects.filter(tenant_id=actor.tenant_id, principal=principal)
    if not sessions and not revisions.exists():
        raise ServiceError("not_found", 404, "Nothing is kept of this person; check the id.")
    record_audit(
        actor=actor,
        action="person.exported",
        target=model_view(principal),
        reason=note,
        after={"sessions": len(sessions), "raw": raw},
    )
    return _records(sessions, list(revisions.order_by("revision")), principal, raw=raw)


def _sessions(actor: Actor, principal: str) -> list[SessionRow]:
    rows = SessionRow.objects.filter(tenant_id=actor.tenant_id)
    nameless = nameless_children_of(actor.tenant_id, principal)
    return list(
        (rows.filter(principal=principal) | rows.filter(id__in=nameless)).order_by(
            "created_at", "id"
        )
    )


def _records(
    sessions: list[SessionRow], revisions: list[PersonaRevision], principal: str, *, raw: bool
) -> Iterator[Record]:
    for revision in revisions:
        yield {
            "record": "persona",
            "revision": revision.revision,
            "saved_at": revision.saved_at.isoformat(),
            "entries": json.loads(revision.entries),
        }
    for session in sessions:
        yield {
            "record": "session",
            "session": str(session.id),
            "created_at": session.created_at.isoformat(),
            "engine": session.engine,
            "model": f"{session.provider}/{session.model}",
        }
        yield from _contents(session, principal, raw=raw)


def _contents(session: SessionRow, principal: str, *, raw: bool) -> Iterator[Record]:
    bodies = owned_bodies(session, owners_of(session, principal))
    events = Event.objects.filter(
        tenant_id=session.tenant_id, session_id=session.id, body_id__in=bodies.values("id")
    ).order_by("sequence")
    log = log_of(session)
    rows = events.iterator(chunk_size=_CHUNK)
    while portion := list(islice(rows, _CHUNK)):
        texts = log.texts({str(event.body_id) for event in portion})
        for event in portion:
            text = texts.get(str(event.body_id))
            if text is None:
                continue
            yield {
                "record": "content",
                "session": str(session.id),
                "sequence": event.sequence,
                "type": event.type,
                "recorded_at": event.recorded_at.isoformat(),
                "text": text if raw else redact(text).text,
            }
