"""Messages of a span in the older forms of the GenAI conventions: numbered attributes, and events of the span.

Traceloop's and Koog's spans number them (`gen_ai.prompt.0.role`), OpenInference's too (`llm.input_messages.0.message.role`);
others log an event for each message, which Logfire keeps as a list in one attribute.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from ctxengine.engine.importers.dialect import array_at, object_at, text_at
from ctxengine.engine.importers.members import first_given
from ctxengine.engine.importers.span_messages import value_of
from ctxengine.engine.lexeme import Node, NodeKind, parse

_NUMBERED = {
    "input": re.compile(
        r"(?:gen_ai\.prompt|llm\.input_messages)\.(\d{1,6})\.(?:message\.)?(.+)", re.ASCII
    ),
    "output": re.compile(
        r"(?:gen_ai\.completion|llm\.output_messages)\.(\d{1,6})\.(?:message\.)?(.+)", re.ASCII
    ),
}
_CALL = re.compile(
    r"tool_calls\.(\d{1,6})\.(?:tool_call\.)?(?:function\.)?(id|name|arguments)", re.ASCII
)
_PART = re.compile(r"contents\.(\d{1,6})\.(?:message_content\.)?(.+)", re.ASCII)
_ONLY_CALL = {"function_call_name": "name", "function_call_arguments_json": "arguments"}
"""A call in OpenInference's older form, of which a message has one."""
_REASONING = re.compile(r"reasoning|thinking", re.IGNORECASE)
_NO_CONTENT = re.compile(
    r"tool_calls\.\d+\.(?:tool_call\.)?(?:function\.)?(?:type|index)", re.ASCII
)
_IMAGE = "image.image.url"
_PLAIN = ("role", "content", "finish_reason", "tool_call_id", "name")
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)")
"""What JSON takes for a whole number; a 64-bit one stands as text in OTLP, and then may be anything."""
_SAID = ("role", "content", "parts", "tool_calls", "finish_reason", "name", "reasoning_content")
_EVENT = re.compile(r"gen_ai\.(system|user|assistant|tool)\.message|gen_ai\.choice")


def plain_values(attributes: Iterable[Node]) -> dict[str, Node]:
    """Attributes of OTLP by name, their typed values in plain JSON."""
    found: dict[str, Node] = {}
    for attribute in attributes:
        key, value = text_at(attribute, "key"), object_at(attribute, "value")
        typed = _typed(value)
        if key is not None and value is not None and typed is not None:
            kind, inner = typed
            found[key] = parse(_plain(value)) if kind in _NESTED else inner
    return found


_NESTED = ("arrayValue", "kvlistValue")


def _typed(value: Node | None) -> tuple[str, Node] | None:
    """The one member of a typed value that is given; dumps write the others as null."""
    members = value.items() if value is not None else ()
    return next((pair for pair in members if pair[1].kind is not NodeKind.NULL), None)


def _plain(value: Node) -> str:
    """JSON text of a typed value."""
    typed = _typed(value)
    if typed is None:
        return "null"
    kind, inner = typed
    if kind == "arrayValue":
        return "[" + ",".join(map(_plain, array_at(inner, "values"))) + "]"
    if kind == "kvlistValue":
        pairs = (
            (text_at(p, "key") or "", object_at(p, "value")) for p in array_at(inner, "values")
        )
        told = (f"{json.dumps(key)}:{_plain(v) if v is not None else 'null'}" for key, v in pairs)
        return "{" + ",".join(told) + "}"
    if kind == "intValue" and _INTEGER.fullmatch(inner.text() or ""):
        return inner.text() or "null"
    return inner.raw


def numbered_messages(given: Mapping[str, Node], side: str) -> Node | None:
    """Messages whose members are attributes of their own; None where there are none."""
    members: dict[int, dict[str, Node]] = {}
    for key, node in given.items():
        found = _NUMBERED[side].fullmatch(key)
        if found is not None:
            members.setdefault(int(found[1]), {})[found[2]] = node
    if not members:
        return None
    return parse("[" + ",".join(_numbered(members[n]) for n in sorted(members)) + "]")


def _numbered(members: dict[str, Node]) -> str:
    """JSON text of one message; members of unknown names stand together in a part of their own."""
    told = {name: members[name].raw for name in _PLAIN if name in members}
    told.setdefault("role", '"assistant"')
    calls: dict[int, dict[str, str]] = {}
    parts: dict[int, dict[str, Node]] = {}
    others: dict[str, str] = {}
    for name, node in members.items():
        if call := _CALL.fullmatch(name):
            calls.setdefault(int(call[1]), {})[call[2]] = node.raw
        elif name in _ONLY_CALL:
            calls.setdefault(-1, {})[_ONLY_CALL[name]] = node.raw
        elif part := _PART.fullmatch(name):
            parts.setdefault(int(part[1]), {})[part[2]] = node
        elif _REASONING.search(name):
            told["reasoning_content"] = node.raw
        elif name not in _PLAIN and not _NO_CONTENT.fullmatch(name):
            others[name] = node.raw
    content = [_part(parts[n]) for n in sorted(parts)]
    if others:
        content.append(_foreign(others))
    if content:
        told["content"] = "[" + ",".join([*_text_before(told), *content]) + "]"
    if calls:
        told["tool_calls"] = "[" + ",".join(_call(calls[n]) for n in sorted(calls)) + "]"
    return _object(told)


def _text_before(told: Mapping[str, str]) -> list[str]:
    """The content that a message has beside its parts, as parts."""
    content = parse(told.get("content", "null"))
    if content.kind is NodeKind.ARRAY:
        return [part.raw for part in content]
    return [f'{{"type":"text","text":{content.raw}}}'] if content.text() else []


def _part(members: dict[str, Node]) -> str:
    """JSON text of one part: a text, an image by address, reasoning, or whatever its exporter knows."""
    kind = members["type"].text() if "type" in members else None
    if _REASONING.search(kind or ""):
        return '{"type":"reasoning"}'
    told = {name: node.raw for name, node in members.items() if name != "type"}
    if told.keys() == {"text"}:
        return _object({"type": '"text"', **told})
    if told.keys() == {_IMAGE}:
        return _object({"type": '"image_url"', "image_url": _object({"url": told[_IMAGE]})})
    return _foreign({name: node.raw for name, node in members.items()})


def _foreign(members: Mapping[str, str]) -> str:
    return _object({"type": '"span_attributes"', "part": _object(members)})


def _call(members: dict[str, str]) -> str:
    function = {name: raw for name, raw in members.items() if name != "id"}
    identity = {"id": members["id"]} if "id" in members else {}
    return _object({**identity, "type": '"function"', "function": _object(function)})


def event_messages(span: Node, given: Mapping[str, Node], side: str) -> Node | None:
    """Messages that a span's events tell, one each; None where there are none."""
    logged = value_of(given.get("events"))
    events = list(logged) if logged is not None and logged.kind is NodeKind.ARRAY else []
    told: list[str] = []
    for event in [*events, *array_at(span, "events")]:
        attributes = first_given(event, "attributes")
        if attributes is not None and attributes.kind is NodeKind.ARRAY:
            body = plain_values(attributes)
        else:
            body = dict((attributes or event).items())
        name = text_at(event, "name") or text_at(event, "event.name") or ""
        whole = body.get(f"gen_ai.{side}.messages")
        if whole is not None and whole.kind is not NodeKind.NULL:
            return whole
        found = _EVENT.fullmatch(name)
        if found is not None and (found[1] is None) == (side == "output"):
            told.append(_said(body, found[1]))
    return parse("[" + ",".join(told) + "]") if told else None


def _said(body: Mapping[str, Node], role: str | None) -> str:
    """JSON text of the message of one event; a choice holds its message, and some write either as one attribute."""
    written = value_of(body.get("gen_ai.event.content"))
    body = {**body, **dict(written.items() if written is not None else ())}
    message = value_of(body.get("message"))
    members = (
        dict(message.items()) if message is not None and message.kind is NodeKind.OBJECT else {}
    )
    if message is not None and message.kind is NodeKind.STRING:
        members = {"content": message}
    told: dict[str, str] = {"role": json.dumps(role or "assistant")}
    for name, node in {**body, **members}.items():
        value = value_of(node) if name == "tool_calls" else node
        if name in _SAID and value is not None and value.kind is not NodeKind.NULL:
            told[name] = value.raw
        elif name == "id" and role == "tool":
            told["tool_call_id"] = node.raw
    return _object(told)


def _object(members: Mapping[str, str]) -> str:
    return "{" + ",".join(f"{json.dumps(name)}:{raw}" for name, raw in members.items()) + "}"
