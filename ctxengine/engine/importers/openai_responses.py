"""OpenAI Responses: item lists, request bodies, responses and their streams."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from ctxengine.engine.canonical import sha256_hex
from ctxengine.engine.content.openai_responses import CALL_ARGUMENTS
from ctxengine.engine.importers.dialect import (
    NO_FACTS,
    Answer,
    Facts,
    Place,
    Request,
    Token,
    Turn,
    array_at,
    gist,
    joined,
    object_at,
    plain_text,
    shape_or_none,
    take_instructions,
    text_at,
)
from ctxengine.engine.importers.draft import SessionDraft
from ctxengine.engine.importers.instructions import system_text
from ctxengine.engine.importers.members import first_given
from ctxengine.engine.importers.mending import mended_item, note_mended
from ctxengine.engine.importers.message_marks import OPENAI_RESPONSES, api_of_parts
from ctxengine.engine.importers.shapes import Shape, responses_shape
from ctxengine.engine.importers.strays import add_stray
from ctxengine.engine.importers.texts import json_text, time_of_epoch
from ctxengine.engine.importers.transcript import Entry, EntryType, ForeignTool, RepairAction
from ctxengine.engine.importers.usage import openai_usage
from ctxengine.engine.items import ContentFormat
from ctxengine.engine.lexeme import LexemeError, Node, NodeKind, parse
from ctxengine.engine.trust.levels import Trust

FORMAT = "openai_responses"
_BODY = ContentFormat.OPENAI_RESPONSES
_OTHERS = ("user", "system", "developer")
COMPACTIONS = ("compaction", "context_compaction", "compaction_summary")
_ITEM_DONE = "response.output_item.done"
_FINAL_EVENTS = ("response.completed", "response.incomplete", "response.failed")


class OpenAIResponses:
    """The Responses API."""

    format = FORMAT
    provider = "openai-responses"

    def request(self, body: Node) -> Request:
        """Read a request body, or any object with `input` (or its items under another API's name)."""
        given = first_given(body, "input", "messages", "history")
        turns: list[Turn] = []
        if given is not None and given.kind is NodeKind.STRING:
            turns = item_turns([parse(f'{{"role":"user","content":{given.raw}}}')])
        elif given is not None:
            turns = item_turns([given] if given.kind is NodeKind.OBJECT else given)
        told = system_text(body.get("instructions"))
        return Request(
            turns=turns,
            model=text_at(body, "model"),
            instructions=told.text,
            tools=[_tool(node) for node in array_at(body, "tools")],
            follows=text_at(body, "previous_response_id"),
            unread=told.unread,
        )

    def answer(self, body: Node) -> Answer | None:
        """Read a Response object, or the output of an explicit compaction."""
        output = body.get("output")
        if output is None or output.kind is not NodeKind.ARRAY:
            return None
        created = body.get("created_at")
        facts = Facts(
            model=text_at(body, "model"),
            usage=openai_usage(body.get("usage")),
            stop_reason=text_at(body, "status"),
            at=time_of_epoch(created.value()) if created is not None else None,
        )
        return Answer([_given(turn) for turn in item_turns(output)], facts, text_at(body, "id"))

    def stream(self, events: Iterable[str]) -> str | None:
        """The last event of a stream carries the whole response; of one that breaks off, the items that were done."""
        begun: Node | None = None
        done: list[Node] = []
        for event in events:
            try:
                node = parse(event)
            except LexemeError:
                continue
            response, item = object_at(node, "response"), object_at(node, "item")
            if response is not None and text_at(node, "type") in _FINAL_EVENTS:
                return response.raw
            begun = response or begun
            if item is not None and text_at(node, "type") == _ITEM_DONE:
                done.append(item)
        if begun is None or not done:
            return None
        rest = [f"{json.dumps(k)}:{v.raw}" for k, v in begun.items() if k != "output"]
        return "{" + ",".join([*rest, f'"output":{joined(done)}']) + "}"

    def tokens(self, turn: Turn) -> list[Token]:
        """What one item says; reasoning says nothing."""
        item = turn.value
        if not isinstance(item, dict) or item.get("type") == "reasoning":
            return []
        kind = item.get("type") or "message"
        kind = kind if isinstance(kind, str) else ""
        if kind == "message":
            text = gist(plain_text(item.get("content")))
            return [(str(text_at(turn.node, "role")), "text", text)] if text else []
        if kind.endswith("_output"):
            output = item.get("output")
            text = output if isinstance(output, str) else json_text(output, sort_keys=True)
            return [("user", "result", str(text_at(turn.node, "call_id")), gist(text))]
        name = item.get("call_id") or item.get("id")
        if not isinstance(name, str):
            name = sha256_hex(json_text(item, sort_keys=True).encode())
        return [("assistant", kind, name)]

    def add(
        self, draft: SessionDraft, turns: Sequence[Turn], place: Place, facts: Facts = NO_FACTS
    ) -> None:
        """Neighbouring items of the model's side are one answer; everything else is an entry of its own."""
        add_items(draft, turns, place, facts)


def item_turns(items: Iterable[Node]) -> list[Turn]:
    """Items with the side they belong to: assistant, a role of the user's side, `result` or `summary`."""
    return [Turn(_side(item.peek()), item) for item in items]


def add_items(
    draft: SessionDraft, turns: Sequence[Turn], place: Place, facts: Facts = NO_FACTS
) -> None:
    """Count items and make their entries; messages of another API among them are read as such."""
    numbered = list(enumerate(turns))
    answered = any(turn.role == "assistant" for turn in turns)
    beside = facts._replace(usage=None) if answered else facts
    for (is_answer, api), group in groupby(numbered, lambda pair: _reader_of(pair[1])):
        pairs = list(group)
        if api is not None:
            for index, turn in pairs:
                told = facts if is_answer else beside
                add_stray(draft, api, turn.node, place(index), told, None)
            continue
        if is_answer:
            answer = [turn for _, turn in pairs]
            if add_answer(draft, answer, place(pairs[0][0]), facts):
                facts = facts._replace(usage=None, extra="")
            continue
        for index, turn in pairs:
            add_other(draft, turn, place(index), beside)


def _reader_of(turn: Turn) -> tuple[bool, str | None]:
    """Whether an item is the model's, and whose API's message it is where it is no item."""
    value, is_answer = turn.value, turn.role == "assistant"
    role = value.get("role") if isinstance(value, dict) else None
    api = api_of_parts(role, value) if isinstance(role, str) else None
    return is_answer, api if api != OPENAI_RESPONSES else None


def add_answer(draft: SessionDraft, items: list[Turn], where: str, facts: Facts) -> bool:
    """One model answer from its items; an unreadable item is set aside alone. False when nothing is left."""
    shape = _shape(items)
    if shape is None:
        items = [item for given in items if (item := _readable(draft, given, where)) is not None]
        shape = _shape(items) if items else None
    if shape is None:
        return False
    draft.found(shape.total)
    entry = Entry(
        EntryType.ASSISTANT,
        _BODY,
        joined(item.node for item in items),
        Trust.MODEL,
        **facts._asdict(),
    )
    draft.add(entry, shape, where)
    return True


def _readable(draft: SessionDraft, item: Turn, where: str) -> Turn | None:
    """An item, what nobody can read taken out of it; None where nothing of it can be read."""
    if _shape([item]) is not None:
        return item
    mended = mended_item(item.node)
    turn = item._replace(node=mended.node)
    shape = _shape([turn])
    if shape is None or (mended.left and not shape.items):
        draft.leave("unreadable_item", where, "An item that cannot be read.", raw=item.node.raw)
        return None
    note_mended(draft, mended, where)
    return turn


def add_other(draft: SessionDraft, turn: Turn, where: str, facts: Facts) -> None:
    """One item that is not the model's."""
    readable = _readable(draft, turn, where)
    shape = _shape([readable]) if readable is not None else None
    if readable is None or shape is None:
        return
    turn, item = readable, readable.node
    draft.found(shape.total)
    body = joined([item])
    untrusted = Trust.EXTERNAL_UNTRUSTED
    if turn.role == "user":
        entry = Entry(EntryType.USER, _BODY, body, Trust.USER, at=facts.at, extra=facts.extra)
    elif turn.role == "result":
        entry = Entry(
            EntryType.RESULT,
            _BODY,
            body,
            untrusted,
            at=facts.at,
            call_id=shape.result_id,
            extra=facts.extra,
        )
    elif turn.role == "summary":
        entry = Entry(
            EntryType.SUMMARY,
            _BODY,
            body,
            untrusted,
            at=facts.at,
            model=facts.model,
            usage=facts.usage,
            extra=facts.extra,
        )
    elif turn.role in ("system", "developer") and not draft.size:
        take_instructions(draft, plain_text(turn.value.get("content")), shape, where)
        return
    else:
        _note_late(draft, turn.role, where)
        entry = Entry(EntryType.INPUT, _BODY, body, untrusted, at=facts.at, extra=facts.extra)
    draft.add(entry, shape, where)


def _given(turn: Turn) -> Turn:
    """An item of an answer: what it holds of others is no directive, and no instructions."""
    return turn._replace(role="input") if turn.role in _OTHERS else turn


def _note_late(draft: SessionDraft, role: str, where: str) -> None:
    if role in ("system", "developer"):
        draft.note(
            RepairAction.WARNED,
            "late_system_message",
            where,
            f"A {role} message inside the conversation; kept as untrusted input, not as "
            "instructions.",
        )


def _side(item: Any) -> str:
    kind = item.get("type") or "message" if isinstance(item, dict) else None
    if not isinstance(kind, str):
        return "assistant"
    if kind == "message":
        role = item.get("role")
        return role if isinstance(role, str) else "assistant"
    if kind.endswith("_output"):
        # What a provider's own tool gave belongs to the answer that called it.
        return "result" if kind.removesuffix("_output") in CALL_ARGUMENTS else "assistant"
    if kind in COMPACTIONS:
        return "summary"
    return "input" if kind == "mcp_approval_response" else "assistant"


def _shape(items: list[Turn]) -> Shape | None:
    shape = responses_shape([item.value for item in items])
    if shape is None:
        body = joined(item.node for item in items)
        shape = shape_or_none(_BODY, body, None, role="assistant")
    if shape is None or len(items) != 1 or not _is_empty_result(items[0].value):
        return shape
    return Shape(shape.items, empty=1, result_id=shape.result_id)


def _is_empty_result(item: Any) -> bool:
    kind = item.get("type") if isinstance(item, dict) else None
    return isinstance(kind, str) and kind.endswith("_output") and not item.get("output")


def _tool(node: Node) -> ForeignTool:
    schema = object_at(node, "parameters")
    name = text_at(node, "name") or text_at(node, "server_label") or text_at(node, "type")
    return ForeignTool(
        name=name or "unnamed",
        description=text_at(node, "description") or "",
        input_schema=schema.raw if schema is not None else '{"type":"object"}',
    )
