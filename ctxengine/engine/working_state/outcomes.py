"""The runtime as second writer: only what it sees itself, never what a text says (frozen-prefix spec, Working state)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ctxengine.engine.compaction.parrot import Run, replace_runs
from ctxengine.engine.compaction.source import pointer_of
from ctxengine.engine.lexeme import LexemeError, parse
from ctxengine.engine.redaction.redact import redact
from ctxengine.engine.trust.levels import Trust, lowest
from ctxengine.engine.trust.model_view import model_view
from ctxengine.engine.working_state.limits import MAX_TEXT_CHARS
from ctxengine.engine.working_state.state import Question, Task, TaskStatus, WorkingState
from ctxengine.engine.working_state.transitions import Transition

ASK_TOOL = "conversation.ask_user"
"""Ledger name of the tool that asks the user something."""

_QUESTION_MEMBERS = ("question", "text", "prompt", "message")


class Outcome(NamedTuple):
    """How a call came out."""

    call_id: str
    """Session-unique wire id."""
    tool: str
    failed: bool


class Asked(NamedTuple):
    """A call that asks the user."""

    call_id: str
    arguments: str


def question_text(arguments: str) -> str:
    """The question in a call's typed arguments; the arguments themselves where no member carries it."""
    text = None
    try:
        node = parse(arguments)
    except LexemeError:
        node = None
    if node is not None:
        members = (node.get(name) for name in _QUESTION_MEMBERS)
        text = next((m.text() for m in members if m is not None and m.text()), None)
    return redact(model_view(text or arguments)).text[:MAX_TEXT_CHARS]


def asked_transition(
    state: WorkingState,
    asked: Sequence[Asked],
    repeated: Callable[[Sequence[str]], Sequence[Sequence[Run]]],
) -> Transition | None:
    """Open questions gain an entry for each call that asks the user.

    Args:
        repeated: what texts repeat of untrusted content; such a stretch becomes its pointer, and the question is no more
            trusted than what it repeats.
    """
    known = {question.call_id for question in state.questions}
    new = [call for call in asked if call.call_id not in known]
    if not new:
        return None
    texts = [question_text(call.arguments) for call in new]
    return Transition(
        writer="runtime",
        questions=tuple(
            Question(
                id=f"q{state.made + place}",
                text=replace_runs(text, runs, pointer_of) or "(no text)",
                call_id=call.call_id,
                trust=lowest([Trust.MODEL, *(run.source.trust for run in runs)]),
            )
            for place, (call, text, runs) in enumerate(
                zip(new, texts, repeated(texts), strict=True), start=1
            )
        ),
        made=len(new),
    )


def outcome_transition(state: WorkingState, outcomes: Sequence[Outcome]) -> Transition | None:
    """Tasks move with the calls they name; a question goes when its answer comes."""
    tasks: dict[str, Task] = {}
    for outcome in outcomes:
        for task in state.open_tasks:
            named = task.call_id == outcome.call_id if task.call_id else task.tool == outcome.tool
            if named and (task.call_id or task.tool):
                status = TaskStatus.BLOCKED if outcome.failed else TaskStatus.COMPLETED
                tasks[task.id] = task.model_copy(update={"status": status})
    answered = {outcome.call_id for outcome in outcomes if not outcome.failed}
    resolved = tuple(q.id for q in state.questions if q.call_id in answered)
    moved = tuple(task for task in tasks.values() if task not in state.tasks)
    if not moved and not resolved:
        return None
    return Transition(writer="runtime", tasks=moved, resolved=resolved)
