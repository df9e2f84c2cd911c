"""What a writer asks of the working state, read from a typed call and nothing else (spec, Working state)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

from ctxengine.engine.errors import EngineError
from ctxengine.engine.lexeme import LexemeError, Node, NodeKind, parse
from ctxengine.engine.redaction.redact import redact
from ctxengine.engine.trust.model_view import model_view
from ctxengine.engine.working_state.limits import MAX_TEXT_CHARS
from ctxengine.engine.working_state.state import TaskStatus

_FIELDS = (
    "objective",
    "add_constraints",
    "upsert_tasks",
    "add_facts",
    "resolve_questions",
    "next_action",
)
_TASK_FIELDS = ("id", "title", "status", "tool", "call_id")
_FACT_FIELDS = ("statement", "source_event_ids", "trust_level", "established_at")
_MAX_ENTRIES = 50
_MAX_ID_CHARS = 64
_T = TypeVar("_T")

STATUS_NAMES = ", ".join(status.value for status in TaskStatus)


class WishRefused(EngineError):
    """A wish that changes nothing. The message quotes nothing of what was written: it goes back as platform text."""

    def __init__(self, code: str, message: str, **numbers: object) -> None:
        super().__init__(message, **numbers)
        self.code = code


@dataclass(frozen=True, slots=True)
class TaskWish:
    """A task as asked for; an empty id makes a new one."""

    title: str
    id: str = ""
    status: TaskStatus | None = None
    tool: str = ""
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class FactWish:
    """A fact as asked for. `trust_level` and `established_at` are the platform's to say."""

    statement: str
    source_event_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Wish:
    """Everything one call asks for."""

    objective: str | None = None
    add_constraints: tuple[str, ...] = ()
    upsert_tasks: tuple[TaskWish, ...] = ()
    add_facts: tuple[FactWish, ...] = ()
    resolve_questions: tuple[str, ...] = ()
    next_action: str | None = None


def read_wish(arguments: str) -> Wish:
    """The wish in a control call's arguments.

    Raises:
        WishRefused: names the field that cannot be read and what it takes.
    """
    try:
        node = parse(arguments)
    except LexemeError as error:
        raise WishRefused("invalid_json", str(error)) from None
    if node.kind is not NodeKind.OBJECT:
        raise WishRefused("invalid_arguments", "The arguments must be one JSON object.")
    _only(node, _FIELDS, "the arguments")
    wish = Wish(
        objective=_optional(node, "objective"),
        add_constraints=_list(node, "add_constraints", _text),
        upsert_tasks=_list(node, "upsert_tasks", _task),
        add_facts=_list(node, "add_facts", _fact),
        resolve_questions=_list(node, "resolve_questions", _text),
        next_action=_optional(node, "next_action"),
    )
    if wish == Wish():
        raise WishRefused(
            "nothing_asked",
            f"The call asks for nothing; give at least one of {', '.join(_FIELDS)}.",
        )
    return wish


def _only(node: Node, known: tuple[str, ...], where: str) -> None:
    if any(name not in known for name, _ in node.items()):
        raise WishRefused(
            "unknown_field", f"A field of {where} is not known; known are {', '.join(known)}."
        )


def _optional(node: Node, name: str) -> str | None:
    member = node.get(name)
    if member is None or member.kind is NodeKind.NULL:
        return None
    return _text(member, name)


def _list(node: Node, name: str, read: Callable[[Node, str], _T]) -> tuple[_T, ...]:
    member = node.get(name)
    if member is None or member.kind is NodeKind.NULL:
        return ()
    if member.kind is not NodeKind.ARRAY:
        raise WishRefused("invalid_field", f"{name} takes a list.")
    if len(member) > _MAX_ENTRIES:
        raise WishRefused(
            "too_many",
            f"{name} takes at most {_MAX_ENTRIES} entries in one call; found {len(member)}.",
            limit=_MAX_ENTRIES,
            found=len(member),
        )
    return tuple(read(element, name) for element in member)


def clean_text(text: str, name: str) -> str:
    """A text as an entry may hold it: carriable, without secrets, neither empty nor long.

    Raises:
        WishRefused: it is empty or too long.
    """
    shown = redact(model_view(text).strip()).text
    if not shown:
        raise WishRefused("empty_text", f"{name} holds an empty text.")
    if len(shown) > MAX_TEXT_CHARS:
        raise WishRefused(
            "too_long",
            f"A text of {name} has {len(shown):,} characters; {MAX_TEXT_CHARS:,} are allowed. Say it shorter.",
            limit=MAX_TEXT_CHARS,
            found=len(shown),
        )
    return shown


def _text(node: Node, name: str) -> str:
    text = node.text()
    if text is None:
        raise WishRefused("invalid_field", f"{name} takes text.")
    return clean_text(text, name)


def _task(node: Node, name: str) -> TaskWish:
    if node.kind is not NodeKind.OBJECT:
        raise WishRefused("invalid_field", f"{name} takes objects with {', '.join(_TASK_FIELDS)}.")
    _only(node, _TASK_FIELDS, "a task")
    status = _optional(node, "status")
    if status is not None and status not in set(TaskStatus):
        raise WishRefused("invalid_field", f"A task's status is one of {STATUS_NAMES}.")
    title, task_id = _optional(node, "title"), _optional(node, "id") or ""
    if len(task_id) > _MAX_ID_CHARS or (not title and not task_id):
        raise WishRefused(
            "invalid_field",
            f"A task needs a title, or the id of one there is; an id has at most {_MAX_ID_CHARS} characters.",
        )
    return TaskWish(
        title=title or "",
        id=task_id,
        status=TaskStatus(status) if status else None,
        tool=_optional(node, "tool") or "",
        call_id=_optional(node, "call_id") or "",
    )


def _fact(node: Node, name: str) -> FactWish:
    if node.kind is not NodeKind.OBJECT:
        raise WishRefused("invalid_field", f"{name} takes objects with {', '.join(_FACT_FIELDS)}.")
    _only(node, _FACT_FIELDS, "a fact")
    statement = _optional(node, "statement")
    if statement is None:
        raise WishRefused("invalid_field", "A fact needs a statement.")
    return FactWish(statement, _list(node, "source_event_ids", _event))


def _event(node: Node, name: str) -> int:
    if node.kind is not NodeKind.NUMBER or not node.raw.isdigit() or len(node.raw) > 15:
        raise WishRefused("invalid_field", f"{name} takes event numbers such as 12.")
    return int(node.raw)


Kind = Literal["objective", "constraint", "task", "fact", "question", "next_action"]
