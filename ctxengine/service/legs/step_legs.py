"""The legs of one step of `assemble`: built beside its request, or sized anew where one is over what it admits (design 5)."""

from __future__ import annotations

from dataclasses import replace

from ctxengine.engine.ids import EventSeq
from ctxengine.engine.inputs import Prepared
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.request import ModelRequest
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import RunRow, SessionRow
from ctxengine.service.legs.choose_legs import measured
from ctxengine.service.legs.leg_bodies import BuiltLeg, build_legs
from ctxengine.service.specs import Actor
from ctxengine.service.warm import Warmth
from ctxengine.service.working_set.replan import Replanned


def step_legs(
    actor: Actor,
    session: SessionRow,
    run: RunRow,
    log: PostgresLog,
    plan: Plan,
    prepared: Prepared,
    built: ModelRequest,
    warmth: Warmth,
    head: EventSeq,
) -> tuple[Prepared, tuple[BuiltLeg, ...]]:
    """The request of each leg, and the step with what is to be recorded of them.

    Raises:
        Replanned: a leg's own counter finds more than the leg admits; that was kept, and the step is to be sized anew.
        EngineError: as `build_leg` does.
    """
    wanted = prepared.inputs.legs
    if not wanted:
        return prepared, ()
    legs = build_legs(session, run, plan, prepared, built, warmth.legs(wanted))
    if any(made.body.tokens > made.leg.usable for made in legs):
        measured(
            actor=actor,
            run=run,
            log=log,
            own_tokens=built.budget.request,
            counts=[made.body.tokens for made in legs],
            expected=head,
        )
        raise Replanned
    bodies = tuple(made.body for made in legs)
    inputs = prepared.inputs.model_copy(update={"leg_bodies": bodies})
    return replace(prepared, inputs=inputs), legs
