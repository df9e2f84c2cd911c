"""Recorded exchanges with a provider: one request and one response each, any number of conversations in a file.

A request whose turns begin with everything an earlier exchange said continues that conversation: only what is new
becomes entries, the repetition is reported. A request that rewrites history opens a conversation of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from ctxengine.engine.importers.anthropic_messages import AnthropicMessages
from ctxengine.engine.importers.dialect import (
    Answer,
    Dialect,
    Facts,
    Request,
    Token,
    Turn,
    object_at,
    text_at,
)
from ctxengine.engine.importers.draft import SessionDraft
from ctxengine.engine.importers.events import event_data, is_event_stream
from ctxengine.engine.importers.openai_chat import OpenAIChat
from ctxengine.engine.importers.openai_responses import OpenAIResponses
from ctxengine.engine.importers.texts import time_of
from ctxengine.engine.importers.transcript import Repair, RepairAction, Transcript
from ctxengine.engine.lexeme import LexemeError, Node, NodeKind, parse

DIALECTS: dict[str, Dialect] = {
    "openai_chat": OpenAIChat(),
    "anthropic_messages": AnthropicMessages(),
    "openai_responses": OpenAIResponses(),
}

_PATHS = (
    ("/chat/completions", "openai_chat"),
    ("/v1/messages", "anthropic_messages"),
    ("/responses", "openai_responses"),
)
_FAILED = 400
WHOLE_FILE = "the file"
"""Place of an exchange that is all there is in the file."""
_LOOK_BACK = 16
"""How many conversations back a request may continue; keeps files of thousands of conversations linear."""


class Exchange(NamedTuple):
    """One recorded exchange."""

    where: str
    request: Node
    response: Node | None
    uri: str = ""
    status: int = 200
    at: str | None = None
    """When it was recorded, where the recorder says so."""


@dataclass(slots=True)
class _Conversation:
    """A conversation as far as it is known."""

    draft: SessionDraft
    dialect: Dialect
    known: list[Token] = field(default_factory=list)
    unread: list[Turn] = field(default_factory=list)
    """Turns said since `known` was last brought up to date (a file of one exchange never needs it)."""
    response_ids: set[str] = field(default_factory=set)

    def tokens(self) -> list[Token]:
        """Everything said so far."""
        if self.unread:
            said = map(self.dialect.tokens, self.unread)
            self.known = _merged([self.known, *said])
            self.unread = []
        return self.known


class _Reader:
    """Sorts exchanges into conversations."""

    def __init__(self) -> None:
        self.conversations: list[_Conversation] = []
        self.repairs: list[Repair] = []
        self.apis: list[str] = []

    def take(self, exchange: Exchange) -> None:
        """Read one exchange."""
        name = api_of(exchange)
        request = _body(exchange.request)
        if name is None or request is None or request.kind is not NodeKind.OBJECT:
            self.repairs.append(_foreign(exchange))
            return
        self.apis.append(name)
        dialect = DIALECTS[name]
        asked = dialect.request(request)
        conversation, new = self._place(dialect, asked, exchange)
        draft = conversation.draft
        draft.model = draft.model or asked.model
        self._note_instructions(draft, asked, exchange)
        for tool in asked.tools:
            draft.declare(tool)
        offset = len(asked.turns) - len(new)
        facts = Facts(at=exchange.at)
        dialect.add(draft, new, lambda n: _place_of(exchange, f"message {offset + n + 1}"), facts)
        self._answer(conversation, exchange)

    def transcript(self) -> Transcript:
        """Everything read so far."""
        counted = Counter(self.apis)
        last = self.apis[-1] if self.apis else "openai_chat"
        # Mixed files are named after the provider most used; the last one decides between equals.
        format_name = max(counted, key=lambda api: (counted[api], api == last), default=last)
        sessions = [conversation.draft.finish() for conversation in self.conversations]
        items = sum(repair.items for repair in self.repairs)
        return Transcript(format_name, sessions, self.repairs, items)

    def _place(
        self, dialect: Dialect, asked: Request, exchange: Exchange
    ) -> tuple[_Conversation, list[Turn]]:
        """The conversation a request belongs to, and the turns of it that are new."""
        candidates = [c for c in self.conversations[-_LOOK_BACK:] if c.dialect is dialect]
        found = next((c for c in candidates if asked.follows in c.response_ids), None)
        matched = 0
        if found is None and candidates:
            per_turn = [dialect.tokens(turn) for turn in asked.turns]
            for candidate in candidates:
                count = _repeats(candidate.tokens(), per_turn)
                if count and count >= matched:
                    found, matched = candidate, count
        conversation = found or self._open(dialect, asked)
        if matched:
            _repeated(conversation.draft, dialect, asked.turns[:matched], exchange)
        new = asked.turns[matched:]
        conversation.unread.extend(new)
        return conversation, new

    def _open(self, dialect: Dialect, asked: Request) -> _Conversation:
        draft = SessionDraft(f"conversation-{len(self.conversations) + 1}", dialect.provider)
        draft.instructions = asked.instructions
        conversation = _Conversation(draft, dialect)
        self.conversations.append(conversation)
        return conversation

    def _note_instructions(self, draft: SessionDraft, asked: Request, exchange: Exchange) -> None:
        if asked.instructions and asked.instructions != draft.instructions:
            draft.note(
                RepairAction.WARNED,
                "instructions_changed",
                exchange.where,
                "The request carries other instructions than the first one; the first ones are kept.",
            )

    def _answer(self, conversation: _Conversation, exchange: Exchange) -> None:
        draft, dialect = conversation.draft, conversation.dialect
        if exchange.response is None:
            return
        answer = _read_answer(dialect, exchange)
        if answer is None:
            raw = exchange.response.raw
            detail = f"The provider gave no answer (status {exchange.status})."
            draft.leave("failed_exchange", exchange.where, detail, raw=raw)
            return
        turns = answer.turns
        if "/compact" in exchange.uri:
            turns = self._compacted(conversation, turns, exchange)
        facts = answer.facts._replace(at=answer.facts.at or exchange.at)
        dialect.add(draft, turns, lambda _: _place_of(exchange, "answer"), facts)
        if answer.dropped:
            draft.note(
                RepairAction.WARNED,
                "other_choices",
                exchange.where,
                f"{answer.dropped} further choice(s) of the response are not part of the conversation.",
            )
        conversation.unread.extend(turns)
        if answer.response_id is not None:
            conversation.response_ids.add(answer.response_id)

    def _compacted(
        self, conversation: _Conversation, turns: list[Turn], exchange: Exchange
    ) -> list[Turn]:
        """An explicit compaction gives a new window: the block is new, the messages beside it are old."""
        blocks = [turn for turn in turns if turn.role == "summary"]
        others = [turn for turn in turns if turn.role != "summary"]
        _repeated(conversation.draft, conversation.dialect, others, exchange)
        conversation.known, conversation.unread = [], []
        return blocks


def read_exchanges(exchanges: Iterable[Exchange]) -> Transcript:
    """Sort exchanges into conversations and read them."""
    reader = _Reader()
    for exchange in exchanges:
        reader.take(exchange)
    return reader.transcript()


def exchanges_of(document: Node) -> list[Exchange]:
    """Exchanges of a `{"exchanges": [...]}` document or of a list of request and response pairs."""
    records = document.get("exchanges") or document
    return [exchange_of(record, f"exchange {n}") for n, record in enumerate(records, 1)]


def exchange_of(record: Node, where: str) -> Exchange:
    """One recorded exchange."""
    status = record.get("status")
    code = status.value() if status is not None else 200
    if isinstance(code, dict):
        code = code.get("code")
    return Exchange(
        where=where,
        request=record.get("request") or record,
        response=record.get("response"),
        uri=text_at(record, "uri") or text_at(record, "url") or "",
        status=code if isinstance(code, int) else 200,
        at=time_of(text_at(record, "recorded_at")),
    )


def api_of(exchange: Exchange) -> str | None:
    """Name of the dialect an exchange speaks, by its address, else by its request."""
    for part, name in _PATHS:
        if part in exchange.uri:
            return name
    request = _body(exchange.request)
    if exchange.uri or request is None:
        return None
    if request.get("input") is not None:
        return "openai_responses"
    if request.get("messages") is None:
        return None
    response = exchange.response
    if response is not None and response.kind is NodeKind.OBJECT:
        return "openai_chat" if response.get("choices") is not None else "anthropic_messages"
    return "anthropic_messages" if request.get("system") is not None else "openai_chat"


def _body(node: Node | None) -> Node | None:
    """A body as JSON: recorders keep it as an object or as its text."""
    if node is None or node.kind is not NodeKind.STRING:
        return node
    try:
        return parse(node.text() or "")
    except LexemeError:
        return None


def _read_answer(dialect: Dialect, exchange: Exchange) -> Answer | None:
    response = exchange.response
    if response is None or exchange.status >= _FAILED:
        return None
    text = response.text()
    if text is not None and is_event_stream(text):
        made = dialect.stream(event_data(text))
        return dialect.answer(parse(made)) if made is not None else None
    body = _body(response)
    if body is None or body.kind is not NodeKind.OBJECT or object_at(body, "error") is not None:
        return None
    return dialect.answer(body)


def _place_of(exchange: Exchange, what: str) -> str:
    return f"{exchange.where} {what}" if exchange.where != WHOLE_FILE else what


def _foreign(exchange: Exchange) -> Repair:
    return Repair(
        RepairAction.SET_ASIDE,
        "other_exchange",
        exchange.where,
        f"A request to {exchange.uri or 'an unknown address'} is no model call that is known here.",
        items=1,
        raw=exchange.request.raw,
    )


def _repeated(draft: SessionDraft, dialect: Dialect, turns: list[Turn], exchange: Exchange) -> None:
    """Count repeated turns by reading them into a draft of their own that is thrown away."""
    shadow = SessionDraft("", dialect.provider)
    dialect.add(shadow, turns, lambda _: "")
    items = shadow.items_in
    draft.found(items)
    draft.tally(
        "repeated_history",
        exchange.where,
        "History that earlier exchanges of the conversation already gave.",
        items=items,
    )


def _merged(per_turn: Iterable[list[Token]]) -> list[Token]:
    """One flat list; neighbouring texts of the model become one, since replays cut them differently."""
    merged: list[Token] = []
    for tokens in per_turn:
        for token in tokens:
            if merged and _joins(merged[-1], token):
                merged[-1] = ("assistant", "text", merged[-1][2] + token[2])
            else:
                merged.append(token)
    return merged


def _joins(before: Token, after: Token) -> bool:
    return before[:2] == after[:2] == ("assistant", "text")


def _repeats(known: list[Token], per_turn: list[list[Token]]) -> int:
    """How many turns of a request repeat all that is known; 0 when it does not begin with it."""
    if not known:
        return 0
    merged: list[Token] = []
    for count, tokens in enumerate(per_turn, 1):
        for token in tokens:
            if merged and _joins(merged[-1], token):
                merged[-1] = ("assistant", "text", merged[-1][2] + token[2])
            else:
                merged.append(token)
        if len(merged) > len(known):
            return 0
        if not tokens or len(merged) < len(known) or merged[-1] != known[-1]:
            continue
        if merged == known and not _continues(merged, per_turn[count:]):
            return count
    return 0


def _continues(merged: list[Token], rest: list[list[Token]]) -> bool:
    following = next((tokens[0] for tokens in rest if tokens), None)
    return following is not None and _joins(merged[-1], following)
