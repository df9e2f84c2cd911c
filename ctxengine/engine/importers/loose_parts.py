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
from ctxengine.engine.importers.members import first_given, id_at, is_true
from ctxengine.engine.importers.otel_parts import holds_parts, read_otel_part
from ctxengine.engine.importers.pieces import Pieces, Result, result_beside, result_text
from ctxengine.engine.lexeme import Node, NodeKind

_REASONING_KIND = re.compile(r"reasoning|thinking", re.IGNORECASE)
"""How the kinds of parts that hold reasoning are called, whoever names them."""
_WORDS = ("text", "content", "refusal")
"""Members that hold what a part says."""
_SIGNATURES = ("signature", "thinkingSignature", "thoughtSignature", "thought_signature")


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
            if first_given(part, *_SIGNATURES) is not None:
                said.pieces.reasoning()
            return
    reader_of_kind = _BY_KIND.get(text_at(part, "type") or "")
    if reader_of_kind is not None:
        reader_of_kind(said, part)
        return
    if first_given(part, "cachePoint") is not None and first_given(part, *_WORDS) is None:
        said.skipped.append(part)
    elif not read_otel_part(said.pieces, part):
        _read_text(said, part)


def _read_text(said: Said, part: Node) -> None:
    kind = text_at(part, "type")
    text = first_given(part, *_WORDS)
    if is_true(part, "thought") or _REASONING_KIND.search(kind or ""):
        said.pieces.reasoning()
    elif text is None or text.kind is not NodeKind.STRING:
        kind = kind or _only_object(part)
        if kind == "videoMetadata":
            said.skipped.append(part)
        elif kind and _REASONING_KIND.search(kind):
            said.pieces.reasoning()
        elif kind:
            _foreign(said, kind, part)
        else:
            said.unreadable.append(part)
    else:
        said.pieces.text(text)
        if first_given(part, *_SIGNATURES) is not None:
            said.pieces.reasoning()


def _foreign(said: Said, kind: str, part: Node) -> None:
    """Take a part of a kind that nobody here knows; one of a known kind would be read as what it is not."""
    if kind in _KNOWN:
        said.unreadable.append(part)
    else:
        said.pieces.foreign(kind, part)


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
        said.pieces.call(id_at(call, call_id), name, first_given(call, arguments))


def _google_result(said: Said, result: Node) -> None:
    response = first_given(result, "response")
    inner = response
    if response is not None and response.kind is NodeKind.OBJECT:
        members = [pair for pair in response.items() if pair[1].kind is not NodeKind.NULL]
        only = members[0] if len(members) == 1 else None
        if only is not None and only[0] in ("output", "result", "error", "return_value"):
            inner = only[1]
    failed = first_given(response, "error") is not None
    written = result_text(inner)
    beside = Said("tool")
    read_parts(beside, array_at(result, "parts"))
    said.unreadable += beside.unreadable
    written = result_beside(written, beside.pieces.blocks)
    said.results.append(Result(id_at(result, "id"), text_at(result, "name"), written, failed))


def _bedrock_result(said: Said, result: Node) -> None:
    inner = Said("tool")
    content = first_given(result, "content")
    if content is not None and content.kind not in (NodeKind.ARRAY, NodeKind.OBJECT):
        inner.pieces.text(content)
    for part in _listed(content):
        json_part = first_given(part, "json")
        if json_part is not None:
            inner.pieces.plain(json_part.raw)
        else:
            read_parts(inner, [part])
    failed = text_at(result, "status") == "error"
    said.results.append(Result(id_at(result, "toolUseId"), None, inner.pieces.body, failed))
    said.unreadable.extend(inner.unreadable)


def _listed(content: Node | None) -> list[Node]:
    """Parts of a list, or the one part that stands in its place."""
    if content is None:
        return []
    return [content] if content.kind is NodeKind.OBJECT else list(content)


def _bedrock_reasoning(said: Said, reasoning: Node) -> None:
    inner = object_at(reasoning, "reasoningText")
    text = first_given(inner, "text")
    if inner is not None and text is not None:
        said.pieces.thinking(text, first_given(inner, "signature"))
    else:
        said.pieces.reasoning()


def _typed_call(said: Said, part: Node) -> None:
    name, served = text_at(part, "name"), text_at(part, "tool_type")
    if served is not None:
        # Inspect's form of a call that the provider ran itself, with its result.
        _foreign(said, f"{served}_call", part)
    elif name is None:
        said.unreadable.append(part)
    else:
        arguments = first_given(part, "arguments", "input", "args")
        said.pieces.call(id_at(part, "id", "call_id"), name, arguments)


def _typed_result(said: Said, part: Node) -> None:
    call_id = id_at(part, "id", "tool_use_id", "call_id", "tool_call_id")
    content = first_given(part, "response", "result", "content", "output")
    failed = is_true(part, "is_error", "isError")
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
    text, signature = first_given(part, "thinking"), first_given(part, *_SIGNATURES)
    if text is not None and signature is not None and signature.text():
        said.pieces.thinking(text, signature)
    else:
        said.pieces.reasoning()


RESULT_KINDS = ("tool_result", "tool_call_response", "tool-result")
_KNOWN = frozenset(
    (
        *("text", "document", "file", "input_text", "output_text", "refusal"),
        *("tool_use", "tool_call", "tool_result"),
    )
)
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
