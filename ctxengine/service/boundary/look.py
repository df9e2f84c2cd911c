"""A session as the boundary engine sees it before a request, read at one head."""

from __future__ import annotations

from typing import NamedTuple

from ctxengine.engine.boundary.checkpoint import contract_of, in_force
from ctxengine.engine.boundary.prepare import Situation, situation_of
from ctxengine.engine.compaction.acts import Marks
from ctxengine.engine.events import EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.legs.leg import Leg
from ctxengine.engine.log.records import Head
from ctxengine.engine.ports import SessionLog
from ctxengine.engine.standing import history_acts
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import RunRow, SessionRow
from ctxengine.service.warm import plan_of_session
from ctxengine.service.wiring import counter_of, log_of, session_facts


class Look(NamedTuple):
    """One look."""

    head: Head
    situation: Situation


def look(session: SessionRow, run: RunRow | None, *, log: PostgresLog | None = None) -> Look:
    """The session now.

    Args:
        run: the open run; without one everything is settled.
    """
    log = log or log_of(session)
    head = log.head()
    session.refresh_from_db(fields=["epoch", "provider", "model", "act_sequence"])
    plan = plan_of_session(session, log)
    below = EventSeq(head.sequence + 1)
    settings = run.settings if run is not None else {}
    if run is not None and run.seed_event_sequence:
        below = EventSeq(run.seed_event_sequence)
    return Look(
        head,
        situation_of(
            log,
            session_facts(session, plan),
            counter=counter_of(plan.provider, plan.model),
            marks=marks_of(log),
            below=below,
            content_head=EventSeq(max(head.content_sequence, below - 1)),
            factor_millionths=settings.get("factor_millionths", 1_000_000),
            opaque_tokens=settings.get("opaque_tokens", 0),
            legs=[Leg.model_validate(leg) for leg in settings.get("legs", ())],
        ),
    )


def marks_of(log: SessionLog) -> Marks:
    """An operator's acts in force."""
    return history_acts(log).marks


def checkpoint_in_force(log: SessionLog, run: RunRow) -> int | None:
    """The event with the checkpoint that a run's next step stands on; None where the whole history stands."""
    if log.newest(EventType.COMPACTED) is None:
        return None
    session = SessionRow.objects.get(tenant_id=run.tenant_id, id=run.session_id)
    plan = plan_of_session(session, log_of(session))
    found = in_force(
        log,
        contract=contract_of(plan),
        marks=marks_of(log),
        below=run.seed_event_sequence or 1,
    )
    return found.sequence if found is not None else None
