"""`people.erase`: a person's erasure as a job, for one who is in more sessions than a caller would wait for."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ctxengine.engine.canonical import sha256_hex
from ctxengine.ledger.models import Body, Job
from ctxengine.service.erase import erase_person
from ctxengine.service.jobs.context import JobContext
from ctxengine.service.jobs.enqueue import enqueue
from ctxengine.service.specs import Actor, ServiceError

KIND = "people.erase"
ERASED_AT_ONCE = 20
"""Sessions that a caller waits for; more make a job."""


def is_large(*, actor: Actor, principal: str) -> bool:
    """Whether erasing this person takes longer than a caller should wait."""
    rows = Body.objects.filter(
        tenant_id=actor.tenant_id, owner=principal, erased_at__isnull=True
    ).values("session_id")
    return rows.distinct()[: ERASED_AT_ONCE + 1].count() > ERASED_AT_ONCE


def erase_later(*, actor: Actor, principal: str, note: str) -> Job:
    """Ask for a person's erasure; where it is under way already, that job is given.

    Raises:
        ServiceError: `reason_required` (422) without a note.
    """
    if not note.strip():
        raise ServiceError(
            "reason_required", 422, "Say in `note` why this person's content is erased."
        )
    return enqueue(
        actor=actor,
        kind=KIND,
        arguments={"principal": principal, "note": note},
        subject=principal,
        single_flight=f"{KIND}:{sha256_hex(principal.encode('utf-8', 'surrogatepass'))}",
        cause=f"{actor.label}: {note}"[:300],
    )


def run(context: JobContext) -> dict[str, Any]:
    """Erase session by session; an attempt that follows another goes on with what is left."""

    def before_each(done: int, of: int) -> None:
        context.check()
        context.progress(f"session {done + 1} of {of}", 100 * done // of)

    given = context.arguments
    erased = erase_person(
        actor=context.actor,
        principal=given["principal"],
        note=given["note"],
        erasure=str(context.job.id),
        before_each=before_each,
    )
    context.note(f"Erased {erased.bodies} bodies in {erased.sessions} sessions.")
    return asdict(erased)
