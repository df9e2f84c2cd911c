"""Bedrock Converse: neutral messages as content blocks, neighbours of one role joined into one message.

A cache point is a block of its own behind what it caches. Images and documents go inline; a document's name is ours, since
the model reads it and a file's own name may be hostile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ctxengine.engine.wire.base import (
    Fragment,
    Marker,
    WireApi,
    WireCall,
    WireFile,
    WireImage,
    WireMessage,
    WireOpaque,
    WireParams,
    WirePart,
    WirePrefix,
    WireResult,
    WireText,
    WireTool,
)
from ctxengine.engine.wire.encoding import (
    FILE_LEFT_OUT,
    IMAGE_LEFT_OUT,
    image_type,
    quoted,
    refuse,
    says_something,
    utf8,
)
from ctxengine.engine.wire.markers import Ttl, place, refuse_growing_ttl
from ctxengine.engine.wire.names import refuse_unlike
from ctxengine.engine.wire.turns import joined

IMAGE_FORMATS = {
    "image/png": "png",
    "image/jpeg": "jpeg",
    "image/jpg": "jpeg",
    "image/gif": "gif",
    "image/webp": "webp",
}
DOCUMENT_FORMATS = {
    "application/pdf": "pdf",
    "text/csv": "csv",
    "text/html": "html",
    "text/plain": "txt",
    "text/markdown": "md",
    "application/msword": "doc",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.ms-excel": "xls",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
}
DOCUMENT_NAME = "attachment"
DOCUMENT_FOLLOWS = "[A document follows.]"
"""The API wants a text beside every document."""
_ROLES = {"user": "user", "assistant": "assistant"}


class BedrockRenderer:
    """Renders for `POST /model/{modelId}/converse`; `modelId` in the body is the path's."""

    api = WireApi.BEDROCK
    version = "bedrock-1"
    states_window = False

    def fragments(self, message: WireMessage) -> tuple[Fragment, ...]:
        """Blocks of one message, results first; a message of reasoning alone gives none.

        Raises:
            WireInvalid: an id or a name breaks the API's pattern, or a result has no content.
        """
        parts: Sequence[WirePart] = message.parts
        if message.role == "user":
            parts = sorted(parts, key=lambda part: not isinstance(part, WireResult))
        blocks = [block for part in parts for block in _blocks(part, message.role)]
        if all(kind == "reasoning" for kind, _ in blocks):
            return ()
        kinds = [kind for kind, _ in blocks]
        if "document" in kinds and "text" not in kinds:
            blocks.insert(kinds.index("document"), ("text", _text(DOCUMENT_FOLLOWS)))
        data = utf8(",".join(text for _, text in blocks), "A message")
        markable = blocks[-1][0] != "reasoning"
        return (Fragment(message.role, data, positions=len(blocks), markable=markable),)

    def prefix_bytes(self, prefix: WirePrefix) -> bytes:
        """Tools and system as they stand in the body."""
        return _prefix(prefix, None, None)

    def body(
        self,
        prefix: WirePrefix,
        fragments: tuple[Fragment, ...],
        params: WireParams,
        markers: tuple[Marker, ...] = (),
    ) -> bytes:
        """The request: modelId, inferenceConfig, toolConfig, system, messages.

        Raises:
            WireInvalid: the markers break the API's limit or its order of lives.
        """
        system = any(says_something(text) for text in prefix.system)
        places = place(markers, fragments, tools=bool(prefix.tools), system=system)
        refuse_growing_ttl(places)
        head = (
            f'{{"modelId":{quoted(params.model)},'
            f'"inferenceConfig":{{"maxTokens":{params.max_output_tokens}}},'
        )
        points = {index: _point(ttl).encode() for index, ttl in places.fragments.items()}
        return b"".join(
            (
                utf8(head, "The model name"),
                _prefix(prefix, places.tools, places.system),
                b'"messages":[',
                *joined(fragments, _ROLES, b"content", points),
                b"]}",
            )
        )


def _blocks(part: WirePart, role: str) -> Iterator[tuple[str, str]]:
    """Blocks of one part as (kind, JSON text)."""
    match part:
        case WireText(text):
            if says_something(text):
                yield "text", _text(text)
        case WireCall():
            yield "call", _call(part)
        case WireResult():
            yield "result", _result(part)
        case WireOpaque():
            yield part.kind, part.raw
        case WireImage() | WireFile():
            yield _media(part) if role == "user" else ("text", _text(_left_out(part)))


def _text(text: str) -> str:
    return f'{{"text":{quoted(text)}}}'


def _left_out(part: WireImage | WireFile) -> str:
    return IMAGE_LEFT_OUT if isinstance(part, WireImage) else FILE_LEFT_OUT


def _media(part: WireImage | WireFile) -> tuple[str, str]:
    image = isinstance(part, WireImage)
    known = IMAGE_FORMATS if image else DOCUMENT_FORMATS
    if isinstance(part, WireImage):
        form = known.get(image_type(part) or "image/png")
    else:
        form = known.get((part.media_type or "application/pdf").lower())
    if form is None or part.base64 is None:
        return "text", _text(_left_out(part))
    source = f'"source":{{"bytes":{quoted(part.base64)}}}'
    if image:
        return "image", f'{{"image":{{"format":"{form}",{source}}}}}'
    named = f'"format":"{form}","name":"{DOCUMENT_NAME}"'
    return "document", f'{{"document":{{{named},{source}}}}}'


def _call(call: WireCall) -> str:
    refuse_unlike(call.call_id, call.name)
    return (
        f'{{"toolUse":{{"toolUseId":"{call.call_id}","name":"{call.name}",'
        f'"input":{call.arguments}}}}}'
    )


def _result(result: WireResult) -> str:
    refuse_unlike(result.call_id, None)
    content = [text for part in result.content for _, text in _blocks(part, "user")]
    if not content:
        refuse(f"The result of call {result.call_id} has no content; say that there was no output.")
    status = "error" if result.is_error else "success"
    return (
        f'{{"toolResult":{{"toolUseId":"{result.call_id}","content":[{",".join(content)}],'
        f'"status":"{status}"}}}}'
    )


def _point(ttl: Ttl) -> str:
    life = ',"ttl":"1h"' if ttl == "1h" else ""
    return f'{{"cachePoint":{{"type":"default"{life}}}}}'


def _prefix(prefix: WirePrefix, tools: Ttl | None, system: Ttl | None) -> bytes:
    pieces = []
    if prefix.tools:
        specs = [_tool(tool) for tool in prefix.tools]
        specs += [_point(tools)] if tools else []
        pieces.append(f'"toolConfig":{{"tools":[{",".join(specs)}]}},')
    texts = [_text(text) for text in prefix.system if says_something(text)]
    if texts:
        texts += [_point(system)] if system else []
        pieces.append(f'"system":[{",".join(texts)}],')
    return utf8("".join(pieces), "The prefix")


def _tool(tool: WireTool) -> str:
    refuse_unlike(None, tool.name)
    described = (
        f'"description":{quoted(tool.description)},' if says_something(tool.description) else ""
    )
    return (
        f'{{"toolSpec":{{"name":"{tool.name}",{described}'
        f'"inputSchema":{{"json":{tool.input_schema}}}}}}}'
    )
