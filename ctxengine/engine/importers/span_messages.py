"""What a span was given and what it gave, as messages.

Exporters write lists, bodies, prompts or bare text, often as text inside text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import NamedTuple

from ctxengine.engine.importers.ai_sdk_parts import sdk_calls
from ctxengine.engine.importers.dialect import Turn, array_at, joined, object_at, text_at
from ctxengine.engine.importers.exchanges import DIALECTS
from ctxengine.engine.importers.instructions import system_text
from ctxengine.engine.importers.loose import loose_turns, role_of_message
from ctxengine.engine.importers.members import first_given
from ctxengine.engine.importers.plain_message import (
    INPUT,
    is_message_object,
    role_of,
    with_members,
)
from ctxengine.engine.importers.transcript import ForeignTool
from ctxengine.engine.lexeme import LexemeError, Node, NodeKind, parse

_SHOWN = re.compile(r"role='\w+' content=")
_FLATTENED = re.compile(r"(?:(?:system|developer): (.*?)\n)?user: (.*)", re.DOTALL)
_FURTHER = re.compile(r"^(?:user|assistant|tool|system|developer): ", re.MULTILINE)
_PROMPTS = ("prompt", "args", "messages", "input")
"""Members under which frameworks keep what they gave the model."""
_NAMED = "kwargs"
"""The member that holds such members, where a function's arguments were recorded."""
_FURTHER_PROMPTS = frozenset(("prompt", "args", "input", "chat_history", "history", "context"))
"""Members beside `messages` that no provider's API has."""
_SETTINGS = frozenset(
    (
        *("model", "modelId", "model_name", "mode", "schema", "user", "metadata", "tags", "config"),
        *("system", "tools", "tool_choice", "toolChoice", "functions", "function_call", "settings"),
        *("stop", "stop_sequences", "stopSequences", "response_format", "responseFormat"),
        *("headers", "extra_headers", "api_key", "apiKey", "base_url", "stream_options"),
        *("providerOptions", "provider_options", "generation_config", "generationConfig"),
        *("model_settings", "modelSettings", "invocation_params"),
    )
)
"""Members that are no content, or that are read in their own places."""


def value_of(node: Node | None) -> Node | None:
    """A value that exporters wrote as text inside text, unwrapped as far as it is JSON."""
    for _ in range(3):
        if node is None or node.kind is not NodeKind.STRING:
            return node
        text = (node.text() or "").strip()
        if not text.startswith(("{", "[", '"')):
            return node
        try:
            node = parse(text)
        except LexemeError:
            return node
    return node


def messages_of(body: Node | None) -> list[Node]:
    """The messages of a request; a bare text, or a prompt alone, is the user's."""
    if body is None or body.kind is NodeKind.NULL:
        return []
    if body.kind is NodeKind.ARRAY:
        # Some frameworks give a batch of conversations; they call the model for each.
        nested = [node for node in body if node.kind is NodeKind.ARRAY]
        nodes = list(nested[0]) if len(nested) == len(body) == 1 else list(body)
        return [_message(node) if _is_prose(node) else node for node in nodes]
    found = prompt_of(body)
    if found is not None:
        system = system_of(body) or system_of(value_of(body.get(_NAMED)) or body)
        return [*system, *messages_of(found.value)]
    return _told_in_prose(body) if _is_prose(body) else [body]


def is_flattened(body: Node | None) -> bool:
    """Whether a request is a text in which its exporter wrote the words of several roles one behind another."""
    found = _FLATTENED.fullmatch(body.text() or "") if body is not None else None
    return found is not None and _FURTHER.search(found[2]) is not None


class Prompt(NamedTuple):
    """What an object gave the model."""

    value: Node
    rest: tuple[Node, ...]
    """What it gave beside that, as one object; empty when that is settings alone."""


def prompt_of(body: Node) -> Prompt | None:
    """The member of an object that the model was given: one that holds messages, else the first that is not empty."""
    if body.kind is not NodeKind.OBJECT or speaks(body):
        return None
    named = value_of(body.get(_NAMED))
    given = [(name, name, body.get(name)) for name in _PROMPTS]
    if named is not None:
        given += [(_NAMED, name, named.get(name)) for name in _PROMPTS]
    found = [
        (outer, name, value) for outer, name, node in given if _is_given(value := value_of(node))
    ]
    if not found:
        return None
    outer, name, value = next((f for f in found if holds_messages(f[2])), found[0])
    members = _beside(body, outer)
    if outer == _NAMED and named is not None:
        members += _beside(named, name)
    return Prompt(value, _as_one(members)) if value is not None else None


def beside_messages(body: Node) -> tuple[Node, ...]:
    """What a body with `messages` gave the model in other members, as one object."""
    members = [member for member in _beside(body, "messages") if member[0] in _FURTHER_PROMPTS]
    return _as_one(members)


def _is_given(value: Node | None) -> bool:
    if value is None or value.kind not in (NodeKind.STRING, NodeKind.ARRAY):
        return False
    return len(value) > 0 or bool(value.text())


def _beside(body: Node, taken: str) -> list[tuple[str, Node]]:
    """Members that say something to the model: no settings, figures or flags."""
    read = _SETTINGS if system_of(body) else _SETTINGS - {"system"}
    left = [(name, node) for name, node in body.items() if name != taken and name not in read]
    return [(name, node) for name, node in left if len(node) > 0 or node.text()]


def _as_one(members: list[tuple[str, Node]]) -> tuple[Node, ...]:
    written = ",".join(f"{json.dumps(name)}:{node.raw}" for name, node in members)
    return (parse("{" + written + "}"),) if written else ()


def _told_in_prose(text: Node) -> list[Node]:
    """A text is the user's, apart from the system's words that some tracers write in front of it.

    Further roles are not looked for: whatever a tool gave could speak in any of them.
    """
    found = _FLATTENED.fullmatch(text.text() or "")
    if found is None or _FURTHER.search(found[2]):
        return [_message(text)]
    system = [_written("system", found[1])] if found[1] is not None else []
    return [*system, _written("user", found[2])]


def holds_messages(body: Node | None) -> bool:
    """Whether a request says who said what, rather than being a text."""
    if body is None:
        return False
    if body.kind is NodeKind.OBJECT:
        return bool(array_at(body, "messages") or array_at(body, "contents"))
    return body.kind is NodeKind.ARRAY and any(map(speaks, body))


def speaks(node: Node) -> bool:
    """Whether a value is a message: it names a role, or is a message some framework printed or wrapped."""
    if node.kind is NodeKind.STRING:
        return _SHOWN.match(node.text() or "") is not None
    if is_message_object(node):
        return True
    return role_of(node) is not None and not is_definition(node)


def is_definition(node: Node) -> bool:
    """Whether a value is a tool definition that its exporter listed among the messages."""
    content = node.get("content")
    if content is None or object_at(content, "function") is None:
        return False
    return role_of_message(node) == "tool"


def tools_among(definitions: Iterable[Node]) -> list[ForeignTool]:
    """The tools that such values define."""
    return tools_of(parse(joined(n for d in definitions if (n := first_given(d, "content")))))


def tools_of(value: Node | None) -> list[ForeignTool]:
    """Definitions, as the conventions or as Chat Completions write them, each maybe as text inside text."""
    if value is None or value.kind is not NodeKind.ARRAY:
        return []
    tools = (value_of(tool) for tool in value)
    listed = joined(tool for tool in tools if tool is not None and tool.kind is NodeKind.OBJECT)
    return list(DIALECTS["openai_chat"].request(parse(f'{{"messages":[],"tools":{listed}}}')).tools)


def answer_turns(body: Node) -> list[Turn]:
    """What a model said, in whatever form; nothing where it said nothing."""
    if body.kind is NodeKind.STRING:
        nothing = (body.text() or "") in ("", "None")
        return [] if nothing else _answer([_message(body, "assistant")])
    calls = sdk_calls(body)
    words = first_given(body, "text", "content")
    words = words if words is not None and words.kind is NodeKind.STRING else None
    if not calls and array_at(body, "toolCalls"):
        # Calls of another form than theirs: the whole answer stands as it was written.
        words = None
    if calls:
        said = (
            f'{{"type":"text","text":{words.raw}}},' if words is not None and words.text() else ""
        )
        parts = said + ",".join(_with_type(call) for call in calls)
        return _answer([parse(f'{{"role":"assistant","content":[{parts}]}}')])
    spoken = [node for node in _parts_of(body) if speaks(node)]
    # Something that no framework's message looks like is still what the model gave.
    return _answer(spoken or [_message(words or body, "assistant")])


def beside_answer(body: Node) -> list[Node]:
    """What stands among the messages of an answer and is none."""
    parts = _parts_of(body)
    return [node for node in parts if not speaks(node)] if any(map(speaks, parts)) else []


def _parts_of(body: Node) -> list[Node]:
    return list(map(_voiced, body)) if body.kind is NodeKind.ARRAY else [_voiced(body)]


def _voiced(node: Node) -> Node:
    """An answer with calls that names no role is the model's."""
    if role_of(node) not in (None, INPUT) or not array_at(node, "tool_calls"):
        return node
    text = text_at(node, "text") if first_given(node, "content") is None else None
    words = {} if text is None else {"content": text}
    return with_members(node, {"role": "assistant", **words})


def _answer(messages: list[Node]) -> list[Turn]:
    """What stands in an answer is the model's or a tool's, whatever role it names.

    Where the model speaks in it under its own name, what others said is input: an answer may hold a whole conversation.
    """
    turns = loose_turns(messages)
    speaks_itself = any(turn.role == "assistant" for turn in turns)
    return [turn._replace(role=_role_in_answer(turn.role, speaks_itself)) for turn in turns]


def _role_in_answer(role: str, speaks_itself: bool) -> str:
    if role == "tool":
        return role
    return INPUT if role in ("user", "system") and speaks_itself else "assistant"


def system_of(body: Node) -> list[Node]:
    """The system text that stands beside the messages of a body, as a message."""
    system = system_text(value_of(body.get("system"))).text
    return [_written("system", system)] if system else []


def unread_system_of(body: Node) -> tuple[Node, ...]:
    """What stands there and is no text."""
    return system_text(value_of(body.get("system"))).unread


def _is_prose(node: Node) -> bool:
    return node.kind is NodeKind.STRING and not speaks(node)


def _message(node: Node, role: str = "user") -> Node:
    """A message of a text; of any other value, which then stands as its JSON text."""
    text = node.raw if node.kind is NodeKind.STRING else json.dumps(node.raw)
    return parse(f'{{"role":"{role}","content":{text}}}')


def _written(role: str, text: str) -> Node:
    return parse(json.dumps({"role": role, "content": text}))


def _with_type(call: Node) -> str:
    return '{"type":"tool-call",' + call.raw.lstrip()[1:]
