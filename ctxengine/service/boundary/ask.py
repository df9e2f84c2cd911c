"""Before a request of a `boundary` session: have a due compaction made first, or refuse with the reason (boundary spec).

Nothing is sent from here. A failure stops preparation: it is told again while its history is unchanged, never worked around.
"""

from __future__ import annotations

from uuid import uuid4

from django.db import transaction

from ctxengine.engine.boundary.failures import (
    CompactionError,
    ContextLengthError,
    Held,
    held_back,
    told_again,
)
from ctxengine.engine.boundary.prepare import Situation, work_of
from ctxengine.engine.boundary.work import Work
from ctxengine.engine.events import EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.ledger.models import Job, RequestRow, RunRow, SessionRow
from ctxengine.service.boundary.install import begun, finish
from ctxengine.service.boundary.look import look
from ctxengine.service.boundary.ports import reachable, uncallable
from ctxengine.service.boundary.wanted import KIND, WantedCheckpoint, flight_key
from ctxengine.service.clock import utc_now
from ctxengine.service.jobs.enqueue import enqueue, unfinished
from ctxengine.service.specs import Actor, ServiceError
from ctxengine.service.summaries.ask import AnswerLater
from ctxengine.service.wiring import log_of, renderer_of

_LATEST = 50


def prepare_boundary(*, actor: Actor, session: SessionRow, run: RunRow) -> None:
    """See to it that the run's next request may be built.

    Raises:
        AnswerLater: a compaction is made first.
        ServiceError: 409 `compaction_failed` with the reason and whether trying again may help; 409
            `context_length_exceeded` where nothing is left to compact.
    """
    if session.engine != "boundary":
        return
    log = log_of(session)
    head = log.head()
    if _answered(run, head.content_sequence, head.act_sequence) or log.open_calls():
        return
    standing = unfinished(actor.tenant_id, flight_key(session.id))
    if standing is not None:
        raise AnswerLater(standing)
    situation = look(session, run, log=log).situation
    try:
        _usable(situation)
        if not situation.due:
            return
        work = work_of(situation, renderer_of(session.provider))
        if work is None:
            _refuse_too_long(situation)
            return
        _refuse_uncallable(session, run, situation, work)
        _refuse_held(situation, work)
    except CompactionError as error:
        raise refused(error) from error
    except ContextLengthError as error:
        raise too_long(error) from error
    raise AnswerLater(_enqueued(actor, session, run, work))


def refused(error: CompactionError, *, again_s: float | None = None) -> ServiceError:
    """The refusal that a failed compaction is."""
    extra: dict[str, object] = {
        "reason": error.reason,
        "retryable": error.retryable,
        "remedy": error.remedy,
    }
    wait = again_s if again_s is not None else error.retry_after_s
    if wait is not None:
        extra["retry_after_s"] = max(0, round(wait))
    return ServiceError("compaction_failed", 409, error.message, **extra)


def too_long(error: ContextLengthError) -> ServiceError:
    """The refusal of a request that does not fit."""
    return ServiceError("context_length_exceeded", 409, error.message, **error.numbers)


def _answered(run: RunRow, content: int, act: int) -> bool:
    """Whether this step has its request already: then it goes out again as it is."""
    return RequestRow.objects.filter(
        tenant_id=run.tenant_id, run_id=run.id, content_sequence=content, act_sequence=act
    ).exists()


def _usable(situation: Situation) -> None:
    """A saved window stands only while it can be opened, sent and counted."""
    point = situation.checkpoint
    if point is None or point.kind != "native":
        return
    if not situation.projection.native:
        raise CompactionError("window_unreadable")
    if not point.inline:
        reachable(situation.session.plan.provider)


def _refuse_too_long(situation: Situation) -> None:
    if situation.tokens > situation.fixed.usable:
        raise ContextLengthError(
            situation.tokens,
            situation.fixed.usable,
            source="estimated",
            remedy="Nothing settled is left to compact: end the run, or choose a larger window.",
        )


def _refuse_uncallable(session: SessionRow, run: RunRow, situation: Situation, work: Work) -> None:
    """A compaction that nobody can be asked for is a failed one: the log says so, once for an unchanged history."""
    error = uncallable(work, native=situation.native)
    if error is None:
        return
    operation, name = str(uuid4()), str(run.id)
    drafts = [
        begun(operation=operation, work=work, native=situation.native, run=name),
        finish(operation=operation, outcome="failed", prefix=work.prefix, run=name, error=error),
    ]
    log = log_of(session)
    with transaction.atomic():
        log.lock()
        newest = log.newest(EventType.BOUNDARY_FINISHED)
        known = newest.payload if newest is not None else {}
        if (known.get("prefix_sha256"), known.get("code")) != (work.prefix, error.reason):
            log.append(drafts, expected=None, at=utc_now())
    raise error


def _refuse_held(situation: Situation, work: Work) -> None:
    held = bar(situation, work)
    if held is None:
        return
    now = utc_now()
    if held.again_at is None:
        raise told_again(held)
    left = (held.again_at - now).total_seconds()
    if left > 0:
        raise CompactionError(held.reason, retry_after_s=left)


def bar(situation: Situation, work: Work) -> Held | None:
    """What earlier failures of this unchanged history say about another try."""
    finished = situation.log.latest({EventType.BOUNDARY_FINISHED}, limit=_LATEST)
    return held_back(finished, work.prefix)


def _enqueued(actor: Actor, session: SessionRow, run: RunRow, work: Work) -> Job:
    wanted = WantedCheckpoint(
        cause="trigger", prefix=work.prefix, cut=work.covered.cut, run=str(run.id)
    )
    return enqueue_checkpoint(actor, session, wanted, first=work.covered.first)


def enqueue_checkpoint(
    actor: Actor, session: SessionRow, wanted: WantedCheckpoint, *, first: int
) -> Job:
    """The job that makes a checkpoint; one that is at it already is that job."""
    by_hand = wanted.cause == "hand"
    return enqueue(
        actor=actor,
        kind=KIND,
        arguments=wanted.as_arguments(),
        session_id=session.id,
        subject=f"events {first} to {EventSeq(wanted.cut - 1)}",
        single_flight=flight_key(session.id),
        cause=f"asked for by {actor.label}" if by_hand else "the request reached its trigger",
    )
