"""What a received message holds, counted on the source itself: items, calls, reasoning, empty text.

This is a second reading beside `engine/content`, made on plain values and therefore several times faster; it decides
what a file *contains*, the decoders decide what the ledger *gets*, and the repair report must close the gap between the
two. Whatever is not plain here is left to the decoder (`None`), whose word then counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from ctxengine.engine.content.anthropic import OPAQUE_TYPES
from ctxengine.engine.content.decode import Role, decode, strip_opaque
from ctxengine.engine.content.openai_chat import OPAQUE_MEMBERS, ROUTER_FIELDS, holds_reasoning
from ctxengine.engine.content.openai_responses import CALL_ARGUMENTS
from ctxengine.engine.items import ContentFormat, ItemKind, TextPart
from ctxengine.engine.lexeme import is_json_object, parse

_MAY_BE_OPAQUE = frozenset((*OPAQUE_MEMBERS, ROUTER_FIELDS))
_FLAGS = (None, True, False)
_FOREIGN_BLOCKS = frozenset(
    (
        *("server_tool_use", "web_search_tool_result", "web_fetch_tool_result", "mcp_tool_use"),
        *("mcp_tool_result", "code_execution_tool_result", "bash_code_execution_tool_result"),
        *("text_editor_code_execution_tool_result", "tool_search_tool_result", "compaction"),
        *("search_result", "container_upload"),
    )
)
"""Blocks of Anthropic's that stay as they are; what any other kind of block holds the decoder says."""


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call of a message, at the place the decoder will give it."""

    ordinal: int
    call_id: str | None
    name: str
    broken: bool = False
    """Arguments that are neither empty nor the text of a JSON object."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Counts of one message or of one part of it."""

    items: int
    """Items as the ledger counts them: a run of neighbouring parts, a call, a result."""
    calls: tuple[Call, ...] = ()
    reasoning: int = 0
    """Reasoning blocks; they make no item."""
    empty: int = 0
    """Texts without a character."""
    result_id: str | None = None
    """For a result, the call id it names."""

    @property
    def total(self) -> int:
        """What the source holds here, reasoning included; an empty message counts as one thing found."""
        return self.items + self.reasoning or 1


class _Odd(Exception):
    """The value is not of the plain kind this module counts."""


class Tally:
    """Counts parts, calls and results in order, by the grouping rule of the decoders."""

    def __init__(self) -> None:
        self.items = self.reasoning = self.empty = 0
        self.calls: list[Call] = []
        self._open = False

    def part(self, text: str | None = None) -> None:
        """A part of a message; neighbours are one item."""
        if text == "":
            self.empty += 1
        if not self._open:
            self.items += 1
            self._open = True

    def close(self) -> None:
        """The next part belongs to another item."""
        self._open = False

    def call(self, call_id: str | None, name: str, *, broken: bool) -> None:
        """A call: an item of its own."""
        self.calls.append(Call(self.items, call_id, name, broken))
        self.single()

    def single(self) -> None:
        """An item of its own that is no call."""
        self._open = False
        self.items += 1

    def shape(self, result_id: str | None = None) -> Shape:
        """The counts so far."""
        return Shape(self.items, tuple(self.calls), self.reasoning, self.empty, result_id)


def chat_shape(message: Any) -> Shape | None:
    """Count one OpenAI chat message; None when only the decoder can tell."""
    try:
        return _chat(message)
    except _Odd:
        return None


def anthropic_shape(content: Any) -> Shape | None:
    """Count the content of one Anthropic message; None when only the decoder can tell."""
    try:
        return _anthropic(content)
    except _Odd:
        return None


def responses_shape(items: list[Any]) -> Shape | None:
    """Count Responses items; None when only the decoder can tell."""
    try:
        return _responses(items)
    except _Odd:
        return None


def decoded_shape(format: ContentFormat, body: str, *, role: Role) -> Shape:
    """Count a body by decoding it.

    Raises:
        ContentError: the body is not written in that format.
    """
    stripped = strip_opaque(format, body, role=role)
    items = decode(format, stripped.body, role=role).items
    called = [item for item in items if item.kind is ItemKind.TOOL_CALL]
    calls = tuple(
        Call(i.ordinal, i.call_id, i.name or "", not is_free and is_broken(i.arguments or ""))
        for i, is_free in zip_longest(called, _free_text_calls(body)[: len(called)])
    )
    results = [i for i in items if i.kind is ItemKind.TOOL_RESULT]
    messages = (i for i in items if i.kind not in (ItemKind.TOOL_CALL, ItemKind.TOOL_RESULT))
    empty = sum(part == TextPart("") for item in messages for part in item.parts)
    return Shape(
        len(items), calls, len(stripped.opaque), empty, results[0].call_id if results else None
    )


def _free_text_calls(body: str) -> list[bool]:
    """For each call in turn whether it is to a tool that takes free text, in the Chat and the Responses API."""
    if '"custom' not in body:
        return []
    root = parse(body).peek()
    if isinstance(root, dict):
        calls = root.get("tool_calls")
        listed = calls if isinstance(calls, list) else []
        return [isinstance(call, dict) and call.get("custom") is not None for call in listed]
    items = [item for item in root if isinstance(item, dict)] if isinstance(root, list) else []
    return [item["type"] == "custom_tool_call" for item in items if _is_client_call(item)]


def _is_client_call(item: dict[str, Any]) -> bool:
    kind, names = item.get("type"), (item.get("call_id"), item.get("id"))
    return isinstance(kind, str) and kind in CALL_ARGUMENTS and names != (None, None)


def is_broken(arguments: str) -> bool:
    """Whether the text of a call's arguments could not go on a wire; an empty text counts as no arguments."""
    return bool(arguments) and not is_json_object(arguments)


def _chat(message: Any) -> Shape:
    _need(isinstance(message, dict))
    role, content, tally = message.get("role"), message.get("content"), Tally()
    if role == "assistant":
        _chat_assistant(tally, message, content)
        return tally.shape()
    if role == "tool":
        result_id = _string_or_none(message.get("tool_call_id"))
        _string_or_none(message.get("name"))
        _string_or_none(message.get("tool_name"))
        _plain_parts(content)
        return Shape(1, result_id=result_id)
    _need(role in ("user", "system", "developer"))
    _chat_content(tally, content)
    return tally.shape()


def _chat_assistant(tally: Tally, message: dict[str, Any], content: Any) -> None:
    _need(message.get("function_call") is None and message.get("audio") is None)
    if not _MAY_BE_OPAQUE.isdisjoint(message):
        tally.reasoning += sum(message.get(name) is not None for name in OPAQUE_MEMBERS)
        tally.reasoning += holds_reasoning(message.get(ROUTER_FIELDS))
    calls = message.get("tool_calls")
    if content != "" or calls is None:
        _chat_content(tally, content)
    refusal = _string_or_none(message.get("refusal"))
    if refusal:
        tally.part(refusal)
    if calls is not None:
        _need(isinstance(calls, list))
        for call in calls:
            function = call.get("function") if isinstance(call, dict) else None
            if not isinstance(function, dict) or call.get("custom") is not None:
                raise _Odd
            _string_or_none(call.get("type"))
            name, arguments = function.get("name"), function.get("arguments")
            if not isinstance(name, str) or not isinstance(arguments, str):
                raise _Odd
            tally.call(_string_or_none(call.get("id")), name, broken=is_broken(arguments))


def _chat_content(tally: Tally, content: Any) -> None:
    if content is None:
        return
    if isinstance(content, str):
        tally.part(content)
        return
    _plain_parts(content)
    for part in content:
        tally.part(part["text"])


def _anthropic(content: Any) -> Shape:
    tally = Tally()
    if isinstance(content, str):
        tally.part(content)
        return tally.shape()
    _need(isinstance(content, list))
    results = [name for block in content if (name := _anthropic_block(tally, block)) is not None]
    return tally.shape(results[0] if results else None)


def _anthropic_block(tally: Tally, block: Any) -> str | None:
    """Count one block; gives the call id of a result."""
    kind = block.get("type") if isinstance(block, dict) else None
    _need(isinstance(kind, str))
    if kind == "text":
        _need(isinstance(block.get("text"), str))
        tally.part(block["text"])
    elif kind == "tool_use":
        _need(isinstance(block.get("name"), str))
        call_id = _string_or_none(block.get("id"))
        tally.call(call_id, block["name"], broken=_is_broken_value(block.get("input")))
    elif kind == "tool_result":
        result_id = _string_or_none(block.get("tool_use_id"))
        # By identity: 0 and 1 equal the flags and are none.
        _need(result_id is not None and any(block.get("is_error") is flag for flag in _FLAGS))
        _string_or_none(block.get("name"))
        _plain_parts(block.get("content"))
        tally.single()
        return result_id
    elif kind in OPAQUE_TYPES:
        tally.reasoning += 1
    else:
        _need(kind in _FOREIGN_BLOCKS)
        tally.part()
    return None


def _is_broken_value(arguments: Any) -> bool:
    """Whether arguments that stand as a value, or as the text of one, could not go on a wire."""
    if isinstance(arguments, str):
        return is_broken(arguments)
    return arguments is not None and not isinstance(arguments, dict)


def _responses(items: list[Any]) -> Shape:
    tally = Tally()
    result_id: str | None = None
    for item in items:
        kind = item.get("type") if isinstance(item, dict) else None
        _need(isinstance(item, dict) and (kind is None or isinstance(kind, str)))
        tally.close()
        _string_or_none(item.get("id"))
        if kind == "reasoning":
            tally.reasoning += 1
        elif kind == "function_call":
            call_id, name, arguments = item.get("call_id"), item.get("name"), item.get("arguments")
            _need(isinstance(call_id, str) and _is_name(name) and isinstance(arguments, str))
            tally.call(call_id, name, broken=is_broken(arguments))
        elif kind == "custom_tool_call":
            # What such a tool is given is free text.
            call_id, name = item.get("call_id"), item.get("name")
            _need(isinstance(call_id, str) and _is_name(name))
            _need(isinstance(item.get("input"), str))
            tally.call(call_id, name, broken=False)
        elif kind in ("function_call_output", "custom_tool_call_output"):
            call_id = _string_or_none(item.get("call_id"))
            _need(call_id is not None and isinstance(item.get("output"), str | None))
            result_id = call_id if result_id is None else result_id
            tally.single()
        elif kind == "message" or not kind:
            _responses_message(tally, item)
        else:
            _need(kind.removesuffix("_output") not in CALL_ARGUMENTS)
            tally.part()
    return tally.shape(result_id)


def _is_name(name: Any) -> bool:
    """Whether a call names its tool; else the decoder names it by its type."""
    return isinstance(name, str) and name != ""


def _responses_message(tally: Tally, item: dict[str, Any]) -> None:
    _need(item.get("role") in ("user", "assistant", "system", "developer"))
    _string_or_none(item.get("phase"))
    content = item.get("content")
    if content is None:
        return
    if isinstance(content, str):
        tally.part(content)
        return
    _need(isinstance(content, list))
    for part in content:
        _need(isinstance(part, dict) and part.get("type") in ("input_text", "output_text", "text"))
        _need(isinstance(part.get("text"), str))
        tally.part(part["text"])


def _plain_parts(content: Any) -> None:
    """Accept nothing, a string, or an array of text parts."""
    if content is None or isinstance(content, str):
        return
    _need(isinstance(content, list))
    for part in content:
        _need(isinstance(part, dict) and part.get("type") == "text")
        _need(isinstance(part.get("text"), str))


def _string_or_none(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise _Odd


def _need(condition: bool) -> None:
    if not condition:
        raise _Odd
