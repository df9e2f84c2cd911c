"""Messages that a framework wraps or names in its own way, in the plain form of a role and what it says."""

from __future__ import annotations

import json
from collections.abc import Collection

from ctxengine.engine.importers.dialect import array_at, object_at, text_at
from ctxengine.engine.importers.members import first_given
from ctxengine.engine.lexeme import LexemeError, Node, NodeKind, parse

ROLES = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "model": "assistant",
    "ai": "assistant",
    "chatbot": "assistant",
    "tool": "tool",
    "function": "tool",
    "toolresult": "tool",
    "system": "system",
    "developer": "system",
}
"""Roles by the names that providers and frameworks give them, in small letters."""
INPUT = "input"
"""The role of what somebody said who is none of these: it is no directive, and nobody vouches for it."""
_CLASSES = {
    "HumanMessage": "user",
    "AIMessage": "assistant",
    "ToolMessage": "tool",
    "FunctionMessage": "tool",
    "SystemMessage": "system",
}
"""LangChain's classes, whose serialised objects name no role."""


def known_role(name: str) -> str | None:
    """The role that a name stands for; frameworks name it by the class of the message, or of a piece of it."""
    plain = name.strip().lower().rpartition(".")[2].removesuffix("chunk").removesuffix("message")
    return ROLES.get(plain)


def role_of(message: Node) -> str | None:
    """The role of a message: one that is known, `INPUT` for any other; None where it names none.

    Dumps of LangChain's messages name it in their type alone.
    """
    named = first_given(message, "role")
    if named is not None:
        return known_role(named.text() or "") or INPUT
    says = first_given(message, "content", "tool_calls", "additional_kwargs")
    kind = text_at(message, "type")
    return known_role(kind) if kind is not None and says is not None else None


def plain_message(message: Node, called: Collection[str]) -> Node:
    """The message itself, or what its wrapper says.

    Args:
        message: As the framework wrote it.
        called: Names of the tools that were called before it: a tracer may give a result the name of its tool for a role.
    """
    if message.kind is not NodeKind.OBJECT:
        return message
    inner = _constructed(message)
    if inner is not None:
        role = _role_of_class(message, inner)
        return message if role is None else with_members(inner, {"role": role})
    role = text_at(message, "role")
    if role is not None and role in called and known_role(role) is None:
        return with_members(message, {"role": "tool", "name": role})
    return message


def is_message_object(node: Node) -> bool:
    """Whether a serialised object is a message."""
    inner = _constructed(node)
    return inner is not None and _role_of_class(node, inner) is not None


def is_other_object(node: Node) -> bool:
    """Whether it is a serialised object that is no message: a document, a prompt."""
    return _constructed(node) is not None and not is_message_object(node)


def _constructed(node: Node) -> Node | None:
    """What a serialised object was made from; None for any other value."""
    return object_at(node, "kwargs") if text_at(node, "type") == "constructor" else None


def _role_of_class(node: Node, inner: Node) -> str | None:
    """The role that its class stands for, or that it was given; None for what is no message."""
    path = array_at(node, "id")
    name = (path[-1].text() if path else None) or ""
    given = text_at(inner, "role")
    return _CLASSES.get(name.removesuffix("Chunk")) or (given if "Message" in name else None)


def written_calls(content: Node) -> list[Node]:
    """Calls that a tracer wrote into the text of an answer as JSON; none when the text is anything else."""
    text = (content.text() or "").strip()
    if not text.startswith("[") or '"function"' not in text:
        return []
    try:
        values = list(parse(text))
    except LexemeError:
        return []
    return values if values and all(map(_is_call, values)) else []


def _is_call(value: Node) -> bool:
    function = object_at(value, "function")
    return text_at(function, "name") is not None and text_at(value, "id") is not None


def with_members(message: Node, members: dict[str, str]) -> Node:
    """The message with these members in the place of its own."""
    rest = [f"{json.dumps(key)}:{node.raw}" for key, node in message.items() if key not in members]
    told = json.dumps(members)[:-1]
    return parse(",".join([told, *rest]) + "}")
