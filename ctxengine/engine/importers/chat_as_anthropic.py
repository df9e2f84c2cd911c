"""Chat messages with calls or results that stand among Anthropic's, as messages of that API."""

from __future__ import annotations

import json
from collections.abc import Mapping

from ctxengine.engine.content.openai_chat import OPAQUE_MEMBERS, ROUTER_FIELDS, holds_reasoning
from ctxengine.engine.importers.dialect import Turn, object_at, text_at
from ctxengine.engine.importers.members import first_given, id_at, parts_of
from ctxengine.engine.importers.message_marks import RESULT_ROLES
from ctxengine.engine.lexeme import Node, NodeKind, parse

_CALLS = ("tool_calls", "function_call")
_READ = frozenset(("role", "content", "refusal", *_CALLS))
_SAYS_NOTHING = ("null", '""', "[]", "{}")
_ABOUT = frozenset(("usage", "metadata", "model_extra", "token_count"))
"""Objects that tell about a message and are none of what it says, as they are in messages of the other API."""


def chat_as_turn(message: Node) -> Turn | None:
    """The content of such a message with its role; None for a message of any other kind.

    What has no place in a message of that API stands behind its blocks in a list of its own: no block is one, so that each
    value in it is set aside as the file has it.
    """
    value = message.peek()
    role = value.get("role") if isinstance(value, dict) else None
    if role not in RESULT_ROLES and not (role == "assistant" and any(map(value.get, _CALLS))):
        return None
    content = first_given(message, "content")
    if role in RESULT_ROLES:
        # Anything beside results in a tool's message is the tool's too, and would be the user's on its own.
        if content and len(content) and all(text_at(b, "type") == "tool_result" for b in content):
            return Turn("user", content)
        return Turn("user", parse(f"[{_result(message, content)}]"))
    said, left = _said(content), list[Node]()
    _read_members(message, said, left)
    _read_calls(message, said, left)
    if not said:
        return Turn("assistant", message)
    rest = ["[" + ",".join(node.raw for node in left) + "]"] if left else []
    return Turn("assistant", parse("[" + ",".join([*said, *rest]) + "]"))


def _said(content: Node | None) -> list[str]:
    """Blocks of the content; an empty text beside calls is a habit, not something said."""
    blocks = []
    for part in parts_of(content):
        if part.kind is not NodeKind.STRING:
            blocks.append(part.raw)
        elif part.text():
            blocks.append(_object({"type": '"text"', "text": part.raw}))
    return blocks


def _read_members(message: Node, said: list[str], left: list[Node]) -> None:
    """Reasoning goes before what is said, a refusal behind it; other values that are more than a word leave."""
    reasoning = []
    for name, node in message.items():
        if name in _READ or name in _ABOUT or node.raw in _SAYS_NOTHING:
            continue
        if name in OPAQUE_MEMBERS or (name == ROUTER_FIELDS and holds_reasoning(node.peek())):
            reasoning.append(_object({"type": '"reasoning"', name: node.raw}))
        elif node.kind in (NodeKind.OBJECT, NodeKind.ARRAY):
            left.append(node)
    said[:0] = reasoning
    refusal = first_given(message, "refusal")
    if refusal is not None and refusal.kind is not NodeKind.STRING:
        left.append(refusal)
    elif refusal is not None and refusal.text():
        said.append(_object({"type": '"refusal"', "refusal": refusal.raw}))


def _read_calls(message: Node, said: list[str], left: list[Node]) -> None:
    """Calls of functions and of tools that take free text, and the one call of the first versions."""
    calls, legacy = (first_given(message, name) for name in _CALLS)
    for call in [*parts_of(calls), *parts_of(legacy)]:
        block = _call(call)
        if block is None:
            left.append(call)
        else:
            said.append(block)


def _result(message: Node, content: Node | None) -> str:
    told = {"tool_use_id": id_at(message, "tool_call_id"), "name": text_at(message, "name")}
    named = {name: json.dumps(value) for name, value in told.items() if value is not None}
    return _object({"type": '"tool_result"', **named, "content": _raw(content, "null")})


def _call(call: Node) -> str | None:
    """A call, its arguments as they are written: an object, or a text; None where nothing names its tool."""
    function = object_at(call, "function") or object_at(call, "custom") or call
    name = first_given(function, "name")
    if name is None or name.kind is not NodeKind.STRING:
        return None
    return _object(
        {
            "type": '"tool_use"',
            "id": json.dumps(id_at(call, "id")),
            "name": name.raw,
            "input": _raw(first_given(function, "arguments", "input"), "{}"),
        }
    )


def _raw(node: Node | None, missing: str) -> str:
    return missing if node is None else node.raw


def _object(members: Mapping[str, str]) -> str:
    return "{" + ",".join(f"{json.dumps(name)}:{raw}" for name, raw in members.items()) + "}"
