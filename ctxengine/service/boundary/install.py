"""Installing a checkpoint: sealed, by compare-and-set on source, contract and base (design 4, 7.9)."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from ctxengine.engine.boundary.checkpoint import contract_of, marks_below
from ctxengine.engine.boundary.failures import CompactionError
from ctxengine.engine.boundary.prepare import Situation
from ctxengine.engine.boundary.settled import source_of_units
from ctxengine.engine.boundary.work import Made, Work, payload_of
from ctxengine.engine.compaction.marks import present
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.trust.levels import Trust
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import SessionRow
from ctxengine.service.audit import record_audit
from ctxengine.service.bound_reasoning import (
    counted,
    drop_reasoning,
    open_run,
    reasoning_at_stake,
)
from ctxengine.service.boundary.look import look
from ctxengine.service.boundary.wanted import WantedCheckpoint
from ctxengine.service.clock import utc_now
from ctxengine.service.crypto import encrypt
from ctxengine.service.jobs.context import JobContext
from ctxengine.service.specs import ServiceError
from ctxengine.service.wiring import log_of

MOST_LOOKS = 8
"""So often the session is read again because somebody appended between the look and the lock."""


def seal(text: str) -> str:
    """A window's text as its body keeps it: encrypted, and text all the same."""
    return encrypt(text.encode("utf-8")).decode("ascii")


def install(
    context: JobContext,
    session: SessionRow,
    work: Work,
    made: Made,
    *,
    operation: str,
    native: bool,
    wanted: WantedCheckpoint,
) -> dict[str, Any] | None:
    """Write the checkpoint and the end of its operation; None where its source or its contract has changed.

    What was appended since the source was read stays where it is.

    Raises:
        LeaseLost: another worker has the job; nothing was written.
        JobCancelled: somebody asked for its end; nothing was written.
        ServiceError: `stale_head` when others appended all the time; the job is tried again.
    """
    for _ in range(MOST_LOOKS):
        log = log_of(session)
        run = open_run(session)
        seen = look(session, run, log=log)
        if not _holds(seen.situation, work):
            return None
        with transaction.atomic():
            context.hold()
            if log.lock().sequence != seen.head.sequence:
                continue
            at_stake = reasoning_at_stake(run, session.model)
            dropped = drop_reasoning(run) if at_stake else 0
            drafts = counted(
                _drafts(session, seen.situation, work, made, operation, native, wanted, log),
                dropped,
            )
            log.append(drafts, expected=seen.head.sequence, at=utc_now())
            result = {
                "event": int(seen.head.sequence) + 1,
                "kind": made.checkpoint.kind,
                "tokens_before": made.checkpoint.tokens_before,
                "tokens_after": made.checkpoint.tokens,
                "calls": made.calls,
                "recovered": made.checkpoint.recovered,
            }
            if wanted.cause == "hand":
                record_audit(
                    actor=context.actor,
                    action="compaction.made",
                    target=f"{log.session}:{result['event']}",
                    reason=wanted.note,
                    before={"tokens": made.checkpoint.tokens_before},
                    after={"tokens": made.checkpoint.tokens},
                )
            context.conclude(result)
            return result
    raise ServiceError("stale_head", 409, "Others appended to this session all the time.")


def begun(*, operation: str, work: Work, native: bool, run: str | None) -> EventDraft:
    """The event that begins an operation."""
    covered = work.covered
    return EventDraft(
        type=EventType.BOUNDARY_STARTED,
        trust=Trust.PLATFORM,
        run=run,
        payload={
            "operation": operation,
            "method": "native" if native else "note",
            "first_sequence": covered.first,
            "through_sequence": covered.cut - 1,
            "tokens": covered.tokens,
            "prefix_sha256": work.prefix,
            "base": covered.base.sequence if covered.base else None,
            "recovers": work.session.plan.policy.archive_recovery,
        },
    )


def finish(
    *,
    operation: str,
    outcome: str,
    prefix: str,
    run: str | None,
    error: CompactionError | None = None,
    method: str = "",
    calls: int = 0,
    checkpoint: int | None = None,
    through: int | None = None,
) -> EventDraft:
    """The event that ends an operation."""
    return EventDraft(
        type=EventType.BOUNDARY_FINISHED,
        trust=Trust.PLATFORM,
        run=run,
        payload={
            "operation": operation,
            "method": method,
            "outcome": outcome,
            "code": error.reason if error else None,
            "retryable": error.retryable if error else None,
            "retry_after_s": error.retry_after_s if error else None,
            "checkpoint": checkpoint,
            "prefix_sha256": prefix,
            "calls": calls,
            "through_sequence": through,
        },
    )


def _holds(situation: Situation, work: Work) -> bool:
    """Whether the same compaction would be made now: the same base, the same units behind it, the same contract."""
    base, now = work.covered.base, situation.checkpoint
    if (base.sequence if base else None) != (now.sequence if now else None):
        return False
    return _still_covers(situation, work)


def _still_covers(situation: Situation, work: Work) -> bool:
    """Whether the covered units read as they did, where the recent turns have moved on since."""
    covered = work.covered
    start = covered.base.cut if covered.base else EventSeq(1)
    units = present(situation.log.units(start, covered.cut), situation.marks, situation.counter)
    marks = marks_below(situation.marks, covered.cut)
    same = source_of_units(covered.base, units, marks) == covered.source
    plan = situation.session.plan
    return same and contract_of(plan) == contract_of(work.session.plan)


def _drafts(
    session: SessionRow,
    situation: Situation,
    work: Work,
    made: Made,
    operation: str,
    native: bool,
    wanted: WantedCheckpoint,
    log: PostgresLog,
) -> list[EventDraft]:
    policy = situation.session.plan.policy.label
    head = log.head().sequence
    point = made.checkpoint
    compacted = EventDraft(
        type=EventType.COMPACTED,
        trust=Trust.EXTERNAL_UNTRUSTED if native else Trust.MODEL,
        run=wanted.run,
        payload=dict(
            payload_of(
                made,
                plan_total=situation.fixed.total,
                model=session.model,
                policy=policy,
                forced_by=operation,
                base=work.covered.base,
            )
        ),
        body=seal(made.text) if native else made.text,
        owner=session.principal,
    )
    ended = finish(
        operation=operation,
        outcome="completed",
        prefix=work.prefix,
        run=wanted.run,
        method=point.kind,
        calls=made.calls,
        checkpoint=int(head) + 1,
        through=point.replaced,
    )
    return [compacted, ended]
