"""Compacting a `boundary` session by hand: what an operator does after mending what failed (boundary spec)."""

from __future__ import annotations

from ctxengine.engine.boundary.failures import CompactionError
from ctxengine.engine.boundary.prepare import work_of
from ctxengine.ledger.models import SessionRow
from ctxengine.service.access import still_open_session
from ctxengine.service.bound_reasoning import open_run
from ctxengine.service.boundary.ask import enqueue_checkpoint, refused
from ctxengine.service.boundary.look import look
from ctxengine.service.boundary.ports import uncallable
from ctxengine.service.boundary.wanted import WantedCheckpoint
from ctxengine.service.compacted import Compacted
from ctxengine.service.specs import Actor, Compact, ServiceError
from ctxengine.service.wiring import log_of, renderer_of


def compact_by_hand(*, actor: Actor, session: SessionRow, spec: Compact) -> Compacted:
    """Have the settled turns compacted now, below the trigger too and whatever failed before.

    Raises:
        ServiceError: 409 `nothing_to_compact`, `compaction_failed` where no provider can be asked, `session_ended`.
    """
    log = log_of(session)
    still_open_session(session)
    situation = look(session, open_run(session), log=log).situation
    renderer = renderer_of(session.provider)
    keep = situation.session.plan.policy.retained_turns if spec.through is None else 0
    try:
        work = None
        if not spec.merge:
            work = work_of(situation, renderer, keep_turns=keep, through=spec.through)
        if work is None:
            raise ServiceError(
                "nothing_to_compact", 409, "No settled turn stands in front of the recent ones."
            )
        error = uncallable(work, native=situation.native)
        if error is not None:
            raise error
        if spec.preview:
            return Compacted(
                "previewed",
                tokens_before=work.covered.tokens,
                tokens_after=None,
                replaced_through=work.covered.cut - 1,
                depth=1,
            )
    except CompactionError as error:
        raise refused(error) from error
    wanted = WantedCheckpoint(
        cause="hand",
        prefix=work.prefix,
        cut=work.covered.cut,
        keep_turns=keep,
        through=spec.through,
        note=spec.note,
    )
    job = enqueue_checkpoint(actor, session, wanted, first=work.covered.first)
    return Compacted(
        "queued",
        tokens_before=work.covered.tokens,
        tokens_after=None,
        replaced_through=work.covered.cut - 1,
        depth=1,
        job=job,
    )
