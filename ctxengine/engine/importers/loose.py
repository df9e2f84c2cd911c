"""Messages of many provenances: Google, Bedrock, OpenTelemetry GenAI, LangChain and Inspect say one thing in many forms.

A message has a role and says texts, calls, results and reasoning; each part is recognised by its members alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from ctxengine.engine.importers.dialect import (
    NO_FACTS,
    Answer,
    Facts,
    Place,
    Request,
    Token,
    Turn,
    array_at,
    gist,
    object_at,
    plain_text,
    text_at,
)
from ctxengine.engine.importers.draft import SessionDraft
from ctxengine.engine.importers.inline_media import bedrock_image, google_data, typed_image
from ctxengine.engine.importers.otel_parts import holds_parts, read_otel_part
from ctxengine.engine.importers.pieces import Pieces, Result, add_message, add_result, result_text
from ctxengine.engine.importers.repr_message import message_of_repr, role_of_repr
from ctxengine.engine.importers.shapes import Shape
from ctxengine.engine.importers.transcript import EntryType, RepairAction
from ctxengine.engine.lexeme import Node, NodeKind, parse

_ROLES = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "model": "assistant",
    "ai": "assistant",
    "tool": "tool",
    "function": "tool",
    "toolresult": "tool",
    "system": "system",
    "developer": "system",
}
_REASONING_MEMBERS = ("reasoning_content", "reasoning", "thinking")


@dataclass(slots=True)
class Said:
    """One message, read."""

    role: str
    pieces: Pieces = field(default_factory=Pieces)
    results: list[Result] = field(default_factory=list)
    skipped: list[Node] = field(default_factory=list)
    """Parts that are no content: cache points."""
    unreadable: list[Node] = field(default_factory=list)

    def tokens(self) -> list[Token]:
        """What is said, for recognising repeated history."""
        tokens: list[Token] = [(self.role, *words) for words in self.pieces.words]
        tokens += [
            ("user", "result", r.name or r.call_id or "", gist(r.content)) for r in self.results
        ]
        return tokens


class LooseMessages:
    """Any API whose messages this module can read."""

    def __init__(self, format_name: str, provider: str) -> None:
        self.format = format_name
        self.provider = provider

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
        return read_message(turn.node).tokens()

    def add(
        self, draft: SessionDraft, turns: Sequence[Turn], place: Place, facts: Facts = NO_FACTS
    ) -> None:
        """Each message becomes an entry, each of its results another."""
        for index, turn in enumerate(turns):
            add_said(draft, read_message(turn.node), place(index), facts)


def loose_turns(messages: Iterable[Node]) -> list[Turn]:
    """Messages with their roles."""
    return [Turn(role_of_message(message), message) for message in messages]


def role_of_message(message: Node) -> str:
    """One of user, assistant, tool and system; what has no known role is the user's."""
    if message.kind is NodeKind.STRING:
        return _ROLES.get(role_of_repr(message.text() or "") or "user", "user")
    given = text_at(message, "role") or text_at(message, "type") or ""
    return _ROLES.get(given.lower(), "user")


def add_said(draft: SessionDraft, said: Said, where: str, facts: Facts = NO_FACTS) -> None:
    """Account for one message."""
    for node in said.unreadable:
        draft.leave("unreadable_part", where, "A part that cannot be read.", raw=node.raw)
    for _ in said.skipped:
        draft.leave_many("cache_point", where, "Cache points: settings, not content.")
    if said.role == "system" and not draft.size and not said.results:
        _take_instructions(draft, said, where)
        return
    for result in said.results:
        add_result(draft, result, where, Facts(at=facts.at))
    if said.pieces.blocks or said.pieces.unkept or not said.results:
        add_message(draft, _kind(draft, said, where), said.pieces, where, facts)


def read_message(message: Node) -> Said:
    """Read a message of any known form."""
    said = Said(role_of_message(message))
    if message.kind is NodeKind.STRING:
        shown = message_of_repr(message.text() or "")
        if shown is None:
            said.pieces.text(message)
            return said
        message = shown
    content = message.get("content")
    parts = message.get("parts")
    said.pieces.reasoning(sum(bool(text_at(message, name)) for name in _REASONING_MEMBERS))
    calls = _calls_of(message)
    if said.role == "tool" and parts is None and not _holds_results(content):
        said.results.append(_tool_message(message, content))
        return said
    for node in (content, parts):
        _read_content(said, node, filler=bool(calls))
    for call in calls:
        _read_call(said, call)
    return said


def read_parts(said: Said, parts: Iterable[Node]) -> None:
    """Read content parts of any known form."""
    for part in parts:
        if part.kind is NodeKind.STRING:
            said.pieces.text(part)
        elif part.kind is not NodeKind.OBJECT:
            said.unreadable.append(part)
        else:
            _read_part(said, part)


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
    return any(text_at(part, "type") in ("tool_result", "tool_call_response") for part in content)


def _calls_of(message: Node) -> list[Node]:
    direct = array_at(message, "tool_calls")
    return direct or array_at(object_at(message, "additional_kwargs") or message, "tool_calls")


def _tool_message(message: Node, content: Node | None) -> Result:
    call_id = text_at(message, "tool_call_id") or text_at(message, "toolCallId")
    names = ("name", "function", "toolName", "tool_name")
    name = next((found for found in (text_at(message, key) for key in names) if found), None)
    failed = object_at(message, "error") is not None
    is_error = message.get("isError")
    failed = failed or (is_error is not None and is_error.kind is NodeKind.TRUE)
    if content is not None and content.kind is NodeKind.ARRAY:
        inner = Said("tool")
        read_parts(inner, content)
        if not inner.unreadable and not inner.results:
            return Result(call_id, name, inner.pieces.body, failed)
    return Result(call_id, name, result_text(content), failed)


def _read_content(said: Said, content: Node | None, *, filler: bool) -> None:
    if content is None or content.kind is NodeKind.NULL:
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


def _read_call(said: Said, call: Node) -> None:
    function = object_at(call, "function") or call
    name = text_at(function, "name") or text_at(call, "function")
    if name is None:
        said.unreadable.append(call)
        return
    arguments = function.get("arguments") or function.get("args") or call.get("arguments")
    said.pieces.call(text_at(call, "id"), name, arguments)


def _read_part(said: Said, part: Node) -> None:
    for member, reader in _BY_MEMBER:
        inner = part.get(member)
        if inner is not None and inner.kind is NodeKind.OBJECT:
            reader(said, inner)
            if part.get("thoughtSignature") is not None:
                said.pieces.reasoning()
            return
    reader_of_kind = _BY_KIND.get(text_at(part, "type") or "")
    if reader_of_kind is not None:
        reader_of_kind(said, part)
        return
    if part.get("cachePoint") is not None:
        said.skipped.append(part)
    elif not read_otel_part(said.pieces, part):
        _read_text(said, part)


def _read_text(said: Said, part: Node) -> None:
    text = part.get("text") or part.get("content")
    thought = part.get("thought")
    if text is None or text.kind is not NodeKind.STRING:
        kind = text_at(part, "type")
        if kind and kind not in _KNOWN:
            said.pieces.foreign(kind, part)
        else:
            said.unreadable.append(part)
    elif thought is not None and thought.kind is NodeKind.TRUE:
        said.pieces.reasoning()
    else:
        said.pieces.text(text)
        if part.get("thoughtSignature") is not None:
            said.pieces.reasoning()


def _google_call(said: Said, call: Node) -> None:
    name = text_at(call, "name")
    if name is None:
        said.unreadable.append(call)
    else:
        said.pieces.call(text_at(call, "id"), name, call.get("args"))


def _google_result(said: Said, result: Node) -> None:
    response = result.get("response")
    inner = response
    if response is not None and response.kind is NodeKind.OBJECT:
        members = response.items()
        only = members[0] if len(members) == 1 else None
        if only is not None and only[0] in ("output", "result", "error", "return_value"):
            inner = only[1]
    failed = response is not None and response.get("error") is not None
    said.results.append(
        Result(text_at(result, "id"), text_at(result, "name"), result_text(inner), failed)
    )


def _bedrock_call(said: Said, call: Node) -> None:
    name = text_at(call, "name")
    if name is None:
        said.unreadable.append(call)
    else:
        said.pieces.call(text_at(call, "toolUseId"), name, call.get("input"))


def _bedrock_result(said: Said, result: Node) -> None:
    inner = Said("tool")
    for part in array_at(result, "content"):
        json_part = part.get("json")
        if json_part is not None:
            inner.pieces.plain(json_part.raw)
        else:
            read_parts(inner, [part])
    failed = text_at(result, "status") == "error"
    said.results.append(Result(text_at(result, "toolUseId"), None, inner.pieces.body, failed))
    said.unreadable.extend(inner.unreadable)


def _bedrock_reasoning(said: Said, reasoning: Node) -> None:
    inner = object_at(reasoning, "reasoningText")
    text = inner.get("text") if inner is not None else None
    if inner is not None and text is not None:
        said.pieces.thinking(text, inner.get("signature"))
    else:
        said.pieces.reasoning()


def _typed_call(said: Said, part: Node) -> None:
    name = text_at(part, "name")
    if name is None:
        said.unreadable.append(part)
    else:
        arguments = part.get("arguments") or part.get("input")
        said.pieces.call(text_at(part, "id"), name, arguments)


def _typed_result(said: Said, part: Node) -> None:
    call_id = text_at(part, "id") or text_at(part, "tool_use_id")
    content = part.get("response") or part.get("result") or part.get("content")
    is_error = part.get("is_error")
    failed = is_error is not None and is_error.kind is NodeKind.TRUE
    written = result_text(content)
    if content is not None and holds_parts(content):
        inner = Said("tool")
        read_parts(inner, content)
        written = inner.pieces.body
    said.results.append(Result(call_id, text_at(part, "name"), written, failed))


def _typed_thinking(said: Said, part: Node) -> None:
    text, signature = part.get("thinking"), part.get("signature") or part.get("thinkingSignature")
    if text is not None and signature is not None and signature.text():
        said.pieces.thinking(text, signature)
    else:
        said.pieces.reasoning()


_KNOWN = frozenset(("text", "document", "file"))
"""Kinds that must have content of their own; without it they are unreadable, not foreign."""

_Reader = Callable[[Said, Node], None]


def _media(read: Callable[[Pieces, Node], None]) -> _Reader:
    return lambda said, part: read(said.pieces, part)


_BY_MEMBER: tuple[tuple[str, _Reader], ...] = (
    ("functionCall", _google_call),
    ("function_call", _google_call),
    ("functionResponse", _google_result),
    ("function_response", _google_result),
    ("inlineData", _media(google_data)),
    ("inline_data", _media(google_data)),
    ("fileData", _media(google_data)),
    ("file_data", _media(google_data)),
    ("toolUse", _bedrock_call),
    ("toolResult", _bedrock_result),
    ("reasoningContent", _bedrock_reasoning),
    ("image", _media(bedrock_image)),
)
_BY_KIND: dict[str, _Reader] = {
    "tool_call": _typed_call,
    "toolCall": _typed_call,
    "tool_use": _typed_call,
    "tool_call_response": _typed_result,
    "tool_result": _typed_result,
    "thinking": _typed_thinking,
    "reasoning": _typed_thinking,
    "redacted_thinking": _typed_thinking,
    "image": _media(typed_image),
    "image_url": _media(typed_image),
}
