"""Traces of agent frameworks: model calls among other spans, each with (more or less of) its request and its answer."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ctxengine.engine.importers.anthropic_messages import anthropic_turns
from ctxengine.engine.importers.conversations import Conversation, Conversations, tell
from ctxengine.engine.importers.dialect import (
    Answer,
    Dialect,
    Facts,
    Request,
    Token,
    Turn,
    array_at,
    gist,
    object_at,
    text_at,
)
from ctxengine.engine.importers.exchanges import DIALECTS
from ctxengine.engine.importers.instructions import system_text
from ctxengine.engine.importers.loose import LooseMessages, loose_turns
from ctxengine.engine.importers.members import first_given
from ctxengine.engine.importers.pieces import Result, add_result, result_text
from ctxengine.engine.importers.span_messages import (
    answer_turns,
    beside_answer,
    beside_messages,
    holds_messages,
    is_definition,
    is_flattened,
    messages_of,
    prompt_of,
    speaks,
    system_of,
    tools_among,
    unread_system_of,
    value_of,
)
from ctxengine.engine.importers.transcript import (
    ForeignTool,
    ForeignUsage,
    Repair,
    RepairAction,
    Transcript,
)
from ctxengine.engine.lexeme import Node, NodeKind, parse

_LOOSE = LooseMessages("trace", "openai", calls_in_text=True)


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
    unread: Sequence[Node] = ()
    """Values in the place of its instructions that are none."""


class Asked(NamedTuple):
    """The request of a generation."""

    dialect: Dialect
    request: Request
    unread: Sequence[Node] = ()
    """Parts of it that are neither messages nor tools."""


class Heard(NamedTuple):
    """What a generation was given and gave, apart from its system text, in a form that can be compared."""

    asked: frozenset[Token]
    answered: frozenset[Token]
    opening: str
    """The first text it was given."""
    flattened: bool
    """Whether that holds all it was given, whoever said it."""

    @property
    def all(self) -> frozenset[Token]:
        """Both together: an answer stands in the next request too."""
        return self.asked | self.answered


class Nesting:
    """Which generations are recorded inside others, and which of two recordings is the call itself."""

    def __init__(self, spans: list[Span]) -> None:
        """Find the generation around each generation."""
        parents = {span.span_id: span.parent for span in spans}
        generations = {span.span_id: span for span in spans if span.kind == "generation"}
        self._copies: set[str] = set()
        self._wrappers: set[str] = set()
        inside: dict[str, list[Span]] = {}
        nearest: dict[str, str | None] = {}
        for span in generations.values():
            around = _around(span, parents, generations, nearest)
            if around is not None:
                inside.setdefault(around, []).append(span)
        for around, children in inside.items():
            self._judge(generations[around], children)

    def _judge(self, span: Span, children: list[Span]) -> None:
        """A wrapper says nothing that the calls in it do not say; a copy nothing that the call around it does not."""
        outer, inner = _heard(span), {child.span_id: _heard(child) for child in children}
        asks = [inner[c.span_id] for c in children if holds_messages(value_of(c.request))]
        told = frozenset[Token]().union(*(heard.all for heard in inner.values()))
        if any(outer.asked <= heard.asked for heard in asks) and outer.answered <= told:
            self._wrappers.add(span.span_id)
            return
        self._copies.update(span_id for span_id, heard in inner.items() if _repeats(heard, outer))

    def is_wrapper(self, span: Span) -> bool:
        """Whether it only holds model calls that say themselves what was asked."""
        return span.span_id in self._wrappers

    def is_copy(self, span: Span) -> bool:
        """Whether it is a second recording of the generation around it."""
        return span.span_id in self._copies


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
        nesting = Nesting(spans)
        for span in sorted(spans, key=lambda s: s.start):
            if span.kind == "generation":
                if nesting.is_wrapper(span):
                    detail = "It wraps model calls that are recorded with their own messages."
                    self._leave(span, "wrapper_generation", detail, raw=_written(span))
                elif nesting.is_copy(span):
                    detail = "The same call, recorded a second time."
                    self._leave(span, "nested_generation", detail, raw=_written(span))
                else:
                    self._generation(span)
            elif span.kind == "tool" and span.parent in self._threads:
                self._threads[span.parent].outputs.append(span)
            else:
                self._leave(span, "span", "A span that is no model call.")
        for thread in self._threads.values():
            # No later request brings these results: they are all there is of them.
            self._flush(thread, used=True)
        items = sum(repair.items for repair in self._repairs)
        return Transcript(format_name, self._conversations.sessions(), self._repairs, items)

    def _generation(self, span: Span) -> None:
        dialect, asked, unread = _asked(span)
        answer = _answered(span, dialect)
        if not asked.turns and answer is None:
            detail = "A model call without request and answer."
            self._leave(span, "empty_generation", detail, raw=_written(span) if unread else "")
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
        for node in unread:
            detail = "A part of the request that is no message."
            conversation.draft.leave("unreadable_part", span.where, detail, raw=node.raw)
        if answer is not None:
            tell(conversation, answer, span.where, at=span.at)
            for node in _beside_answer(span, answer):
                detail = "A part of the answer that is no message."
                conversation.draft.leave("unreadable_part", span.where, detail, raw=node.raw)

    def _flush(self, thread: _Thread, *, used: bool) -> None:
        """Tool spans are results only where no later request brings the results itself."""
        for span in thread.outputs:
            call_id = _call_of(thread.conversation, span) if used else None
            if used and (call_id is not None or span.answer is not None):
                content = result_text(_inner(span.answer))
                result = Result(call_id, span.name, content)
                add_result(thread.conversation.draft, result, span.where, Facts(at=span.at))
            else:
                self._leave(span, "tool_span", "A tool run; its result stands in the next request.")
        thread.outputs = []

    def _leave(self, span: Span, code: str, detail: str, *, raw: str = "") -> None:
        told = f"{span.name}: {detail}"
        self._repairs.append(
            Repair(RepairAction.SET_ASIDE, code, span.where, told, items=1, raw=raw)
        )


def _asked(span: Span) -> Asked:
    """The request of a generation, and who can read it."""
    body = value_of(span.request)
    answer = value_of(span.answer)
    if answer is not None and answer.kind is NodeKind.OBJECT and array_at(answer, "output"):
        dialect: Dialect = DIALECTS["openai_responses"]
        items = f'{{"input":{body.raw if body is not None else "[]"}}}'
        told = system_text(answer.get("instructions"))
        asked = dialect.request(parse(items))._replace(
            model=span.model, instructions=told.text, tools=span.tools, unread=told.unread
        )
        return Asked(dialect, asked)
    if body is None or body.kind is NodeKind.NULL:
        return Asked(
            _LOOSE, Request([], span.model, span.instructions, span.tools, unread=span.unread)
        )
    if body.kind is NodeKind.OBJECT and first_given(body, "contents") is not None:
        google = DIALECTS["google_generate_content"]
        return Asked(google, google.request(body))
    if body.kind is NodeKind.OBJECT and array_at(body, "messages"):
        if _is_anthropic(body, answer):
            anthropic = DIALECTS["anthropic_messages"]
            return Asked(anthropic, anthropic.request(body), beside_messages(body))
        tools = DIALECTS["openai_chat"].request(body).tools
        messages = [*system_of(body), *array_at(body, "messages"), *beside_messages(body)]
        return _loose(span, messages, tools, unread_system_of(body))
    prompt = prompt_of(body)
    return _loose(span, [*messages_of(body), *(prompt.rest if prompt is not None else ())], ())


def _loose(
    span: Span, messages: list[Node], tools: Sequence[ForeignTool], unread: Sequence[Node] = ()
) -> Asked:
    """Messages of any framework; tool definitions that stand among them are definitions."""
    spoken = [node for node in messages if speaks(node)]
    defined = [node for node in messages if is_definition(node)]
    odd = [node for node in messages if not speaks(node) and not is_definition(node)]
    turns = loose_turns(spoken)
    declared = [*tools, *tools_among(defined), *span.tools]
    first = turns[0].role if turns else ""
    # Many exporters give the instructions twice: as the first message, and beside the messages.
    instructions = "" if first == "system" else span.instructions
    asked = Request(turns, span.model, instructions, declared, unread=(*unread, *span.unread))
    return Asked(_LOOSE, asked, odd)


def _is_anthropic(body: Node, answer: Node | None) -> bool:
    """Whether a body with messages is one of the Messages API: by its system text, its tools or its answer."""
    told = text_at(answer, "type") == "message" and text_at(answer, "role") == "assistant"
    if any(map(_is_no_anthropic_message, array_at(body, "messages"))):
        return False
    schemas = (object_at(tool, "input_schema") for tool in array_at(body, "tools"))
    system = first_given(body, "system")
    return told or system is not None or any(schema is not None for schema in schemas)


def _is_no_anthropic_message(message: Node) -> bool:
    """Whether a message is of a form that the Messages API refuses: other roles, or calls as the AI SDK writes them."""
    parts = array_at(message, "content")
    return text_at(message, "role") not in ("user", "assistant") or any(
        first_given(part, "toolCallId") is not None for part in parts
    )


def _around(
    span: Span,
    parents: Mapping[str, str | None],
    generations: Collection[str],
    nearest: dict[str, str | None],
) -> str | None:
    """The generation around a span; what was found on the way there is kept in `nearest`."""
    above, passed = span.parent, set[str]()
    while above is not None and above not in generations and above not in passed:
        if above in nearest:
            above = nearest[above]
            break
        passed.add(above)
        above = parents.get(above)
    found = above if above in generations else None
    nearest.update(dict.fromkeys(passed, found))
    return found if found != span.span_id else None


def _heard(span: Span) -> Heard:
    dialect, asked, _ = _asked(span)
    answer = _answered(span, dialect)
    body = value_of(span.answer)
    # Some wrappers give all that was said as their answer.
    whole = array_at(body, "messages") if body is not None else []
    turns = loose_turns(whole) if whole else answer.turns if answer is not None else []
    given = list(_tokens(dialect, asked.turns))
    opening = next((said for kind, said in given if kind == "text"), "")
    return Heard(
        frozenset(given),
        frozenset(_tokens(_LOOSE if whole else dialect, turns)),
        opening,
        is_flattened(value_of(span.request)),
    )


def _repeats(heard: Heard, outer: Heard) -> bool:
    """Whether a recording says nothing that the outer one does not say."""
    if not heard.answered <= outer.answered:
        return False
    flat = heard.flattened and outer.opening != "" and outer.opening in heard.opening
    return heard.asked <= outer.asked or (flat and bool(heard.answered))


def _tokens(dialect: Dialect, turns: Iterable[Turn]) -> Iterator[tuple[str, str]]:
    """What is said, by kind alone: recordings of one call differ in the roles they name."""
    for turn in turns:
        if turn.role != "system":
            yield from ((token[1], token[-1]) for token in dialect.tokens(turn))


def _written(span: Span) -> str:
    """A span's request and answer as they stand in the file."""
    sides = ((name, node) for name, node in (("request", span.request), ("answer", span.answer)))
    return "{" + ",".join(f'"{name}":{node.raw}' for name, node in sides if node is not None) + "}"


def _beside_answer(span: Span, answer: Answer) -> list[Node]:
    """Values among the messages of an answer that `answer_turns` read none from."""
    body = value_of(span.answer)
    return beside_answer(body) if body is not None and answer.turns else []


def _answered(span: Span, dialect: Dialect) -> Answer | None:
    body = value_of(span.answer)
    if body is None or body.kind is NodeKind.NULL:
        return None
    facts = Facts(model=span.model, usage=span.usage)
    answer = dialect.answer(body) if dialect is not _LOOSE and _is_object(body) else None
    if answer is None and dialect is _LOOSE and _is_object(body):
        answer = DIALECTS["openai_chat"].answer(body)
    if answer is not None:
        known = answer.facts
        told = known._replace(model=known.model or facts.model, usage=known.usage or facts.usage)
        return answer._replace(facts=told)
    turns = answer_turns(body)
    if not turns:
        return None
    if dialect is DIALECTS["anthropic_messages"]:
        # A tool's message is read as the result that it is; anybody else's as whose it was found to be.
        read = anthropic_turns(turn.node for turn in turns)
        roles = (None if turn.role == "tool" else turn.role for turn in turns)
        turns = [
            turn._replace(role=role or turn.role) for turn, role in zip(read, roles, strict=True)
        ]
    reason = text_at(turns[0].node, "finish_reason")
    return Answer(turns, facts._replace(stop_reason=reason))


def _is_object(body: Node) -> bool:
    return body.kind is NodeKind.OBJECT


def _inner(node: Node | None) -> Node | None:
    """What a tool gave, without the frame of its exporter."""
    value = value_of(node)
    content = first_given(value, "content")
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
