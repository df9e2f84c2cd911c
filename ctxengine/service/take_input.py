"""`POST runs/{id}/input`: a late user message (design 5)."""

from __future__ import annotations

from uuid import UUID

from ctxengine.engine.derive import Derivation
from ctxengine.engine.events import EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.ledger.models import RunRow, SessionRow
from ctxengine.service.access import head_of_open, open_run_of, session_of
from ctxengine.service.child_seed import message_drafts
from ctxengine.service.clock import utc_now
from ctxengine.service.races import redo_once
from ctxengine.service.refusals import refusing
from ctxengine.service.specs import Actor, ResultsTaken, TakeInput
from ctxengine.service.start_run import refuse_empty
from ctxengine.service.wiring import counter_of, log_of


def take_input(*, actor: Actor, run_id: UUID, spec: TakeInput) -> ResultsTaken:
    """Append user input to an open run; it stays last until the model answers it.

    Raises:
        ServiceError: `run_ended` (409); `invalid_content` (422).
    """
    run = open_run_of(actor, run_id)
    session = session_of(actor, run.session_id)
    return redo_once(lambda: _take(actor, session, run, spec))


def _take(actor: Actor, session: SessionRow, run: RunRow, spec: TakeInput) -> ResultsTaken:
    log, now = log_of(session), utc_now()
    with refusing():
        head = head_of_open(log, session, run)
        drafts = message_drafts(
            log,
            session,
            spec.message,
            type=EventType.INPUT_RECEIVED,
            sequence=EventSeq(head.sequence + 1),
            derivation=Derivation(counter_of(session.provider, session.model)),
            run=str(run.id),
            payload={"retain": spec.retain} if spec.retain else {},
        )
        refuse_empty(drafts[0].items, spec.message.format)
        log.append(drafts, expected=head.sequence, at=now, key=actor.idempotency_key)
    left = [call.wire_call_id for call in log.open_calls() if call.run == str(run.id)]
    return ResultsTaken(next="tools" if left else "assemble", open_calls=left)
