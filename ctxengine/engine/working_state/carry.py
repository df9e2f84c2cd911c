"""What survives the border between two runs: one table, applied to the state as the log gives it."""

from __future__ import annotations

from typing import NamedTuple

from ctxengine.engine.working_state.state import WorkingState


class CarryRule(NamedTuple):
    """How one field is carried."""

    field: str
    carry: str
    """`session` or `run`."""
    rule: str


CARRY_RULES: tuple[CarryRule, ...] = (
    CarryRule("objective", "session", "kept until another one supersedes it"),
    CarryRule("constraints", "session", "only grows; the user alone lifts one"),
    CarryRule("tasks", "session", "open ones are kept; finished ones stay in the log"),
    CarryRule("facts", "session", "kept with the events they rest on"),
    CarryRule("questions", "session", "kept until an answer has come"),
    CarryRule("next_action", "run", "gone with the run that set it"),
)


def carried(state: WorkingState, run: str | None) -> WorkingState:
    """The state as `run` sees it: itself within one run, carried over the border otherwise."""
    if run is None or state.run == run or state.run is None:
        return state
    return state.model_copy(update={"tasks": state.open_tasks, "next_action": None, "run": run})
