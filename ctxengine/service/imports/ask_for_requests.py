"""Ask for the job that rebuilds what an import only outlined; it starts once the import is committed (design 10)."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from ctxengine.ledger.models import Job
from ctxengine.service.jobs.enqueue import enqueue
from ctxengine.service.specs import Actor

KIND = "transcript.reconstruct"
_SUBJECT_CHARS = 200


def ask_for_requests(*, actor: Actor, name: str, sessions: Sequence[UUID]) -> Job:
    """Write the job, in the transaction of the import.

    Args:
        name: what the file is called.
        sessions: those with outlined requests.
    """
    return enqueue(
        actor=actor,
        kind=KIND,
        arguments={"sessions": [str(session) for session in sessions]},
        session_id=sessions[0] if len(sessions) == 1 else None,
        subject=name[:_SUBJECT_CHARS],
        cause="import of a long transcript",
    )
