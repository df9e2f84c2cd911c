"""Reading one OpenAI Chat Completions message, or one of a chat API that is close kin.

Developer and system messages inside a conversation become user-role messages: the event's trust
says who wrote them. A refusal is what the model said, hence text. Reasoning fields that chat
servers add are opaque.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ctxengine.engine.content.assembly import Assembly, Reading
from ctxengine.engine.content.errors import ContentError
from ctxengine.engine.content.fields import (
    field,
    objects,
    optional_text,
    parsed,
    required_text,
    string_of,
    text_or_raw,
)
from ctxengine.engine.content.media import openai_file, openai_image
from ctxengine.engine.content.slices import Member, Span, element_spans, member_spans, without
from ctxengine.engine.items import ForeignPart, ItemKind, Part, TextPart
from ctxengine.engine.lexeme import Node, NodeKind

OPAQUE_MEMBERS = ("reasoning_content", "reasoning", "reasoning_details", "thinking_blocks")
"""Members of an assistant message that hold its reasoning."""
ROUTER_FIELDS = "provider_specific_fields"
"""Where a router puts what its own format has no place for: among it, signed thinking."""


class ChatDialect(NamedTuple):
    """What differs between chat APIs of one shape."""

    api: str
    opaque_members: tuple[str, ...]
    """Members of an assistant message that hold its reasoning."""


OPENAI = ChatDialect("openai", OPAQUE_MEMBERS)
OLLAMA = ChatDialect("ollama", ("thinking",))

_API = OPENAI.api
_WHAT = "OpenAI chat message"
_OPAQUE_PARTS = ("thinking", "reasoning")
_USER_ROLES = ("user", "developer", "system")
_RESULT_ROLES = ("tool", "function")


def read_message(body: str, dialect: ChatDialect = OPENAI) -> Reading:
    """Decode one message object.

    Raises:
        ContentError: the body is not one, or its role is unknown.
    """
    message = _message(body)
    role = required_text(message, "role", "message")
    if role in _USER_ROLES:
        assembly = Assembly(ItemKind.USER_MESSAGE)
        _content(assembly, message)
    elif role in _RESULT_ROLES:
        assembly = Assembly(ItemKind.USER_MESSAGE)
        assembly.result(
            optional_text(message, "tool_call_id", "message"),
            _result_parts(message),
            name=optional_text(message, "name", "message")
            or optional_text(message, "tool_name", "message"),
        )
    elif role == "assistant":
        assembly = _assistant(message, body, dialect)
    else:
        raise ContentError(
            f"{_WHAT}: role {role!r} is unknown; expected user, assistant, tool, function, "
            "developer or system."
        )
    return assembly.reading()


def strip_message(body: str, dialect: ChatDialect = OPENAI) -> str:
    """The body without its reasoning; everything else keeps its bytes."""
    message = _message(body)
    if optional_text(message, "role", "message") != "assistant":
        return body
    content = field(message, "content")
    if content is not None and content.kind is NodeKind.ARRAY:
        kinds = [kind for _, kind, _ in objects(content, "message.content")]
        drop = [index for index, kind in enumerate(kinds) if kind in _OPAQUE_PARTS]
        if drop:
            body = _without_parts(body, drop)
    members = member_spans(body)
    opaque = _opaque_members(message, dialect)
    dropped = [i for i, member in enumerate(members) if _is_opaque(body, member, opaque)]
    return without(body, tuple(member.whole for member in members), dropped)


def _message(body: str) -> Node:
    message = parsed(body, _WHAT)
    if message.kind is not NodeKind.OBJECT:
        raise ContentError(f"{_WHAT}: an object is required, found {message.kind}.")
    return message


def _without_parts(body: str, drop: list[int]) -> str:
    start, end = next(m.value for m in reversed(member_spans(body)) if m.key == "content")
    content = body[start:end]
    return body[:start] + without(content, element_spans(content), drop) + body[end:]


def holds_reasoning(router_fields: Any) -> bool:
    """Whether a router's own fields hold the reasoning of the answer they stand beside."""
    return isinstance(router_fields, dict) and any(map(router_fields.get, OPAQUE_MEMBERS))


def _opaque_members(message: Node, dialect: ChatDialect) -> tuple[str, ...]:
    """Members of a message that hold its reasoning, as far as they are there."""
    found = tuple(name for name in dialect.opaque_members if field(message, name) is not None)
    fields = field(message, ROUTER_FIELDS)
    if dialect is OPENAI and fields is not None and holds_reasoning(fields.peek()):
        return (*found, ROUTER_FIELDS)
    return found


def _is_opaque(body: str, member: Member, opaque: tuple[str, ...]) -> bool:
    return member.key in opaque and _text(body, member.value) != "null"


def _text(body: str, span: Span) -> str:
    return body[span.start : span.end]


def _assistant(message: Node, body: str, dialect: ChatDialect) -> Assembly:
    assembly = Assembly(ItemKind.ASSISTANT_MESSAGE)
    opaque = _opaque_members(message, dialect)
    if opaque:
        for member in member_spans(body):
            if _is_opaque(body, member, opaque):
                assembly.opaque(member.key, "{" + _text(body, member.whole) + "}", dialect.api)
    calls, legacy = field(message, "tool_calls"), field(message, "function_call")
    _content(assembly, message, filler=calls is not None or legacy is not None)
    refusal = optional_text(message, "refusal", "message")
    if refusal:
        assembly.part(TextPart(refusal))
    audio = field(message, "audio")
    if audio is not None:
        assembly.part(ForeignPart(kind="audio", raw=audio.raw, api=_API))
    if calls is not None:
        if calls.kind is not NodeKind.ARRAY:
            raise ContentError(f"message.tool_calls: an array is required, found {calls.kind}.")
        for where, _, call in objects(calls, "message.tool_calls"):
            _call(assembly, call, where)
    if legacy is not None:
        name = required_text(legacy, "name", "message.function_call")
        assembly.call(None, name, text_or_raw(field(legacy, "arguments")))
    return assembly


def _call(assembly: Assembly, call: Node, where: str) -> None:
    call_id = optional_text(call, "id", where)
    custom = field(call, "custom")
    if custom is not None:
        name = required_text(custom, "name", f"{where}.custom")
        assembly.call(call_id, name, text_or_raw(field(custom, "input")))
        return
    function = field(call, "function")
    if function is None:
        raise ContentError(f"{where}: a tool call needs a `function` or `custom` object.")
    name = required_text(function, "name", f"{where}.function")
    assembly.call(call_id, name, text_or_raw(field(function, "arguments")))


def _content(assembly: Assembly, message: Node, *, filler: bool = False) -> None:
    """Add the content; an empty text beside calls (`filler`) is a habit, not something said."""
    content = field(message, "content")
    if content is None:
        return
    if content.kind is NodeKind.STRING:
        text = string_of(content, "message.content")
        if text or not filler:
            assembly.part(TextPart(text))
        return
    if content.kind is not NodeKind.ARRAY:
        raise ContentError(
            f"message.content: a string, an array or null is required, found {content.kind}."
        )
    for where, kind, part in objects(content, "message.content"):
        if kind in _OPAQUE_PARTS:
            assembly.opaque(kind, part.raw, _API)
        else:
            assembly.part(_part(part, kind, where))


def _part(part: Node, kind: str, where: str) -> Part:
    if kind == "text":
        return TextPart(required_text(part, "text", where))
    if kind == "refusal":
        return TextPart(required_text(part, "refusal", where))
    if kind == "image_url":
        return openai_image(part, where, _API)
    if kind == "file":
        return openai_file(part, where, _API)
    if not kind:
        raise ContentError(f"{where}: a content part needs a `type`; found none.")
    return ForeignPart(kind=kind, raw=part.raw, api=_API)


def _result_parts(message: Node) -> tuple[Part, ...]:
    content = field(message, "content")
    if content is not None and content.kind is NodeKind.STRING:
        text = string_of(content, "message.content")
        return (TextPart(text),) if text else ()
    if content is None:
        return ()
    if content.kind is not NodeKind.ARRAY:
        raise ContentError(
            f"message.content: a string, an array or null is required, found {content.kind}."
        )
    return tuple(_part(node, kind, at) for at, kind, node in objects(content, "message.content"))
