"""Anthropic Messages: message lists, request bodies, responses and their streams."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any

from ctxengine.engine.canonical import sha256_hex
from ctxengine.engine.content.anthropic import OPAQUE_TYPES
from ctxengine.engine.content.decode import Role
from ctxengine.engine.importers.anthropic_stream import joined_stream
from ctxengine.engine.importers.chat_as_anthropic import chat_as_turn
from ctxengine.engine.importers.dialect import (
    NO_FACTS,
    USER_VOICE,
    Answer,
    Facts,
    Place,
    Request,
    Token,
    Turn,
    Voice,
    array_at,
    gist,
    joined,
    object_at,
    plain_text,
    shape_or_none,
    text_at,
)
from ctxengine.engine.importers.draft import SessionDraft
from ctxengine.engine.importers.instructions import system_text
from ctxengine.engine.importers.loose import LooseMessages
from ctxengine.engine.importers.mending import Mended, mended_content, note_mended
from ctxengine.engine.importers.message_marks import BEDROCK, api_of_parts
from ctxengine.engine.importers.plain_message import INPUT
from ctxengine.engine.importers.shapes import Shape, anthropic_shape
from ctxengine.engine.importers.texts import json_text
from ctxengine.engine.importers.transcript import Entry, EntryType, ForeignTool, RepairAction
from ctxengine.engine.importers.usage import anthropic_usage
from ctxengine.engine.items import ContentFormat
from ctxengine.engine.lexeme import Node, NodeKind, parse
from ctxengine.engine.trust.levels import Trust

FORMAT = "anthropic_messages"
_BODY = ContentFormat.ANTHROPIC
_LOOSE = LooseMessages(FORMAT, "anthropic")
_ROLES = ("assistant", "user", "system", INPUT)
_COMPACTION = "compaction"
_RESULT = "tool_result"

Classify = Callable[[str], Voice]
"""Whether a user-role text is a directive or something a harness put there, and how far it is believed."""

MID_RUN_VOICE: Voice = (EntryType.INPUT, Trust.USER)
"""A text that stands beside tool results: the user's, but no new directive (the run is open)."""


class AnthropicMessages:
    """The Messages API."""

    format = FORMAT
    provider = "anthropic"

    def request(self, body: Node) -> Request:
        """Read a request body, or any object with `messages`."""
        system = system_text(body.get("system"))
        return Request(
            turns=anthropic_turns(array_at(body, "messages") or array_at(body, "history")),
            model=text_at(body, "model"),
            instructions=system.text,
            tools=[_tool(node) for node in array_at(body, "tools")],
            unread=system.unread,
        )

    def answer(self, body: Node) -> Answer | None:
        """Read a Message object."""
        content = body.get("content")
        if content is None or text_at(body, "role") != "assistant":
            return None
        return Answer(
            [content_turn("assistant", content)], message_facts(body), text_at(body, "id")
        )

    def stream(self, events: Iterable[str]) -> str | None:
        """Join streamed events; pieces of tool input are joined as text."""
        return joined_stream(events)

    def tokens(self, turn: Turn) -> list[Token]:
        """Texts, calls, results and other blocks of one message; reasoning says nothing."""
        content = turn.value
        if isinstance(content, str):
            return [(turn.role, "text", gist(content))]
        blocks = content if isinstance(content, list) else []
        tokens = [
            (turn.role, *_words(block))
            for block in blocks
            if isinstance(block, dict) and _type_of(block) not in OPAQUE_TYPES
        ]
        return [token for token in tokens if token[1:] != ("text", "")]

    def add(
        self, draft: SessionDraft, turns: Sequence[Turn], place: Place, facts: Facts = NO_FACTS
    ) -> None:
        """Each message becomes one entry, or several where results or compaction blocks are in it."""
        for index, turn in enumerate(turns):
            add_anthropic_message(draft, turn, place(index), facts)


def anthropic_turns(messages: Iterable[Node]) -> list[Turn]:
    """Messages with their roles; one without content keeps its own node, to be reported."""
    return [
        chat_as_turn(m) or content_turn(text_at(m, "role") or "", m.get("content") or m)
        for m in messages
    ]


def content_turn(role: str, content: Node) -> Turn:
    """A turn from the content of a message."""
    return Turn(role, content)


def message_facts(message: Node, *, at: str | None = None, extra: str = "") -> Facts:
    """Model, usage and stop reason of a Message object."""
    return Facts(
        model=text_at(message, "model"),
        usage=anthropic_usage(message.get("usage")),
        stop_reason=text_at(message, "stop_reason"),
        at=at,
        extra=extra,
    )


def add_anthropic_message(
    draft: SessionDraft,
    turn: Turn,
    where: str,
    facts: Facts = NO_FACTS,
    *,
    classify: Classify | None = None,
) -> None:
    """Count one message and make its entries; a block that nobody can read is set aside alone."""
    is_known = isinstance(turn.value, str) or turn.role not in _ROLES
    if not is_known and anthropic_shape(turn.value) is None:
        if api_of_parts(turn.role, {"content": turn.value}) == BEDROCK:
            _add_framework_parts(draft, turn, where, facts, classify)
            return
        mended = _mended(turn)
        if mended is not None:
            note_mended(draft, mended, where)
            turn = turn._replace(node=mended.node)
    if turn.role == "assistant":
        _add_assistant(draft, turn, where, facts)
    elif turn.role in _ROLES:
        _add_user(draft, turn, where, facts, classify)
    else:
        draft.leave(
            "unreadable_message", where, f"Role {turn.role!r} is unknown.", raw=turn.node.raw
        )


def _add_framework_parts(
    draft: SessionDraft, turn: Turn, where: str, facts: Facts, classify: Classify | None
) -> None:
    """A message with calls or results in a form that is not this API's, which would take them for words."""
    content = turn.node.raw if turn.node.kind is NodeKind.ARRAY else joined([turn.node])
    message = parse(f'{{"role":"{turn.role}","content":{content}}}')
    role = INPUT if classify is not None and turn.role == "user" else turn.role
    _LOOSE.add(draft, [Turn(role, message)], lambda _: where, facts)


def _mended(turn: Turn) -> Mended | None:
    """What can be read of content that cannot be read whole; None where that is all of it, or nothing."""
    role: Role = "assistant" if turn.role == "assistant" else "user"
    if turn.node.kind is NodeKind.ARRAY:
        odd = (node for node in turn.node if anthropic_shape([node.peek()]) is None)
        if all(_is_readable(node, role) for node in odd):
            return None
    mended = mended_content(turn.node, role=role)
    return mended if len(mended.node) else None


def _is_readable(block: Node, role: Role) -> bool:
    return shape_or_none(_BODY, joined([block]), None, role=role) is not None


def _add_assistant(draft: SessionDraft, turn: Turn, where: str, facts: Facts) -> None:
    content = turn.node
    shape = _shape(content.raw, turn.value, assistant=True)
    if shape is None:
        _unreadable(draft, content, where)
        return
    if not _holds_others(content):
        draft.found(shape.total)
        entry = Entry(EntryType.ASSISTANT, _BODY, content.raw, Trust.MODEL, **facts._asdict())
        draft.add(entry, shape, where)
        return
    for kind, nodes in groupby(content, _kind_of_other):
        blocks = list(nodes)
        if kind == _RESULT:
            for block in blocks:
                _add_result(draft, block, where, Facts(at=facts.at))
            continue
        body = joined(blocks)
        part = _shape(body, [block.peek() for block in blocks], assistant=True)
        if part is None:
            draft.leave("unreadable_message", where, "Content that cannot be read.", raw=body)
            continue
        draft.found(part.total)
        if kind == _COMPACTION:
            entry = Entry(EntryType.SUMMARY, _BODY, body, Trust.EXTERNAL_UNTRUSTED, at=facts.at)
        else:
            entry = Entry(EntryType.ASSISTANT, _BODY, body, Trust.MODEL, **facts._asdict())
            facts = Facts(facts.model, None, facts.stop_reason, facts.at)
        draft.add(entry, part, where)


def _add_user(
    draft: SessionDraft, turn: Turn, where: str, facts: Facts, classify: Classify | None
) -> None:
    content = turn.node
    if content.kind is not NodeKind.ARRAY:
        _add_user_part(draft, turn, content.raw, turn.value, where, facts, classify)
        return
    blocks = list(content)
    voices = _voices(blocks, classify)
    one = voices[0] if voices and voices.count(voices[0]) == len(voices) else None
    if one is not None or not voices:
        whole = _always(one) if one is not None else classify
        _add_user_part(draft, turn, content.raw, turn.value, where, facts, whole)
        return
    beside = None in voices
    for voice, pairs in groupby(zip(voices, blocks, strict=True), lambda pair: pair[0]):
        group = [block for _, block in pairs]
        if voice is None:
            for block in group:
                _add_result(draft, block, where, facts)
                facts = facts._replace(extra="")
            continue
        heard = MID_RUN_VOICE if beside and voice == USER_VOICE else voice
        values = [block.peek() for block in group]
        _add_user_part(draft, turn, joined(group), values, where, facts, _always(heard))
        facts = facts._replace(extra="")


def _voices(blocks: list[Node], classify: Classify | None) -> list[Voice | None]:
    """Whose each block in the user's role is; None for a result.

    An image or a document says nothing about itself: it is his who spoke before it, else his who speaks after it. Where
    it would be the user's if it stood alone, his words right behind it count for more than what a harness put before it.
    """
    texts = [None if _is_result(block) else text_at(block, "text") for block in blocks]
    spoken = [_hear(text, classify) if text is not None else None for text in texts]
    alone = _hear("", classify)
    heard = next((voice for voice in spoken if voice is not None), alone)
    voices: list[Voice | None] = []
    for block, voice, behind in zip(blocks, spoken, _spoken_behind(blocks, spoken), strict=True):
        heard = voice or heard
        is_users = voice is None and alone == behind == USER_VOICE
        voices.append(None if _is_result(block) else USER_VOICE if is_users else heard)
    return voices


def _spoken_behind(blocks: list[Node], spoken: list[Voice | None]) -> list[Voice | None]:
    """For each block who speaks next, before the next result."""
    found: list[Voice | None] = []
    behind: Voice | None = None
    for block, voice in zip(reversed(blocks), reversed(spoken), strict=True):
        found.append(behind)
        behind = None if _is_result(block) else voice or behind
    return found[::-1]


def _hear(text: str, classify: Classify | None) -> Voice:
    return classify(text) if classify is not None else USER_VOICE


def _is_result(block: Node) -> bool:
    return text_at(block, "type") == _RESULT


def _always(voice: Voice) -> Classify:
    return lambda _: voice


def _add_user_part(
    draft: SessionDraft,
    turn: Turn,
    body: str,
    value: Any,
    where: str,
    facts: Facts,
    classify: Classify | None,
) -> None:
    shape = _shape(body, value, assistant=False)
    if shape is None:
        draft.leave("unreadable_message", where, "Content that cannot be read.", raw=body)
        return
    draft.found(shape.total)
    kind, trust = USER_VOICE
    if turn.role != "user":
        kind, trust = EntryType.INPUT, Trust.EXTERNAL_UNTRUSTED
    elif classify is not None:
        kind, trust = classify(plain_text(value))
    if turn.role == "system":
        draft.note(
            RepairAction.WARNED,
            "late_system_message",
            where,
            "A system message inside the conversation; kept as untrusted input, not as instructions.",
        )
    entry = Entry(kind, _BODY, body, trust, at=facts.at, extra=facts.extra)
    draft.add(entry, shape, where)


def _add_result(draft: SessionDraft, block: Node, where: str, facts: Facts) -> None:
    body = joined([block])
    value = block.peek()
    shape = _shape(body, [value], assistant=False)
    if shape is None:
        draft.leave("unreadable_message", where, "A result that cannot be read.", raw=block.raw)
        return
    draft.found(shape.total)
    entry = Entry(
        EntryType.RESULT,
        _BODY,
        body,
        Trust.EXTERNAL_UNTRUSTED,
        at=facts.at,
        call_id=shape.result_id,
        is_error=value.get("is_error") is True,
        extra=facts.extra,
    )
    empty = not value.get("content")
    draft.add(entry, Shape(1, empty=int(empty), result_id=shape.result_id), where)


def _shape(body: str, value: Any, *, assistant: bool) -> Shape | None:
    role: Role = "assistant" if assistant else "user"
    return shape_or_none(_BODY, body, anthropic_shape(value), role=role)


def _unreadable(draft: SessionDraft, content: Node, where: str) -> None:
    draft.leave("unreadable_message", where, "Content that cannot be read.", raw=content.raw)


def _holds_others(content: Node) -> bool:
    """Whether an answer holds blocks that are no part of it."""
    raw = content.raw
    return (_COMPACTION in raw or _RESULT in raw) and any(map(_kind_of_other, content))


def _kind_of_other(block: Node) -> str | None:
    """Which of the blocks that an answer may hold without saying them this one is: a summary, or a result."""
    kind = text_at(block, "type")
    return kind if kind in (_COMPACTION, _RESULT) else None


def _tool(node: Node) -> ForeignTool:
    schema = object_at(node, "input_schema")
    return ForeignTool(
        name=text_at(node, "name") or text_at(node, "type") or "unnamed",
        description=text_at(node, "description") or "",
        input_schema=schema.raw if schema is not None else '{"type":"object"}',
    )


def _type_of(block: dict[str, Any]) -> str:
    kind = block.get("type")
    return kind if isinstance(kind, str) else ""


def _words(block: dict[str, Any]) -> Token:
    kind = _type_of(block)
    if kind == "text":
        return ("text", gist(_word(block.get("text"))))
    if kind == "tool_use":
        return ("call", _word(block.get("id")), _word(block.get("name")))
    if kind == _RESULT:
        return ("result", _word(block.get("tool_use_id")), gist(plain_text(block.get("content"))))
    name = block.get("id") or block.get("tool_use_id")
    if isinstance(name, str):
        return (kind, name)
    kept = {key: value for key, value in block.items() if key != "cache_control"}
    return (kind, sha256_hex(json_text(kept, sort_keys=True).encode()))


def _word(value: Any) -> str:
    return value if isinstance(value, str) else json_text(value)
