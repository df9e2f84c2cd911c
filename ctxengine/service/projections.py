"""Which recorded decision of the session's engine a step stands under (design 6 and 7.16)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ctxengine.engine.ports import SessionLog
from ctxengine.ledger.models import RunRow
from ctxengine.service.boundary.look import checkpoint_in_force
from ctxengine.service.working_set.plan_run import plan_in_force

Deciding = Callable[[SessionLog, RunRow], int | None]

DECISIONS: Mapping[str, Deciding] = {
    "boundary": checkpoint_in_force,
    "working_set": plan_in_force,
}
"""For each engine with a projection: the event that holds the decision in force for a run, None before the first one."""


def decision_in_force(engine: str, log: SessionLog, run: RunRow) -> int | None:
    """Sequence of that event; None where the engine records none, or has decided nothing yet."""
    deciding = DECISIONS.get(engine)
    return None if deciding is None else deciding(log, run)
