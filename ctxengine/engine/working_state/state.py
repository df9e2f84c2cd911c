"""The working state of a session as a value (frozen-prefix spec, Working state)."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from ctxengine.engine.trust.levels import Trust, lowest


class _Entry(BaseModel):
    """What every entry carries."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    trust: Trust
    """Lowest level among what the entry was made from."""
    sequence: int = 0
    """Event that wrote it last."""


class Objective(_Entry):
    """What the session is about. A new one supersedes the old one; which one is said."""

    text: str
    supersedes: int | None = None
    """Event of the objective before."""


class NextAction(_Entry):
    """The run's own scratch pad."""

    text: str


class Constraint(_Entry):
    """Something that stays in force until the user lifts it."""

    id: str
    text: str


class TaskStatus(StrEnum):
    """How a task stands."""

    OPEN = "open"
    ACTIVE = "active"
    BLOCKED = "blocked"
    COMPLETED = "completed"
    DROPPED = "dropped"

    @property
    def is_open(self) -> bool:
        """Whether something is still to be done."""
        return self not in {TaskStatus.COMPLETED, TaskStatus.DROPPED}


class Task(_Entry):
    """A piece of work. Where it names a tool or a call, the outcome of that call moves it."""

    id: str
    title: str
    status: TaskStatus = TaskStatus.OPEN
    tool: str = ""
    """Tool whose next outcome decides about the task."""
    call_id: str = ""
    """The very call that decides about it."""


class Fact(_Entry):
    """Something established, with the events it rests on."""

    id: str
    statement: str
    source_event_ids: tuple[int, ...] = ()
    origin: str = ""
    """For a claim: who says so, for example `tool:web.fetch`; empty for what the session concluded itself."""
    established_at: str = ""
    """ISO 8601, with offset."""

    @property
    def is_claim(self) -> bool:
        """Whether it is somebody else's statement, kept as such."""
        return bool(self.origin)


class Question(_Entry):
    """Something the user was asked and has not answered."""

    id: str
    text: str
    call_id: str = ""
    """The call that asked; its result is the answer."""


class WorkingState(BaseModel):
    """All of it. Equal logs give equal states."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    objective: Objective | None = None
    constraints: tuple[Constraint, ...] = ()
    tasks: tuple[Task, ...] = ()
    facts: tuple[Fact, ...] = ()
    questions: tuple[Question, ...] = ()
    next_action: NextAction | None = None
    run: str | None = None
    """Run of the newest transition; another run carries the state over first."""
    made: int = 0
    """Entries numbered so far."""
    through: int = 0
    """Event of the newest transition."""

    @property
    def open_tasks(self) -> tuple[Task, ...]:
        """Tasks that are still to be done."""
        return tuple(task for task in self.tasks if task.status.is_open)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show."""
        return not (
            self.objective
            or self.constraints
            or self.tasks
            or self.facts
            or self.questions
            or self.next_action
        )

    @property
    def entries(self) -> int:
        """How many entries stand in it."""
        return (
            len(self.constraints)
            + len(self.tasks)
            + len(self.facts)
            + len(self.questions)
            + (self.objective is not None)
            + (self.next_action is not None)
        )


EMPTY = WorkingState()


def state_trust(state: WorkingState) -> Trust:
    """The lowest trust among the entries."""
    singles = [entry for entry in (state.objective, state.next_action) if entry is not None]
    entries = (*singles, *state.constraints, *state.tasks, *state.facts, *state.questions)
    return lowest([Trust.PLATFORM, *(entry.trust for entry in entries)])
