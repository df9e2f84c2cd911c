"""Making room before a run rather than inside it, on models whose reasoning is bound to history (design 7.12).

A cut inside a run costs the run's reasoning; the same cut at its first step costs nothing but the cache. So a history that is
near its limit is shrunk there, if it pays: nothing forces it yet.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from ctxengine.engine.cache.bound_reasoning import binds_reasoning
from ctxengine.engine.history.suffix import suffix_tokens
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.standing import history_acts
from ctxengine.engine.step import fixed_frame, floors_of
from ctxengine.ledger.models import RunRow, SessionRow
from ctxengine.service.access import plan_row_of
from ctxengine.service.compact import compact
from ctxengine.service.specs import Actor, Compact, ServiceError
from ctxengine.service.wiring import log_of, plan_from

NEAR = 0.75
"""Share of the body that carried history may take before a run begins; a run has to fit beside it."""

_NOTE = "history was near its limit when the run began"


def make_room(*, actor: Actor, session: SessionRow, run: RunRow) -> None:
    """Shrink carried history before a run's first request, where it is near its limit and the model binds its reasoning.

    Where that is refused or does not pay, the run goes on as it is.
    """
    if session.engine != "suffix":
        return
    if run.steps or not run.seed_event_sequence or not binds_reasoning(session.model):
        return
    log = log_of(session)
    plan = plan_from(log, plan_row_of(session))
    if plan.policy.compaction != "deterministic":
        # A model's summary is not waited for here, and without summaries there is nothing to gain.
        return
    fixed = fixed_frame(plan, run.settings.get("factor_millionths", 1_000_000))
    floors = floors_of(log.newest_yields(), fixed.total, history_acts(log).undone)
    history = suffix_tokens(
        log,
        cut=floors.cut,
        boundary=EventSeq(run.seed_event_sequence),
        pointer_floor=floors.pointer,
    )
    if history <= max(NEAR * fixed.body, plan.policy.history_floor):
        return
    with suppress(ServiceError):
        compact(
            actor=replace(actor, idempotency_key=""),
            session_id=session.id,
            spec=Compact(force=False, note=_NOTE),
        )
