"""Transitions: the only way the working state changes, and how the log's transitions make a state.

A transition holds what was decided when it was written (new entries, evictions): reading it back needs no counter, policy or
clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict

from ctxengine.engine.trust.levels import Trust, lowest
from ctxengine.engine.working_state.carry import carried
from ctxengine.engine.working_state.state import (
    EMPTY,
    Constraint,
    Fact,
    NextAction,
    Objective,
    Question,
    Task,
    WorkingState,
)

Writer = Literal["model", "runtime", "user"]

KEYFRAME_EVERY = 32
"""After so many transitions the next one carries the whole state."""

KEYFRAME_WITHIN = 96
"""One of so many newest transitions carries it, whatever one append holds: reading the state never costs more."""


class Transition(BaseModel):
    """One change of the state."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    writer: Writer
    objective: Objective | None = None
    constraints: tuple[Constraint, ...] = ()
    lifted: tuple[str, ...] = ()
    """Constraints the user removed, by id."""
    tasks: tuple[Task, ...] = ()
    """Whole new values, by id."""
    facts: tuple[Fact, ...] = ()
    questions: tuple[Question, ...] = ()
    resolved: tuple[str, ...] = ()
    """Questions that were answered, by id."""
    next_action: NextAction | None = None
    made: int = 0
    """Entries numbered by this transition."""
    evicted: tuple[str, ...] = ()
    """Entries that made room, by id."""

    @property
    def changed(self) -> dict[str, int]:
        """How many entries of each kind it writes or removes; for the event's payload."""
        counts = {
            "objective": int(self.objective is not None),
            "constraints": len(self.constraints),
            "lifted": len(self.lifted),
            "tasks": len(self.tasks),
            "facts": len(self.facts),
            "questions": len(self.questions),
            "resolved": len(self.resolved),
            "next_action": int(self.next_action is not None),
        }
        return {name: count for name, count in counts.items() if count}

    @property
    def trust(self) -> Trust:
        """The lowest trust among the entries it writes."""
        singles = [entry for entry in (self.objective, self.next_action) if entry is not None]
        levels = [
            entry.trust
            for entry in (*singles, *self.constraints, *self.tasks, *self.facts, *self.questions)
        ]
        return lowest([Trust.PLATFORM, *levels])


class Recorded(NamedTuple):
    """A transition with its place in the log; `keyframe` is the state right after it, where it was kept."""

    sequence: int
    run: str | None
    transition: Transition
    keyframe: WorkingState | None = None


class TransitionBody(BaseModel):
    """What the event's body holds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    transition: Transition
    state: WorkingState | None = None


def apply(
    state: WorkingState, transition: Transition, *, sequence: int, run: str | None
) -> WorkingState:
    """The state after a transition."""
    before = carried(state, run)
    stamp = {"sequence": sequence}
    gone = set(transition.evicted)
    objective = before.objective
    if transition.objective is not None:
        earlier = objective.sequence if objective is not None else None
        objective = transition.objective.model_copy(update={**stamp, "supersedes": earlier})
    return WorkingState(
        objective=objective,
        constraints=_upserted(
            before.constraints, transition.constraints, stamp, {*transition.lifted}
        ),
        tasks=_upserted(before.tasks, transition.tasks, stamp, gone),
        facts=_upserted(before.facts, transition.facts, stamp, gone),
        questions=_upserted(
            before.questions, transition.questions, stamp, gone | set(transition.resolved)
        ),
        next_action=transition.next_action.model_copy(update=stamp)
        if transition.next_action is not None
        else before.next_action,
        run=run if run is not None else before.run,
        made=before.made + transition.made,
        through=sequence,
    )


def replay(recorded: Sequence[Recorded]) -> WorkingState:
    """The state that transitions give, oldest first; the newest keyframe among them saves the rest."""
    start, state = 0, EMPTY
    for place in range(len(recorded) - 1, -1, -1):
        keyframe = recorded[place].keyframe
        if keyframe is not None:
            start, state = place + 1, keyframe
            break
    for entry in recorded[start:]:
        state = apply(state, entry.transition, sequence=entry.sequence, run=entry.run)
    return state


_E = TypeVar("_E", Constraint, Task, Fact, Question)


def _upserted(
    kept: Iterable[_E], new: Iterable[_E], stamp: dict[str, int], gone: set[str]
) -> tuple[_E, ...]:
    """Entries by id, in the order in which they first came."""
    entries = {entry.id: entry for entry in kept if entry.id not in gone}
    for entry in new:
        if entry.id not in gone:
            entries[entry.id] = entry.model_copy(update=stamp)
    return tuple(entries.values())
