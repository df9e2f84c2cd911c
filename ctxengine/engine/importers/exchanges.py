"""Recorded exchanges with a provider: one request and one response each, any number of conversations in a file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import unquote

from ctxengine.engine.importers.anthropic_messages import AnthropicMessages
from ctxengine.engine.importers.bedrock_converse import BedrockConverse
from ctxengine.engine.importers.conversations import Conversations, compact, tell
from ctxengine.engine.importers.dialect import Answer, Dialect, Request, object_at, text_at
from ctxengine.engine.importers.events import event_data, is_event_stream
from ctxengine.engine.importers.google_generate_content import GoogleGenerateContent
from ctxengine.engine.importers.members import first_given
from ctxengine.engine.importers.openai_chat import OpenAIChat
from ctxengine.engine.importers.openai_responses import OpenAIResponses
from ctxengine.engine.importers.texts import time_of
from ctxengine.engine.importers.transcript import Repair, RepairAction, Transcript
from ctxengine.engine.lexeme import LexemeError, Node, NodeKind, parse

DIALECTS: dict[str, Dialect] = {
    "openai_chat": OpenAIChat(),
    "anthropic_messages": AnthropicMessages(),
    "openai_responses": OpenAIResponses(),
    "google_generate_content": GoogleGenerateContent(),
    "bedrock_converse": BedrockConverse(),
}

_PATHS = (
    ("/chat/completions", "openai_chat"),
    ("/v1/messages", "anthropic_messages"),
    ("/responses", "openai_responses"),
    (":generateContent", "google_generate_content"),
    (":streamGenerateContent", "google_generate_content"),
    ("/converse", "bedrock_converse"),
)
_FAILED = 400
_ASKED = ("messages", "input", "contents")
_MODEL_IN_PATH = re.compile(r"/models?/([^/:?]+)[/:]")


class Exchange(NamedTuple):
    """One recorded exchange."""

    where: str
    request: Node
    response: Node | None
    uri: str = ""
    status: int = 200
    at: str | None = None
    """When it was recorded, where the recorder says so."""
    api: str | None = None
    """Name of the dialect, where it is known already."""


class _Reader:
    """Reads exchanges, one after the other."""

    def __init__(self) -> None:
        self.conversations = Conversations()
        self.repairs: list[Repair] = []
        self.apis: list[str] = []

    def take(self, exchange: Exchange) -> None:
        """Read one exchange."""
        name = api_of(exchange)
        request = _body(exchange.request)
        if name is None:
            self.repairs.append(_foreign(exchange))
            return
        self.apis.append(name)
        dialect = DIALECTS[name]
        is_readable = request is not None and request.kind is NodeKind.OBJECT
        asked = dialect.request(request) if request is not None and is_readable else Request([])
        if asked.model is None:
            asked = asked._replace(model=_model_in(exchange.uri))
        conversation = self.conversations.ask(dialect, asked, exchange.where, at=exchange.at)
        if not is_readable:
            detail = "The recorder kept no request that can be read; the answer stands alone."
            raw = exchange.request.raw
            conversation.draft.leave("unreadable_request", exchange.where, detail, raw=raw)
        if exchange.response is None:
            return
        answer = _read_answer(dialect, exchange)
        if answer is not None and answer.facts.model is None:
            answer = answer._replace(facts=answer.facts._replace(model=asked.model))
        if answer is None:
            detail = f"The provider gave no answer (status {exchange.status})."
            raw = exchange.response.raw
            conversation.draft.leave("failed_exchange", exchange.where, detail, raw=raw)
        elif "/compact" in exchange.uri:
            compact(conversation, answer, exchange.where)
        else:
            tell(conversation, answer, exchange.where, at=exchange.at)

    def transcript(self) -> Transcript:
        """Everything read so far."""
        counted = Counter(self.apis)
        last = self.apis[-1] if self.apis else "openai_chat"
        # Mixed files are named after the provider most used; the last one decides between equals.
        format_name = max(counted, key=lambda api: (counted[api], api == last), default=last)
        items = sum(repair.items for repair in self.repairs)
        return Transcript(format_name, self.conversations.sessions(), self.repairs, items)


def read_exchanges(exchanges: Iterable[Exchange]) -> Transcript:
    """Sort exchanges into conversations and read them."""
    reader = _Reader()
    for exchange in exchanges:
        reader.take(exchange)
    return reader.transcript()


def exchanges_of(document: Node) -> list[Exchange]:
    """Exchanges of a `{"exchanges": [...]}` document or of a list of request and response pairs."""
    records = first_given(document, "exchanges") or document
    return [exchange_of(record, f"exchange {n}") for n, record in enumerate(records, 1)]


def exchange_of(record: Node, where: str) -> Exchange:
    """One recorded exchange."""
    status = first_given(record, "status")
    code = status.value() if status is not None else 200
    if isinstance(code, dict):
        code = code.get("code")
    return Exchange(
        where=where,
        request=_request_of(record),
        response=first_given(record, "response"),
        uri=text_at(record, "uri") or text_at(record, "url") or "",
        status=code if isinstance(code, int) else 200,
        at=time_of(text_at(record, "recorded_at")),
    )


def _request_of(record: Node) -> Node:
    """The request of a record, which may be the record itself; null where its recorder kept none."""
    kept = record.get("request")
    if kept is None or (kept.kind is NodeKind.NULL and first_given(record, *_ASKED) is not None):
        return record
    return kept


def api_of(exchange: Exchange) -> str | None:
    """Name of the dialect an exchange speaks, by its address, else by its request."""
    if exchange.api is not None:
        return exchange.api
    for part, name in _PATHS:
        if part in exchange.uri:
            return name
    request = _body(exchange.request)
    if first_given(request, "anthropic_version") is not None:
        # Bedrock and Vertex serve the Messages API at addresses of their own.
        return "anthropic_messages"
    if exchange.uri or request is None:
        return None
    if first_given(request, "input") is not None:
        return "openai_responses"
    if first_given(request, "contents") is not None:
        return "google_generate_content"
    if first_given(request, "messages") is None:
        return None
    response = exchange.response
    if response is not None and response.kind is NodeKind.OBJECT:
        has_choices = first_given(response, "choices") is not None
        return "openai_chat" if has_choices else "anthropic_messages"
    return "anthropic_messages" if first_given(request, "system") is not None else "openai_chat"


def _body(node: Node | None) -> Node | None:
    """A body as JSON: recorders keep it as an object or as its text."""
    if node is None or node.kind is not NodeKind.STRING:
        return node
    return _parsed(node.text() or "")


def _parsed(text: str) -> Node | None:
    try:
        return parse(text)
    except LexemeError:
        return None


def _model_in(uri: str) -> str | None:
    """Google and Bedrock name the model in the address."""
    found = _MODEL_IN_PATH.search(uri)
    return unquote(found[1]) if found else None


def _read_answer(dialect: Dialect, exchange: Exchange) -> Answer | None:
    response = exchange.response
    if response is None or exchange.status >= _FAILED:
        return None
    text = response.text()
    if text is not None and is_event_stream(text):
        made = dialect.stream(event_data(text))
        body = None if made is None else _parsed(made)
        return dialect.answer(body) if body is not None else None
    body = _body(response)
    if body is None or body.kind is not NodeKind.OBJECT or object_at(body, "error") is not None:
        return None
    return dialect.answer(body)


def _foreign(exchange: Exchange) -> Repair:
    gave = exchange.response.raw if exchange.response is not None else "null"
    return Repair(
        RepairAction.SET_ASIDE,
        "other_exchange",
        exchange.where,
        f"A request to {exchange.uri or 'an unknown address'} is no model call that is known here.",
        items=1,
        raw=f'{{"request":{exchange.request.raw},"response":{gave}}}',
    )
