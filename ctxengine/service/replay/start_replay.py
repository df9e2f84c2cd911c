"""Asking for a replay of a session: the row, its job, and the way to more cells."""

from __future__ import annotations

from uuid import uuid4

from django.db import transaction

from ctxengine.engine.events import EventType
from ctxengine.ledger.models import Event, ReplayRow, SessionRow
from ctxengine.service.access import session_of
from ctxengine.service.audit import record_audit
from ctxengine.service.clock import utc_now
from ctxengine.service.jobs.enqueue import enqueue
from ctxengine.service.replay.engines import lab_engine
from ctxengine.service.replay.from_ledger import nothing_to_replay
from ctxengine.service.replay.models import lab_model
from ctxengine.service.replay.wanted import MOST_CELLS, ReplayWanted
from ctxengine.service.specs import Actor, ServiceError

KIND = "replay.run"


def start_replay(*, actor: Actor, wanted: ReplayWanted, cause: str = "") -> ReplayRow:
    """Ask for a replay; a worker fills its cells one by one.

    Raises:
        ServiceError: 404 for an unknown session; 409 `nothing_to_replay`;
            422 `unknown_engine`, `unknown_model`, `too_many_cells`.
    """
    session = session_of(actor, wanted.session)
    engines = list(dict.fromkeys(lab_engine(name).name for name in wanted.engines))
    models = list(dict.fromkeys(str(lab_model(name)) for name in wanted.models))
    if len(engines) * len(models) > MOST_CELLS:
        raise ServiceError(
            "too_many_cells",
            422,
            f"{len(engines)} engines on {len(models)} models are {len(engines) * len(models)} cells; a replay has at most "
            f"{MOST_CELLS}. Ask for several replays.",
        )
    if not _was_asked(session):
        raise nothing_to_replay()
    row = ReplayRow(
        tenant_id=actor.tenant_id,
        id=uuid4(),
        session_id=session.id,
        title=session.title,
        engines=engines,
        targets=models,
        settings=wanted.settings.model_dump(mode="json"),
        asked_by=actor.label,
        created_at=utc_now(),
    )
    with transaction.atomic():
        record_audit(
            actor=actor,
            action="replay.started",
            target=str(session.id),
            reason=cause,
            after={"replay": str(row.id), "engines": engines, "models": models},
        )
        job = enqueue(
            actor=actor,
            kind=KIND,
            arguments={"replay": str(row.id)},
            session_id=session.id,
            subject=f"{len(engines) * len(models)} cells of {session.title or session.id}"[:200],
            cause=cause,
        )
        row.job_id = job.id
        row.save(force_insert=True)
    return row


def _was_asked(session: SessionRow) -> bool:
    """Whether a model was asked in the session, by us or in what it was imported from."""
    types = (EventType.REQUEST_STARTED.value, EventType.RESPONSE_COMPLETED.value)
    rows = Event.objects.filter(tenant_id=session.tenant_id, session_id=session.id)
    return rows.filter(type__in=types).exists()
