"""OpenAI Chat Completions: message lists, request bodies, responses and their streams."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Any

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
    dict_of,
    gist,
    list_of,
    object_at,
    plain_text,
    shape_or_none,
    take_instructions,
    text_at,
)
from ctxengine.engine.importers.draft import SessionDraft
from ctxengine.engine.importers.instructions import system_text
from ctxengine.engine.importers.members import first_given
from ctxengine.engine.importers.mending import mended_chat, note_mended
from ctxengine.engine.importers.message_marks import (
    OPENAI_RESPONSES,
    RESULT_ROLES,
    api_of_stray,
)
from ctxengine.engine.importers.openai_responses import OpenAIResponses, add_items, item_turns
from ctxengine.engine.importers.plain_message import with_members
from ctxengine.engine.importers.shapes import Shape, chat_shape
from ctxengine.engine.importers.strays import add_stray, stray_tokens
from ctxengine.engine.importers.texts import json_text, time_of_epoch
from ctxengine.engine.importers.transcript import Entry, EntryType, ForeignTool, RepairAction
from ctxengine.engine.importers.usage import openai_usage
from ctxengine.engine.items import ContentFormat
from ctxengine.engine.lexeme import LexemeError, Node, NodeKind, parse
from ctxengine.engine.trust.levels import Trust

FORMAT = "openai_chat"
_BODY = ContentFormat.OPENAI_CHAT
_SYSTEM = ("system", "developer")
_NAMES = ("name", "title", "kind", "type")
_SCHEMAS = ("parameters", "input_schema", "inputSchema")
"""How a tool's name and schema are called here, and by frameworks that write their own tools into these bodies."""


class OpenAIChat:
    """The Chat Completions API."""

    format = FORMAT
    provider = "openai"

    def request(self, body: Node) -> Request:
        """Read a request body, or any object with `messages`."""
        turns = chat_turns(array_at(body, "messages") or array_at(body, "history"))
        told = system_text(first_given(body, "system", "instructions"))
        return Request(
            turns=turns,
            model=text_at(body, "model"),
            instructions="" if _opens_with(turns, told.text) else told.text,
            tools=[
                *map(_tool, array_at(body, "tools")),
                *map(_legacy, array_at(body, "functions")),
            ],
            unread=told.unread,
        )

    def answer(self, body: Node) -> Answer | None:
        """Read a completion; the first choice is the answer."""
        choices = array_at(body, "choices")
        message = object_at(choices[0], "message") if choices else None
        if message is None:
            return None
        created = body.get("created")
        facts = Facts(
            model=text_at(body, "model"),
            usage=openai_usage(body.get("usage")),
            stop_reason=text_at(choices[0], "finish_reason"),
            at=time_of_epoch(created.value()) if created is not None else None,
        )
        if text_at(message, "role") != "assistant":
            # Whatever role it names, a model gave it.
            message = with_members(message, {"role": "assistant"})
        return Answer(chat_turns([message]), facts, text_at(body, "id"), len(choices) - 1)

    def stream(self, events: Iterable[str]) -> str | None:
        """Join streamed chunks; argument pieces are joined as text, whatever they are."""
        head: dict[str, Any] = {}
        message: dict[str, Any] = {"role": "assistant", "content": None}
        calls: dict[int, dict[str, Any]] = {}
        for event in events:
            chunk = _chunk(event)
            if chunk is None:
                continue
            head.update({k: chunk[k] for k in ("id", "created", "model") if k in chunk})
            if chunk.get("usage"):
                head["usage"] = chunk["usage"]
            for choice in map(dict_of, chunk["choices"][:1]):
                head["finish_reason"] = choice.get("finish_reason") or head.get("finish_reason")
                _add_delta(message, calls, dict_of(choice.get("delta")))
        if not head:
            return None
        if calls:
            message["tool_calls"] = [calls[index] for index in sorted(calls)]
        choice = {"index": 0, "finish_reason": head.pop("finish_reason", None), "message": message}
        return json_text({**head, "choices": [choice]})

    def tokens(self, turn: Turn) -> list[Token]:
        """Texts, calls and results of one message."""
        message = turn.value
        if not isinstance(message, dict):
            return []
        api = api_of_stray(message)
        if api is not None:
            return _tokens_of_stray(api, turn.node)
        text = gist(plain_text(message.get("content")) or str(message.get("refusal") or ""))
        if turn.role in RESULT_ROLES:
            return [("user", "result", str(message.get("tool_call_id")), text)]
        if turn.role != "assistant":
            return [(turn.role, "text", text)]
        tokens: list[Token] = [("assistant", "text", text)] if text else []
        for call in list_of(message.get("tool_calls")):
            function = call.get("function") if isinstance(call, dict) else None
            if isinstance(function, dict):
                words = (str(call.get("id")), str(function.get("name")))
                tokens.append(("assistant", "call", *words))
        return tokens

    def add(
        self, draft: SessionDraft, turns: Sequence[Turn], place: Place, facts: Facts = NO_FACTS
    ) -> None:
        """Each message is one entry; neighbouring items of the Responses API are read together."""
        for api, group in groupby(enumerate(turns), lambda pair: api_of_stray(pair[1].value)):
            numbered = list(group)
            if api == OPENAI_RESPONSES:
                items = item_turns(turn.node for _, turn in numbered)
                add_items(draft, items, partial(place_from, place, numbered[0][0]), facts)
                continue
            for index, turn in numbered:
                if api is None:
                    _add_message(draft, turn, place(index), facts)
                else:
                    add_stray(draft, api, turn.node, place(index), facts, None)


def chat_turns(messages: Iterable[Node]) -> list[Turn]:
    """Messages with their roles."""
    return [_turn(message) for message in messages]


def add_chat_message(
    draft: SessionDraft,
    turn: Turn,
    where: str,
    facts: Facts = NO_FACTS,
    *,
    call_id: str | None = None,
    voice: Voice | None = None,
) -> None:
    """Count one message and make it an entry.

    Args:
        draft: The session it belongs to.
        turn: The message.
        where: Its place in the file.
        facts: What is known beside it.
        call_id: The call a result answers, where the file does not say so in the message's own way.
        voice: Kind and trust of a user-role message that is not the user's.
    """
    api = api_of_stray(turn.value)
    if api == OPENAI_RESPONSES:
        add_items(draft, item_turns([turn.node]), lambda _: where, facts)
    elif api is not None:
        add_stray(draft, api, turn.node, where, facts, voice)
    else:
        _add_message(draft, turn, where, facts, call_id, voice)


def _add_message(
    draft: SessionDraft,
    turn: Turn,
    where: str,
    facts: Facts,
    call_id: str | None = None,
    voice: Voice | None = None,
) -> None:
    """Count a message of this API and make it an entry; the arguments are those of `add_chat_message`."""
    turn, shape = _readable(draft, turn, where)
    if shape is None:
        return
    value, role, raw = turn.value, turn.role, turn.node.raw
    draft.found(shape.total)
    if role in _SYSTEM:
        _add_system(draft, turn, value, shape, where)
        return
    kind, trust, answered, name = EntryType.ASSISTANT, Trust.MODEL, None, None
    if role in RESULT_ROLES:
        kind, trust = EntryType.RESULT, Trust.EXTERNAL_UNTRUSTED
        answered, name = call_id or _text(value.get("tool_call_id")), _text(value.get("name"))
        name = name or _text(value.get("tool_name"))
    elif role != "assistant":
        kind, trust = voice or USER_VOICE
    # Model, usage and stop reason are those of an answer.
    model, usage, stop = facts[:3] if role == "assistant" else (None, None, None)
    entry = Entry(
        kind, _BODY, raw, trust, facts.at, answered, None, name, False, False, model, usage, stop, facts.extra, (), value,
    )  # fmt: skip
    draft.add(entry, shape, where)


def _readable(draft: SessionDraft, turn: Turn, where: str) -> tuple[Turn, Shape | None]:
    """A message and its counts, what nobody can read taken out of it; no counts where nothing of it can be read."""
    shape = _shape(turn)
    if shape is not None:
        return turn, shape
    raw = turn.node.raw
    mended = mended_chat(turn.node) if isinstance(turn.value, dict) else None
    turn = turn._replace(node=mended.node) if mended is not None else turn
    shape = _shape(turn) if mended is not None else None
    if mended is None or shape is None or (mended.left and not shape.items):
        draft.leave("unreadable_message", where, "Not a chat message that can be read.", raw=raw)
        return turn, None
    note_mended(draft, mended, where)
    return turn, shape


def _shape(turn: Turn) -> Shape | None:
    """Counts of a message; the decoder counts neither a result without output nor the empty text beside calls."""
    value = turn.value
    if not isinstance(value, dict):
        return None
    shape = shape_or_none(_BODY, turn.node.raw, chat_shape(value), role="user")
    content = value.get("content")
    beside = content == "" and value.get("tool_calls") is not None
    is_empty = not content if turn.role in RESULT_ROLES else beside and turn.role == "assistant"
    return replace(shape, empty=shape.empty + 1) if shape is not None and is_empty else shape


def _tokens_of_stray(api: str, message: Node) -> list[Token]:
    if api == OPENAI_RESPONSES:
        return OpenAIResponses().tokens(item_turns([message])[0])
    return stray_tokens(api, message)


def place_from(place: Place, first: int, index: int) -> str:
    """Place of a turn that is counted from another one on."""
    return place(first + index)


def _opens_with(turns: Sequence[Turn], instructions: str) -> bool:
    """Whether the first message says the same instructions already."""
    first = turns[0] if turns else None
    said = plain_text(first.value.get("content")) if first and first.role in _SYSTEM else None
    return said == instructions


def _add_system(
    draft: SessionDraft, turn: Turn, value: dict[str, Any], shape: Shape, where: str
) -> None:
    if not draft.size:
        take_instructions(draft, plain_text(value.get("content")), shape, where)
        return
    draft.note(
        RepairAction.WARNED,
        "late_system_message",
        where,
        "A system message inside the conversation; kept as untrusted input, not as instructions.",
    )
    entry = Entry(EntryType.INPUT, _BODY, turn.node.raw, Trust.EXTERNAL_UNTRUSTED)
    draft.add(entry, shape, where)


def _turn(message: Node) -> Turn:
    value = message.peek()
    role = value.get("role") if isinstance(value, dict) else None
    return Turn(role if isinstance(role, str) else "", message)


def _tool(node: Node) -> ForeignTool:
    return _legacy(object_at(node, "function") or object_at(node, "custom") or node)


def _legacy(node: Node) -> ForeignTool:
    schemas = (object_at(node, name) for name in _SCHEMAS)
    schema = next((found for found in schemas if found is not None), None)
    return ForeignTool(
        name=next((name for key in _NAMES if (name := text_at(node, key))), "unnamed"),
        description=text_at(node, "description") or "",
        input_schema=schema.raw if schema is not None else '{"type":"object"}',
    )


def _chunk(event: str) -> dict[str, Any] | None:
    try:
        node = parse(event)
    except LexemeError:
        return None
    if node.kind is not NodeKind.OBJECT:
        return None
    chunk: dict[str, Any] = node.value()
    return chunk if isinstance(chunk.get("choices"), list) else None


def _add_delta(
    message: dict[str, Any], calls: dict[int, dict[str, Any]], delta: dict[str, Any]
) -> None:
    for key in ("content", "refusal", "reasoning_content"):
        piece = delta.get(key)
        if isinstance(piece, str):
            message[key] = (message.get(key) or "") + piece
    legacy = dict_of(delta.get("function_call"))
    if legacy:
        whole = message.setdefault("function_call", {"name": "", "arguments": ""})
        for key in ("name", "arguments"):
            whole[key] += _text(legacy.get(key)) or ""
    for piece in map(dict_of, list_of(delta.get("tool_calls"))):
        index = piece.get("index")
        slot = calls.setdefault(
            index if isinstance(index, int) else 0,
            {"id": None, "type": "function", "function": {"name": "", "arguments": ""}},
        )
        slot["id"] = piece.get("id") or slot["id"]
        function = dict_of(piece.get("function"))
        for key in ("name", "arguments"):
            slot["function"][key] += _text(function.get(key)) or ""


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
