"""Which engine projects how: one table, one pure function each (design 6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ctxengine.engine.history.boundary import project_boundary
from ctxengine.engine.history.projection import Projection
from ctxengine.engine.history.working_set_project import ClosedUnits, project_working_set
from ctxengine.engine.inputs import SessionFacts, StepInputs
from ctxengine.engine.ports import SessionLog, TokenCounter

Projector = Callable[[SessionLog, SessionFacts, StepInputs, TokenCounter], Projection]

PROJECTORS: Mapping[str, Projector] = {
    "boundary": project_boundary,
    "working_set": project_working_set,
}
"""Engines that decide before the allocation; `suffix` is none of them."""


def project(
    log: SessionLog,
    session: SessionFacts,
    inputs: StepInputs,
    counter: TokenCounter,
    known: ClosedUnits | None = None,
) -> Projection | None:
    """What the session's engine shows of everything before the run; None where the allocation cuts history (`suffix`).

    Args:
        inputs: `engine`, `boundary`, the marks and `projection`, the event with the recorded decision, are read.
        known: closed forms of earlier steps, for an engine that closes units.
    """
    if known is not None and inputs.engine == "working_set":
        return project_working_set(log, session, inputs, counter, known)
    projector = PROJECTORS.get(inputs.engine)
    return None if projector is None else projector(log, session, inputs, counter)
