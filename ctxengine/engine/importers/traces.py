"""Traces of agent frameworks: model calls among other spans, each with (more or less of) its request and its answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ctxengine.engine.importers.conversations import Conversation, Conversations, tell
from ctxengine.engine.importers.dialect import (
    Answer,
    Dialect,
    Facts,
    Request,
    Turn,
    array_at,
    gist,
    object_at,
    text_at,
)
from ctxengine.engine.importers.exchanges import DIALECTS
from ctxengine.engine.importers.loose import LooseMessages, loose_turns, role_of_message
from ctxengine.engine.importers.pieces import Result, add_result, result_text
from ctxengine.engine.importers.transcript import (
    ForeignTool,
    ForeignUsage,
    Repair,
    RepairAction,
    Transcript,
)
from ctxengine.engine.lexeme import LexemeError, Node, NodeKind, parse

_LOOSE = LooseMessages("trace", "openai")


class Span(NamedTuple):
    """One span, whatever exporter wrote it."""

    where: str
    kind: str
    """`generation`, `tool`, or anything else."""
    name: str
    span_id: str
    parent: str | None
    start: str
    """Sorts by time."""
    at: str | None
    request: Node | None
    answer: Node | None
    model: str | None = None
    usage: ForeignUsage | None = None
    instructions: str = ""
    tools: Sequence[ForeignTool] = ()
    new_from: int | None = None
    """Index of the first message of the request that no earlier span gave; None when the span does not say."""


@dataclass(slots=True)
class _Thread:
    """What one parent span has said, for exporters that leave history out of their generations."""

    conversation: Conversation
    outputs: list[Span] = field(default_factory=list)
    """Tool spans since the last answer."""


class TraceReader:
    """Reads spans in the order of their start."""

    def __init__(self) -> None:
        self._conversations = Conversations()
        self._threads: dict[str | None, _Thread] = {}
        self._repairs: list[Repair] = []

    def read(self, spans: list[Span], format_name: str) -> Transcript:
        """Read all spans of a file."""
        generations = {span.span_id for span in spans if span.kind == "generation"}
        parents = {span.span_id: span.parent for span in spans}
        for span in sorted(spans, key=lambda s: s.start):
            if span.kind == "generation":
                if _inside(span, generations, parents):
                    self._leave(span, "nested_generation", "The same call, recorded a second time.")
                else:
                    self._generation(span)
            elif span.kind == "tool" and span.parent in self._threads:
                self._threads[span.parent].outputs.append(span)
            else:
                self._leave(span, "span", "A span that is no model call.")
        for thread in self._threads.values():
            self._flush(thread, used=False)
        items = sum(repair.items for repair in self._repairs)
        return Transcript(format_name, self._conversations.sessions(), self._repairs, items)

    def _generation(self, span: Span) -> None:
        dialect, asked = _asked(span)
        answer = _answered(span, dialect)
        if not asked.turns and answer is None:
            self._leave(span, "empty_generation", "A model call without request and answer.")
            return
        thread = self._threads.get(span.parent)
        goes_on = not asked.turns or span.new_from is not None
        if thread is not None and thread.conversation.dialect is dialect and goes_on:
            self._flush(thread, used=not asked.turns)
            conversation = thread.conversation
            conversation.go_on(asked.turns, span.new_from or 0, span.where, at=span.at)
        else:
            conversation = self._conversations.ask(dialect, asked, span.where, at=span.at)
            if thread is not None:
                self._flush(thread, used=False)
        self._threads[span.parent] = _Thread(conversation)
        if answer is not None:
            tell(conversation, answer, span.where, at=span.at)

    def _flush(self, thread: _Thread, *, used: bool) -> None:
        """Tool spans are results only where no later request brings the results itself."""
        for span in thread.outputs:
            if used:
                content = result_text(_inner(span.answer))
                result = Result(_call_of(thread.conversation, span), span.name, content)
                add_result(thread.conversation.draft, result, span.where, Facts(at=span.at))
            else:
                self._leave(span, "tool_span", "A tool run; its result stands in the next request.")
        thread.outputs = []

    def _leave(self, span: Span, code: str, detail: str) -> None:
        self._repairs.append(
            Repair(RepairAction.SET_ASIDE, code, span.where, f"{span.name}: {detail}", items=1)
        )


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


def _inside(span: Span, generations: set[str], parents: dict[str, str | None]) -> bool:
    seen: set[str] = set()
    above = span.parent
    while above is not None and above not in seen:
        if above in generations:
            return True
        seen.add(above)
        above = parents.get(above)
    return False


def _asked(span: Span) -> tuple[Dialect, Request]:
    """The request of a generation, and who can read it."""
    body = value_of(span.request)
    answer = value_of(span.answer)
    if answer is not None and answer.kind is NodeKind.OBJECT and array_at(answer, "output"):
        dialect: Dialect = DIALECTS["openai_responses"]
        items = f'{{"input":{body.raw if body is not None else "[]"}}}'
        asked = dialect.request(parse(items))._replace(
            instructions=text_at(answer, "instructions") or ""
        )
        return dialect, asked._replace(model=span.model)
    if body is None:
        return _LOOSE, Request([], span.model, span.instructions, span.tools)
    if body.kind is NodeKind.OBJECT and body.get("contents") is not None:
        google = DIALECTS["google_generate_content"]
        return google, google.request(body)
    if body.kind is NodeKind.OBJECT and array_at(body, "messages"):
        chat = DIALECTS["openai_chat"].request(body)
        turns = loose_turns(array_at(body, "messages"))
        return _LOOSE, Request(turns, span.model, span.instructions, chat.tools)
    nodes = list(body) if body.kind is NodeKind.ARRAY else [body]
    turns = loose_turns(node for node in nodes if _speaks(node))
    return _LOOSE, Request(turns, span.model, span.instructions, span.tools)


def _answered(span: Span, dialect: Dialect) -> Answer | None:
    body = value_of(span.answer)
    if body is None or body.kind is NodeKind.NULL:
        return None
    facts = Facts(model=span.model, usage=span.usage)
    if dialect is not _LOOSE:
        answer = dialect.answer(body)
        return None if answer is None else answer._replace(facts=_merged(answer.facts, facts))
    completion = DIALECTS["openai_chat"].answer(body) if body.kind is NodeKind.OBJECT else None
    if completion is not None:
        return completion._replace(facts=_merged(completion.facts, facts))
    turns = _answer_turns(body)
    first = turns[0].node if turns else body
    return (
        Answer(turns, facts._replace(stop_reason=text_at(first, "finish_reason")))
        if turns
        else None
    )


def _answer_turns(body: Node) -> list[Turn]:
    if body.kind is NodeKind.STRING:
        if (body.text() or "") in ("", "None"):
            return []
        return loose_turns([parse(f'{{"role":"assistant","content":{body.raw}}}')])
    nodes = list(body) if body.kind is NodeKind.ARRAY else [body]
    return [turn._replace(role="assistant") for turn in loose_turns(n for n in nodes if _speaks(n))]


def _speaks(node: Node) -> bool:
    """Whether a value is a message: it has a role, or is a message some framework printed."""
    if node.kind is NodeKind.STRING:
        return bool(re.match(r"role='\w+' content=", node.text() or ""))
    if text_at(node, "role") is None:
        return False
    content = node.get("content")
    # Some exporters list tool definitions among the messages.
    is_definition = content is not None and object_at(content, "function") is not None
    return not (role_of_message(node) == "tool" and is_definition)


def _merged(known: Facts, given: Facts) -> Facts:
    return known._replace(model=known.model or given.model, usage=known.usage or given.usage)


def _inner(node: Node | None) -> Node | None:
    """What a tool gave, without the frame of its exporter."""
    value = value_of(node)
    content = value.get("content") if value is not None else None
    parts = list(content) if content is not None and content.kind is NodeKind.ARRAY else []
    if len(parts) == 1 and text_at(parts[0], "text") is not None:
        return parts[0].get("text")
    return content or value


def _call_of(conversation: Conversation, span: Span) -> str | None:
    """Id of the call a tool span ran, by its name and what it was given."""
    given = value_of(span.request)
    inner = object_at(given, "input") or given
    wanted = gist(inner.raw) if inner is not None else ""
    return conversation.draft.call_id_of(span.name, wanted)
