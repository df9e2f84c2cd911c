"""Parts of messages in the forms of Google, Bedrock, OpenTelemetry GenAI, the AI SDK, LangChain and Inspect.

Each part is recognised by its members alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

from ctxengine.engine.importers.ai_sdk_parts import is_sdk_call, sdk_call, sdk_result
from ctxengine.engine.importers.dialect import Token, array_at, gist, object_at, text_at
from ctxengine.engine.importers.inline_media import (
    bedrock_file,
    bedrock_image,
    google_data,
    typed_image,
)
from ctxengine.engine.importers.otel_parts import holds_parts, read_otel_part
from ctxengine.engine.importers.pieces import Pieces, Result, result_beside, result_text
from ctxengine.engine.lexeme import Node, NodeKind

_REASONING_KIND = re.compile(r"reasoning|thinking", re.IGNORECASE)
"""How the kinds of parts that hold reasoning are called, whoever names them."""


@dataclass(slots=True)
class Said:
    """One message, read."""

    role: str
    pieces: Pieces = field(default_factory=Pieces)
    results: list[Result] = field(default_factory=list)
    skipped: list[Node] = field(default_factory=list)
    """Parts that are no content: cache points."""
    unreadable: list[Node] = field(default_factory=list)

    @property
    def has_words(self) -> bool:
        """Whether it says anything beside results, reasoning that is not kept among it."""
        return bool(self.pieces.blocks or self.pieces.unkept)

    def tokens(self) -> list[Token]:
        """What is said, for recognising repeated history."""
        tokens: list[Token] = [(self.role, *words) for words in self.pieces.words]
        tokens += [
            ("user", "result", r.name or r.call_id or "", gist(r.content)) for r in self.results
        ]
        return tokens


def read_parts(said: Said, parts: Iterable[Node]) -> None:
    """Read content parts of any known form."""
    for part in parts:
        if part.kind is NodeKind.STRING:
            said.pieces.text(part)
        elif part.kind is not NodeKind.OBJECT:
            said.unreadable.append(part)
        else:
            _read_part(said, part)


def _read_part(said: Said, part: Node) -> None:
    for member, reader in _BY_MEMBER:
        inner = part.get(member)
        if inner is not None and inner.kind is NodeKind.OBJECT:
            reader(said, inner)
            if part.get("thoughtSignature") is not None:
                said.pieces.reasoning()
            return
    reader_of_kind = _BY_KIND.get(text_at(part, "type") or "")
    if reader_of_kind is not None:
        reader_of_kind(said, part)
        return
    if part.get("cachePoint") is not None:
        said.skipped.append(part)
    elif not read_otel_part(said.pieces, part):
        _read_text(said, part)


def _read_text(said: Said, part: Node) -> None:
    text = part.get("text") or part.get("content")
    thought = part.get("thought")
    if text is None or text.kind is not NodeKind.STRING:
        kind = text_at(part, "type") or _only_object(part)
        if kind == "videoMetadata":
            said.skipped.append(part)
        elif kind and _REASONING_KIND.search(kind):
            said.pieces.reasoning()
        elif kind and kind not in _KNOWN:
            said.pieces.foreign(kind, part)
        else:
            said.unreadable.append(part)
    elif (thought is not None and thought.kind is NodeKind.TRUE) or _REASONING_KIND.search(
        text_at(part, "type") or ""
    ):
        said.pieces.reasoning()
    else:
        said.pieces.text(text)
        if part.get("thoughtSignature") is not None:
            said.pieces.reasoning()


def _only_object(part: Node) -> str | None:
    """What a part without a type is called: the member that holds it."""
    return next((key for key, node in part.items() if node.kind is NodeKind.OBJECT), None)


def _call(said: Said, call: Node, call_id: str, arguments: str) -> None:
    """Take a call; one without a name cannot be read.

    Args:
        call_id: the member that holds its id.
        arguments: the member that holds what it asks for.
    """
    name = text_at(call, "name")
    if name is None:
        said.unreadable.append(call)
    else:
        said.pieces.call(text_at(call, call_id), name, call.get(arguments))


def _google_result(said: Said, result: Node) -> None:
    response = result.get("response")
    inner = response
    if response is not None and response.kind is NodeKind.OBJECT:
        members = response.items()
        only = members[0] if len(members) == 1 else None
        if only is not None and only[0] in ("output", "result", "error", "return_value"):
            inner = only[1]
    failed = response is not None and response.get("error") is not None
    written = result_text(inner)
    beside = Said("tool")
    read_parts(beside, array_at(result, "parts"))
    said.unreadable += beside.unreadable
    written = result_beside(written, beside.pieces.blocks)
    said.results.append(Result(text_at(result, "id"), text_at(result, "name"), written, failed))


def _bedrock_result(said: Said, result: Node) -> None:
    inner = Said("tool")
    for part in array_at(result, "content"):
        json_part = part.get("json")
        if json_part is not None:
            inner.pieces.plain(json_part.raw)
        else:
            read_parts(inner, [part])
    failed = text_at(result, "status") == "error"
    said.results.append(Result(text_at(result, "toolUseId"), None, inner.pieces.body, failed))
    said.unreadable.extend(inner.unreadable)


def _bedrock_reasoning(said: Said, reasoning: Node) -> None:
    inner = object_at(reasoning, "reasoningText")
    text = inner.get("text") if inner is not None else None
    if inner is not None and text is not None:
        said.pieces.thinking(text, inner.get("signature"))
    else:
        said.pieces.reasoning()


def _typed_call(said: Said, part: Node) -> None:
    name, served = text_at(part, "name"), text_at(part, "tool_type")
    if served is not None:
        # Inspect's form of a call that the provider ran itself, with its result.
        said.pieces.foreign(f"{served}_call", part)
    elif name is None:
        said.unreadable.append(part)
    else:
        arguments = part.get("arguments") or part.get("input")
        said.pieces.call(text_at(part, "id"), name, arguments)


def _typed_result(said: Said, part: Node) -> None:
    call_id = text_at(part, "id") or text_at(part, "tool_use_id")
    content = part.get("response") or part.get("result") or part.get("content")
    is_error = part.get("is_error")
    failed = is_error is not None and is_error.kind is NodeKind.TRUE
    written = result_text(content)
    if content is not None and holds_parts(content):
        inner = Said("tool")
        read_parts(inner, content)
        written = inner.pieces.body
    said.results.append(Result(call_id, text_at(part, "name"), written, failed))


def _sdk_call(said: Said, part: Node) -> None:
    if is_sdk_call(part):
        sdk_call(said.pieces, part)
    else:
        said.unreadable.append(part)


def _typed_thinking(said: Said, part: Node) -> None:
    text, signature = part.get("thinking"), part.get("signature") or part.get("thinkingSignature")
    if text is not None and signature is not None and signature.text():
        said.pieces.thinking(text, signature)
    else:
        said.pieces.reasoning()


RESULT_KINDS = ("tool_result", "tool_call_response", "tool-result")
_KNOWN = frozenset(("text", "document", "file"))
"""Kinds that must have content of their own; without it they are unreadable, not foreign."""

_Reader = Callable[[Said, Node], None]


def _media(read: Callable[[Pieces, Node], None]) -> _Reader:
    return lambda said, part: read(said.pieces, part)


_BY_MEMBER: tuple[tuple[str, _Reader], ...] = (
    ("functionCall", partial(_call, call_id="id", arguments="args")),
    ("function_call", partial(_call, call_id="id", arguments="args")),
    ("functionResponse", _google_result),
    ("function_response", _google_result),
    ("inlineData", _media(google_data)),
    ("inline_data", _media(google_data)),
    ("fileData", _media(google_data)),
    ("file_data", _media(google_data)),
    ("toolUse", partial(_call, call_id="toolUseId", arguments="input")),
    ("toolResult", _bedrock_result),
    ("reasoningContent", _bedrock_reasoning),
    ("image", _media(bedrock_image)),
    ("document", _media(bedrock_file)),
    ("video", _media(bedrock_file)),
    ("citationsContent", lambda said, cited: read_parts(said, array_at(cited, "content"))),
)
_BY_KIND: dict[str, _Reader] = {
    "tool_call": _typed_call,
    "toolCall": _typed_call,
    "tool_use": _typed_call,
    "tool-call": _sdk_call,
    "tool-result": lambda said, part: said.results.append(sdk_result(part)),
    "tool_call_response": _typed_result,
    "tool_result": _typed_result,
    "thinking": _typed_thinking,
    "reasoning": _typed_thinking,
    "redacted_thinking": _typed_thinking,
    "image": _media(typed_image),
    "image_url": _media(typed_image),
}
