"""How much working state there may be, and what goes first (frozen-prefix spec, Working state is bounded)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ctxengine.engine.errors import EngineError
from ctxengine.engine.ports import TokenCounter
from ctxengine.engine.working_state.render import block_text
from ctxengine.engine.working_state.state import Fact, Question, Task, WorkingState


class Cap(NamedTuple):
    """How many entries of one kind there may be, and what happens at the cap."""

    field: str
    entries: int
    at_cap: str


CAPS: tuple[Cap, ...] = (
    Cap("constraints", 20, "adding fails; constraints never make room"),
    Cap("tasks", 30, "finished ones go first, then the oldest; finished ones do not count"),
    Cap("facts", 40, "the oldest go first"),
    Cap("questions", 20, "the oldest go first"),
)
CAP_OF = {cap.field: cap.entries for cap in CAPS}

BLOCK_TOKENS = 1_000
"""Ceiling of the whole block, where the policy says nothing else."""

MAX_TEXT_CHARS = 2_000
"""Longest text of one entry."""


class StateFull(EngineError):
    """The entry does not fit, and nothing may make room for it."""

    code = "working_state_full"


class Settled(NamedTuple):
    """A state within its limits, and what had to go."""

    state: WorkingState
    evicted: tuple[str, ...]


def settle(state: WorkingState, counter: TokenCounter, cap_tokens: int) -> Settled:
    """Bring a state within its limits.

    Raises:
        StateFull: constraints are over their cap, or what may not be evicted is over the block's ceiling.
    """
    _check_constraints(state)
    evicted = _over_caps(state)
    state = without(state, evicted)
    while counter.text(block_text(state)) > cap_tokens:
        victim = next(_victims(state), None)
        if victim is None:
            raise StateFull(
                f"The working state needs {counter.text(block_text(state)):,} tokens without anything that may be evicted; "
                f"{cap_tokens:,} are allowed. Shorten the entry, or let the user lift a constraint.",
                needed=counter.text(block_text(state)),
                available=cap_tokens,
            )
        evicted.append(victim)
        state = without(state, [victim])
    return Settled(state, tuple(evicted))


def without(state: WorkingState, ids: list[str]) -> WorkingState:
    """The state without these tasks, facts and questions."""
    if not ids:
        return state
    gone = set(ids)
    return state.model_copy(
        update={
            field: tuple(entry for entry in getattr(state, field) if entry.id not in gone)
            for field in ("tasks", "facts", "questions")
        }
    )


def _over_caps(state: WorkingState) -> list[str]:
    """What the caps on numbers of entries push out; finished tasks only stay where open ones leave a place."""
    places = max(0, CAP_OF["tasks"] - len(state.open_tasks))
    finished = [task for task in state.tasks if not task.status.is_open]
    kinds: tuple[tuple[Sequence[Task | Fact | Question], int], ...] = (
        (finished, places),
        (state.open_tasks, CAP_OF["tasks"]),
        (state.facts, CAP_OF["facts"]),
        (state.questions, CAP_OF["questions"]),
    )
    return [
        entry.id
        for entries, keep in kinds
        for entry in sorted(entries, key=_age)[: max(0, len(entries) - keep)]
    ]


def _check_constraints(state: WorkingState) -> None:
    cap = CAP_OF["constraints"]
    if len(state.constraints) > cap:
        raise StateFull(
            f"A session holds at most {cap} constraints; this would be number {len(state.constraints)}. "
            "Constraints never make room: ask the user which one to lift.",
            limit=cap,
            found=len(state.constraints),
        )


def _victims(state: WorkingState) -> Iterator[str]:
    """What may go, in the order in which it goes: finished, then stale, by age."""
    finished = [task for task in state.tasks if not task.status.is_open]
    for entry in sorted(finished, key=_age):
        yield entry.id
    for fact in sorted(state.facts, key=_age):
        yield fact.id
    for task in sorted(state.open_tasks, key=_age):
        yield task.id
    for question in sorted(state.questions, key=_age):
        yield question.id


def _age(entry: Task | Fact | Question) -> int:
    """Oldest first; what is only being written has no sequence yet and is the newest."""
    return entry.sequence or 1 << 62
