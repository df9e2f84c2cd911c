"""Which engine projects how: one table, one pure function each (design 6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ctxengine.engine.history.projection import Projection
from ctxengine.engine.inputs import SessionFacts, StepInputs
from ctxengine.engine.ports import SessionLog, TokenCounter

Projector = Callable[[SessionLog, SessionFacts, StepInputs, TokenCounter], Projection]

PROJECTORS: Mapping[str, Projector] = {}
"""Engines that decide before the allocation; `suffix` is none of them."""


def project(
    log: SessionLog, session: SessionFacts, inputs: StepInputs, counter: TokenCounter
) -> Projection | None:
    """What the session's engine shows of everything before the run; None where the allocation cuts history (`suffix`).

    Args:
        inputs: `engine`, `boundary`, the marks and `projection`, the event with the recorded decision, are read.
    """
    projector = PROJECTORS.get(inputs.engine)
    return None if projector is None else projector(log, session, inputs, counter)
