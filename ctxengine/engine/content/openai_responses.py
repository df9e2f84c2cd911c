"""Reading OpenAI Responses items.

Each message is an item of its own, with its `phase`. Calls that a client executes and answers
(functions, custom tools, shells, patches, computers) become call and result items, so that pairs
hold whatever their type; items of server-side tools stay raw. Reasoning items are opaque.
"""

from __future__ import annotations

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
from ctxengine.engine.content.slices import element_spans, without
from ctxengine.engine.items import ForeignPart, ItemKind, Part, TextPart
from ctxengine.engine.lexeme import Node, NodeKind

CALL_ARGUMENTS = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "local_shell_call": "action",
    "shell_call": "action",
    "apply_patch_call": "operation",
    "computer_call": "action",
}
"""Item types a client executes, and the member that holds what to do."""

_API = "openai-responses"
_WHAT = "OpenAI Responses items"
_OPAQUE = "reasoning"
_TEXT_MEMBER = {
    "input_text": "text",
    "output_text": "text",
    "text": "text",
    "refusal": "refusal",
}
_OUTPUT_SUFFIX = "_output"


def read_items(body: str) -> Reading:
    """Decode an array of items.

    Raises:
        ContentError: the body is not one.
    """
    assembly = Assembly(ItemKind.ASSISTANT_MESSAGE)
    entries = list(objects(_root(body), "items"))
    for (where, kind, item), follower in zip(entries, _followers(entries), strict=True):
        if kind == _OPAQUE:
            assembly.speak(ItemKind.ASSISTANT_MESSAGE)
            assembly.opaque(kind, item.raw, _API, follower)
        else:
            _take(assembly, item, kind, where)
    return assembly.reading()


def strip_items(body: str) -> str:
    """The body without its reasoning items; everything else keeps its bytes."""
    drop = [i for i, (_, kind, _) in enumerate(objects(_root(body), "items")) if kind == _OPAQUE]
    return without(body, element_spans(body), drop) if drop else body


def _root(body: str) -> Node:
    root = parsed(body, _WHAT)
    if root.kind is not NodeKind.ARRAY:
        raise ContentError(f"{_WHAT}: an array is required, found {root.kind}.")
    return root


def _followers(entries: list[tuple[str, str, Node]]) -> list[str | None]:
    """For each entry the id of the first one behind it that is no reasoning."""
    follower: str | None = None
    found: list[str | None] = []
    for where, kind, item in reversed(entries):
        found.append(follower)
        if kind != _OPAQUE:
            follower = optional_text(item, "id", where)
    return found[::-1]


def _take(assembly: Assembly, item: Node, kind: str, where: str) -> None:
    if kind in CALL_ARGUMENTS and _call_id(item, where) is not None:
        name = optional_text(item, "name", where) or kind.removesuffix("_call")
        assembly.call(_call_id(item, where), name, text_or_raw(field(item, CALL_ARGUMENTS[kind])))
    elif kind.removesuffix(_OUTPUT_SUFFIX) in CALL_ARGUMENTS and kind.endswith(_OUTPUT_SUFFIX):
        assembly.result(_call_id(item, where), _output(item, where))
    elif kind == "message" or (not kind and field(item, "role") is not None):
        _message(assembly, item, where)
    elif kind:
        assembly.speak(ItemKind.ASSISTANT_MESSAGE)
        assembly.part(ForeignPart(kind=kind, raw=item.raw, api=_API))
    else:
        raise ContentError(f"{where}: an item needs a `type` or a `role`; found neither.")


def _call_id(item: Node, where: str) -> str | None:
    call_id = optional_text(item, "call_id", where)
    return optional_text(item, "id", where) if call_id is None else call_id


def _message(assembly: Assembly, item: Node, where: str) -> None:
    role = required_text(item, "role", where)
    if role not in ("assistant", "user", "developer", "system"):
        raise ContentError(
            f"{where}.role: {role!r} is unknown; expected user, assistant, developer or system."
        )
    kind = ItemKind.ASSISTANT_MESSAGE if role == "assistant" else ItemKind.USER_MESSAGE
    assembly.speak(kind, optional_text(item, "phase", where))
    content = field(item, "content")
    if content is None:
        return
    if content.kind is NodeKind.STRING:
        assembly.part(TextPart(string_of(content, where)))
        return
    for part in _parts(content, f"{where}.content"):
        assembly.part(part)


def _output(item: Node, where: str) -> tuple[Part, ...]:
    output = field(item, "output")
    if output is None:
        return ()
    if output.kind is NodeKind.STRING:
        text = string_of(output, where)
        return (TextPart(text),) if text else ()
    if output.kind is NodeKind.OBJECT:
        return (ForeignPart(kind="output", raw=output.raw, api=_API),)
    return _parts(output, f"{where}.output")


def _parts(content: Node, where: str) -> tuple[Part, ...]:
    if content.kind is not NodeKind.ARRAY:
        raise ContentError(
            f"{where}: a string or an array of parts is required, found {content.kind}."
        )
    return tuple(_part(node, kind, at) for at, kind, node in objects(content, where))


def _part(part: Node, kind: str, where: str) -> Part:
    if kind in _TEXT_MEMBER:
        return TextPart(required_text(part, _TEXT_MEMBER[kind], where))
    if kind == "input_image":
        return openai_image(part, where, _API)
    if kind == "input_file":
        return openai_file(part, where, _API)
    if not kind:
        raise ContentError(f"{where}: a content part needs a `type`; found none.")
    return ForeignPart(kind=kind, raw=part.raw, api=_API)
