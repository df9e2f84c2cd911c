"""Messages that their API would refuse for one value in them, put right, so that what is sound in them stays.

Ids that are numbers become texts, values where texts belong become such, and a block that nobody can read leaves its message.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from ctxengine.engine.content.decode import Role
from ctxengine.engine.importers.dialect import joined, shape_or_none, text_at
from ctxengine.engine.importers.draft import SessionDraft
from ctxengine.engine.importers.members import first_given, is_true, parts_of
from ctxengine.engine.importers.message_marks import RESULT_ROLES
from ctxengine.engine.importers.transcript import RepairAction
from ctxengine.engine.items import ContentFormat
from ctxengine.engine.lexeme import Node, NodeKind, parse

_IDS = ("id", "call_id", "tool_use_id", "tool_call_id")
_NAMES = ("name", "tool_name", "title", "phase")
_TRUTHS = {"1": "true", "0": "false", '"true"': "true", '"false"': "false"}
"""Flags as writers without flags give them."""
_CONTENT = "content"


class Mended(NamedTuple):
    """A value that can be read, and what had to leave it."""

    node: Node
    left: tuple[Node, ...] = ()


def mended_content(content: Node, *, role: Role = "user") -> Mended:
    """Content of an Anthropic message: blocks, or one block in their place.

    Nothing is kept of content without a single block: it is no message of that API.
    """
    blocks = parts_of(content)
    if all(block.kind is not NodeKind.OBJECT for block in blocks):
        return Mended(parse("[]"), (content,))

    def is_sound(block: str) -> bool:
        return shape_or_none(ContentFormat.ANTHROPIC, f"[{block}]", None, role=role) is not None

    return _mended_parts(blocks, is_sound)


def mended_chat(message: Node) -> Mended:
    """A chat message."""
    content, left = first_given(message, _CONTENT), list[Node]()
    told = _simple(message)
    if content is not None and text_at(message, "role") in RESULT_ROLES:
        told[_CONTENT] = _result_content(content, _is_sound_part)
    elif content is not None and content.kind is not NodeKind.STRING:
        whole = _mended_parts(parts_of(content), _is_sound_part)
        left += whole.left
        told[_CONTENT] = whole.node.raw if len(whole.node) else None
    calls = first_given(message, "tool_calls")
    if calls is not None:
        sound, odd = _parted_calls(calls)
        left += odd
        told["tool_calls"] = joined(sound) if sound else None
    for name in ("function_call", "refusal"):
        node = first_given(message, name)
        if node is not None and not _is_sound_chat(f'"{name}":{node.raw}'):
            left.append(node)
            told[name] = None
    return Mended(_with(message, told), tuple(left))


def _parted_calls(calls: Node) -> tuple[list[Node], list[Node]]:
    """Calls that can be read, and all others."""
    if calls.kind is not NodeKind.ARRAY:
        return [], [calls]
    sound: list[Node] = []
    odd: list[Node] = []
    for given in calls:
        call = _with(given, _simple(given))
        is_sound = _is_sound_chat(f'"tool_calls":[{call.raw}]')
        (sound if is_sound else odd).append(call)
    return sound, odd


def mended_item(item: Node) -> Mended:
    """A Responses item."""
    content, output = first_given(item, _CONTENT), first_given(item, "output")
    told = _simple(item)
    left: tuple[Node, ...] = ()
    text_type = "output_text" if text_at(item, "role") == "assistant" else "input_text"
    if content is not None and content.kind in (NodeKind.ARRAY, NodeKind.OBJECT):
        whole = _mended_parts(parts_of(content), _is_sound_item_part, text_type=text_type)
        left = whole.left
        told[_CONTENT] = whole.node.raw
    if output is not None and output.kind is not NodeKind.OBJECT:
        told["output"] = _result_content(output, _is_sound_item_part, text_type="input_text")
    return Mended(_with(item, told), left)


def _mended_parts(
    parts: Iterable[Node], is_sound: Callable[[str], bool], *, text_type: str = "text"
) -> Mended:
    """Parts that can be read; a text among them is a part of its own, and of a list among them each value leaves alone."""
    kept: list[str] = []
    left: list[Node] = []
    for part in parts:
        raw = _part(part, is_sound, text_type)
        if is_sound(raw):
            kept.append(raw)
            left += _unknown_flags(part)
        else:
            left += parts_of(part) or [part]
    return Mended(parse("[" + ",".join(kept) + "]"), tuple(left))


def _unknown_flags(part: Node) -> list[Node]:
    """The flag of a result that says neither yes nor no."""
    flag = first_given(part, "is_error") if text_at(part, "type") == "tool_result" else None
    is_known = flag is None or flag.kind in (NodeKind.TRUE, NodeKind.FALSE) or flag.raw in _TRUTHS
    return [] if is_known or flag is None else [flag]


def _part(part: Node, is_sound: Callable[[str], bool], text_type: str) -> str:
    if part.kind is NodeKind.STRING:
        return _text_part(part.raw, text_type)
    if part.kind is not NodeKind.OBJECT or is_sound(part.raw):
        return part.raw
    if first_given(part, "type") is None and text_at(part, "text") is not None:
        return _with(part, {"type": json.dumps(text_type)}).raw
    told = _simple(part)
    content = first_given(part, _CONTENT)
    if text_at(part, "type") == "tool_result":
        flag = first_given(part, "is_error")
        is_error = is_true(part, "is_error") or (
            flag is not None and _TRUTHS.get(flag.raw) == "true"
        )
        told["is_error"] = "true" if is_error else "false"
        told[_CONTENT] = None if content is None else _result_content(content, is_sound)
    return _with(part, told).raw


def _result_content(
    content: Node, is_sound: Callable[[str], bool], *, text_type: str = "text"
) -> str:
    """What a tool gave: a text, parts, or any other value, which then stands as its JSON text."""
    if content.kind is NodeKind.STRING:
        return content.raw
    if content.kind is NodeKind.ARRAY:
        parts = [_part(part, is_sound, text_type) for part in content]
        told = [raw if is_sound(raw) else _text_part(json.dumps(raw), text_type) for raw in parts]
        return "[" + ",".join(told) + "]"
    if first_given(content, "type") is not None and is_sound(content.raw):
        return f"[{content.raw}]"
    return json.dumps(content.raw)


def _text_part(text: str, text_type: str) -> str:
    return f'{{"type":"{text_type}","text":{text}}}'


def _simple(record: Node) -> dict[str, str | None]:
    """Ids that are numbers as texts; names that are none are left out."""
    told: dict[str, str | None] = {}
    for name in _IDS:
        node = first_given(record, name)
        if node is not None and node.kind is not NodeKind.STRING:
            told[name] = json.dumps(node.raw) if node.kind is NodeKind.NUMBER else None
    for name in _NAMES:
        node = first_given(record, name)
        if node is not None and node.kind is not NodeKind.STRING:
            told[name] = None
    return told


def _with(record: Node, told: Mapping[str, str | None]) -> Node:
    """The record with these members in the place of its own; None leaves one out."""
    if record.kind is not NodeKind.OBJECT or not told:
        return record
    members = {name: node.raw for name, node in record.items()}
    members.update({name: raw for name, raw in told.items() if raw is not None})
    kept = (n for n in members if n not in told or told[n] is not None)
    return parse("{" + ",".join(f"{json.dumps(n)}:{members[n]}" for n in kept) + "}")


def _is_sound_chat(members: str) -> bool:
    body = f'{{"role":"assistant",{members}}}'
    return shape_or_none(ContentFormat.OPENAI_CHAT, body, None, role="assistant") is not None


def _is_sound_part(part: str) -> bool:
    return _is_sound_chat(f'"content":[{part}]')


def _is_sound_item_part(part: str) -> bool:
    body = f'[{{"type":"message","role":"user","content":[{part}]}}]'
    return shape_or_none(ContentFormat.OPENAI_RESPONSES, body, None, role="user") is not None


def note_mended(draft: SessionDraft, mended: Mended, where: str) -> None:
    """Report what left a message, and that it was put right."""
    for node in mended.left:
        draft.leave("unreadable_part", where, "A part that cannot be read.", raw=node.raw)
    detail = (
        "Values that its API would refuse were put right: ids, flags or the form of what it says."
    )
    draft.tally("mended_message", where, detail, action=RepairAction.WARNED)
