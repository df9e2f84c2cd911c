"""Messages of many provenances: Google, Bedrock, OpenTelemetry GenAI, LangChain and Inspect say one thing in many forms.

A message has a role and says texts, calls, results and reasoning; each part is recognised by its members alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ctxengine.engine.importers.dialect import (
    NO_FACTS,
    Answer,
    Facts,
    Place,
    Request,
    Token,
    Turn,
    array_at,
    object_at,
    plain_text,
    text_at,
)
from ctxengine.engine.importers.draft import SessionDraft
from ctxengine.engine.importers.loose_parts import RESULT_KINDS, Said, read_parts
from ctxengine.engine.importers.members import first_given, id_at, is_true
from ctxengine.engine.importers.pieces import Result, add_message, add_result, result_text
from ctxengine.engine.importers.plain_message import (
    INPUT,
    is_other_object,
    known_role,
    plain_message,
    role_of,
    written_calls,
)
from ctxengine.engine.importers.repr_message import message_of_repr, role_of_repr
from ctxengine.engine.importers.shapes import Shape
from ctxengine.engine.importers.transcript import EntryType, RepairAction
from ctxengine.engine.lexeme import Node, NodeKind, parse

_ARGUMENTS = ("arguments", "args", "input")
_REASONING_MEMBERS = ("reasoning_content", "reasoning", "thinking")


class LooseMessages:
    """Any API whose messages this module can read."""

    def __init__(self, format_name: str, provider: str, *, calls_in_text: bool = False) -> None:
        """Name the format.

        Args:
            format_name: The format's name in reports.
            provider: Whose API the sessions are of.
            calls_in_text: Whether calls may stand as JSON in an answer's text; else that is what the model wrote.
        """
        self.format = format_name
        self.provider = provider
        self._calls_in_text = calls_in_text

    def request(self, body: Node) -> Request:
        """Read an object with `messages` or `contents`."""
        turns = loose_turns(array_at(body, "messages") or array_at(body, "contents"))
        return Request(turns, model=text_at(body, "model"))

    def answer(self, body: Node) -> Answer | None:
        """Not known in general; the formats that have one bring their own."""
        return None

    def stream(self, events: Iterable[str]) -> str | None:
        """Not known in general."""
        return None

    def tokens(self, turn: Turn) -> list[Token]:
        """What one message says."""
        return self._read(turn).tokens()

    def add(
        self, draft: SessionDraft, turns: Sequence[Turn], place: Place, facts: Facts = NO_FACTS
    ) -> None:
        """Each message becomes an entry, each of its results another; an answer in several messages is one entry."""
        is_answer = facts._replace(at=None, extra="") != NO_FACTS
        index = 0
        while index < len(turns):
            said, first = self._read(turns[index]), index
            index += 1
            while is_answer and _goes_on(said, turns[index : index + 1]):
                self._read(turns[index], said)
                index += 1
            add_said(draft, said, place(first), facts)
            if said.role == "assistant":
                facts = facts._replace(usage=None)

    def _read(self, turn: Turn, said: Said | None = None) -> Said:
        """Read a message as the turn's own: an answer is the model's whatever role it names."""
        said = said or Said(turn.role)
        return read_message(turn.node, said, calls_in_text=self._calls_in_text)


def loose_turns(messages: Iterable[Node]) -> list[Turn]:
    """Messages with their roles, in the plain form of whatever framework wrote them."""
    turns: list[Turn] = []
    called: set[str] = set()
    for given in messages:
        message = plain_message(given, called)
        role = role_of_message(message)
        turns.append(Turn(role, message))
        if role == "assistant":
            called.update(name for call in _calls_of(message) if (name := _name_of(call)))
    return turns


def _goes_on(said: Said, following: Sequence[Turn]) -> bool:
    return said.role == "assistant" and any(turn.role == "assistant" for turn in following)


def role_of_message(message: Node) -> str:
    """One of user, assistant, tool, system and `INPUT`: only what names neither role nor kind is the user's unasked."""
    if message.kind is NodeKind.STRING:
        shown = role_of_repr(message.text() or "")
        return "user" if shown is None else known_role(shown) or INPUT
    named = role_of(message)
    if named is None:
        named = "user" if first_given(message, "type") is None else INPUT
    return named


def add_said(draft: SessionDraft, said: Said, where: str, facts: Facts = NO_FACTS) -> None:
    """Account for one message."""
    leads = said.role == "system" and not draft.size and not said.results
    add_around(draft, said, where, facts)
    if leads:
        _take_instructions(draft, said, where)
    elif said.has_words or not (said.results or said.unreadable):
        add_message(draft, _kind(draft, said, where), said.pieces, where, facts)


def add_around(draft: SessionDraft, said: Said, where: str, facts: Facts = NO_FACTS) -> None:
    """Account for all of a message that is not its own words: results, settings, what cannot be read."""
    for node in said.unreadable:
        draft.leave("unreadable_part", where, "A part that cannot be read.", raw=node.raw)
    for _ in said.skipped:
        draft.leave_many("cache_point", where, "Cache points and the like: settings, not content.")
    for result in said.results:
        add_result(draft, result, where, Facts(at=facts.at))


def read_message(message: Node, said: Said | None = None, *, calls_in_text: bool = False) -> Said:
    """Read a message of any known form, behind what was said before it in the same answer."""
    said = said or Said(role_of_message(message))
    if is_other_object(message):
        said.unreadable.append(message)
        return said
    if message.kind is NodeKind.STRING:
        shown = message_of_repr(message.text() or "")
        if shown is None:
            said.pieces.text(message)
            return said
        message = shown
    content, parts = first_given(message, "content"), first_given(message, "parts")
    said.pieces.reasoning(sum(bool(text_at(message, name)) for name in _REASONING_MEMBERS))
    calls = _calls_of(message)
    if said.role == "tool" and parts is None and not _holds_results(content):
        said.results.append(_tool_message(message, content))
        return said
    for node in (content, parts):
        written = _written_calls(said, node) if calls_in_text else []
        if not written:
            _read_content(said, node, filler=bool(calls))
        calls = [*written, *calls]
    for call in calls:
        _read_call(said, call)
    return said


def _kind(draft: SessionDraft, said: Said, where: str) -> EntryType:
    if said.pieces.is_summary:
        return EntryType.SUMMARY
    if said.role == "assistant":
        return EntryType.ASSISTANT
    if said.role == "user" and not said.results:
        return EntryType.USER
    if said.role == "system":
        draft.note(
            RepairAction.WARNED,
            "late_system_message",
            where,
            "A system message inside the conversation; kept as untrusted input, not as instructions.",
        )
    return EntryType.INPUT


def _take_instructions(draft: SessionDraft, said: Said, where: str) -> None:
    shape: Shape = said.pieces.shape
    draft.found(shape.total)
    text = plain_text(parse(said.pieces.body).value())
    draft.instructions = f"{draft.instructions}\n\n{text}" if draft.instructions else text
    draft.set_aside("instructions", where, "Became the session's instructions.", items=shape.total)


def _holds_results(content: Node | None) -> bool:
    if content is None or content.kind is not NodeKind.ARRAY:
        return False
    return any(text_at(part, "type") in RESULT_KINDS for part in content)


def _calls_of(message: Node) -> list[Node]:
    direct = array_at(message, "tool_calls")
    return direct or array_at(object_at(message, "additional_kwargs") or message, "tool_calls")


def _tool_message(message: Node, content: Node | None) -> Result:
    call_id = id_at(message, "tool_call_id", "toolCallId")
    names = ("name", "function", "toolName", "tool_name")
    name = next((found for found in (text_at(message, key) for key in names) if found), None)
    error = first_given(message, "error")
    failed = object_at(message, "error") is not None or is_true(message, "isError", "is_error")
    if content is None or content.text() == "":
        # Some keep apart what went wrong from what the tool gave.
        content = first_given(error, "message") or content
    if content is not None and content.kind is NodeKind.ARRAY:
        inner = Said("tool")
        read_parts(inner, content)
        if not inner.unreadable and not inner.results:
            return Result(call_id, name, inner.pieces.body, failed)
    return Result(call_id, name, result_text(content), failed)


def _read_content(said: Said, content: Node | None, *, filler: bool) -> None:
    if content is None:
        return
    if content.kind is NodeKind.ARRAY:
        read_parts(said, content)
    elif content.kind is NodeKind.STRING:
        if content.text() or not filler:
            said.pieces.text(content)
    elif content.kind is NodeKind.OBJECT and object_at(content, "function") is None:
        read_parts(said, [content])
    else:
        said.unreadable.append(content)


def _written_calls(said: Said, content: Node | None) -> list[Node]:
    return written_calls(content) if content is not None and said.role == "assistant" else []


def _name_of(call: Node) -> str | None:
    function = object_at(call, "function") or call
    return text_at(function, "name") or text_at(call, "function")


def _read_call(said: Said, call: Node) -> None:
    function = object_at(call, "function") or call
    name = _name_of(call)
    if name is None:
        said.unreadable.append(call)
        return
    arguments = first_given(function, *_ARGUMENTS) or first_given(call, *_ARGUMENTS)
    said.pieces.call(id_at(call, "id", "tool_call_id"), name, arguments)
