"""Anthropic Messages: neutral messages as content blocks.

Fragments are runs of blocks of one role. `body` joins neighbours of one role into one message, so
the bytes for the first n fragments are the beginning of those for n + 1, up to the end of the last
block. A message whose tail cannot carry a cache marker gives two fragments: up to the last block
that can, and the rest. White-space-only texts are left out, since the API refuses them, and so is a
message of reasoning alone.

Every block counts as one cache position, although the API joins runs of calls or results: the
look-back is never overestimated this way.
"""

from __future__ import annotations

import re
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
    web_address,
)
from ctxengine.engine.wire.markers import Ttl, place, refuse_growing_ttl
from ctxengine.engine.wire.tool_search import deferred, search_declaration

REASONING_KINDS = frozenset({"thinking", "redacted_thinking", "reasoning"})
"""Opaque blocks that say nothing by themselves."""

IMAGE_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})

_ID = re.compile(r"[a-zA-Z0-9_-]+")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_PDF = "application/pdf"
_CONTROL = {
    "5m": b',"cache_control":{"type":"ephemeral"}}',
    "1h": b',"cache_control":{"type":"ephemeral","ttl":"1h"}}',
}


class AnthropicRenderer:
    """Renders for `POST /v1/messages`."""

    api = WireApi.ANTHROPIC
    version = "anthropic-1"
    states_window = False

    def fragments(self, message: WireMessage) -> tuple[Fragment, ...]:
        """Blocks of one message, results before anything else in a user message.

        Raises:
            WireInvalid: an id or a name breaks the API's pattern, or a result has no content.
        """
        parts: Sequence[WirePart] = message.parts
        if message.role == "user":
            parts = sorted(parts, key=lambda part: not isinstance(part, WireResult))
        blocks = [block for part in parts for block in _blocks(part, message.role)]
        if all(kind in REASONING_KINDS for kind, _ in blocks):
            return ()
        cut = len(blocks)
        while cut and blocks[cut - 1][0]:
            cut -= 1
        halves = ((blocks[:cut], True), (blocks[cut:], False))
        return tuple(
            Fragment(
                role=message.role,
                data=utf8(",".join(text for _, text in half), "A message"),
                positions=len(half),
                markable=markable,
            )
            for half, markable in halves
            if half
        )

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
        """The request: model, max_tokens, tools, system, messages.

        Raises:
            WireInvalid: the markers break the API's limit or its order of lives.
        """
        places = place(markers, fragments, tools=bool(prefix.tools), system=bool(_system(prefix)))
        refuse_growing_ttl(places)
        head = f'{{"model":{quoted(params.model)},"max_tokens":{params.max_output_tokens}'
        if params.betas:
            head += f',"betas":[{",".join(quoted(beta) for beta in params.betas)}]'
        if params.compact_threshold:
            head += (
                ',"context_management":{"edits":[{"type":"compact_20260112","trigger":'
                f'{{"type":"input_tokens","value":{params.compact_threshold}}}}}]}}'
            )
        pieces = [utf8(head, "The model name")]
        region = _prefix(prefix, places.tools, places.system)
        if region:
            pieces += [b",", region]
        pieces.append(b',"messages":[')
        role = ""
        for index, fragment in enumerate(fragments):
            if fragment.role == role:
                pieces.append(b",")
            else:
                opening = b'{"role":"%s","content":[' % fragment.role.encode()
                pieces.append(b"]}," + opening if role else opening)
                role = fragment.role
            pieces.append(_marked(fragment.data, places.fragments.get(index)))
        pieces.append(b"]}]}" if role else b"]}")
        return b"".join(pieces)


def _blocks(part: WirePart, role: str) -> Iterator[tuple[str, str]]:
    """Blocks of one part as (kind of an unmarkable block or nothing, JSON text)."""
    match part:
        case WireText():
            if says_something(part.text):
                yield "", _text(part.text)
        case WireCall():
            yield "", _call(part)
        case WireResult():
            yield "", _result(part)
        case WireOpaque():
            yield part.kind or "opaque", part.raw
        case WireImage() | WireFile():
            yield "", _media(part) if role == "user" else _text(_left_out(part))


def _text(text: str) -> str:
    return f'{{"type":"text","text":{quoted(text)}}}'


def _call(call: WireCall) -> str:
    _check(call.call_id, call.name)
    return (
        f'{{"type":"tool_use","id":"{call.call_id}","name":"{call.name}","input":{call.arguments}}}'
    )


def _result(result: WireResult) -> str:
    _check(result.call_id, None)
    content = [
        _text(part.text) if isinstance(part, WireText) else _media(part)
        for part in result.content
        if not isinstance(part, WireText) or says_something(part.text)
    ]
    if not content:
        refuse(f"The result of call {result.call_id} has no content; say that there was no output.")
    flag = ',"is_error":true' if result.is_error else ""
    return (
        f'{{"type":"tool_result","tool_use_id":"{result.call_id}",'
        f'"content":[{",".join(content)}]{flag}}}'
    )


def _media(part: WireImage | WireFile) -> str:
    """An image or document block, or a note where the API has no such block."""
    image = isinstance(part, WireImage)
    stated = image_type(part) if isinstance(part, WireImage) else part.media_type or _PDF
    media_type = stated or ""
    url = web_address(part.url)
    if part.base64 is not None and media_type in (IMAGE_TYPES if image else (_PDF,)):
        source = (
            f'{{"type":"base64","media_type":{quoted(media_type)},"data":{quoted(part.base64)}}}'
        )
    elif part.base64 is None and url is not None:
        source = f'{{"type":"url","url":{quoted(url)}}}'
    else:
        return _text(_left_out(part))
    return f'{{"type":"{"image" if image else "document"}","source":{source}{_title(part)}}}'


def _title(part: WireImage | WireFile) -> str:
    return f',"title":{quoted(part.name)}' if isinstance(part, WireFile) and part.name else ""


def _left_out(part: WireImage | WireFile) -> str:
    return IMAGE_LEFT_OUT if isinstance(part, WireImage) else FILE_LEFT_OUT


def _check(call_id: str, name: str | None) -> None:
    if _ID.fullmatch(call_id) is None:
        refuse(f"The call id {call_id!r} has characters outside a-z, A-Z, 0-9, _ and -; map it.")
    if name is not None and _NAME.fullmatch(name) is None:
        refuse(f"The tool name {name!r} is not 1 to 64 of a-z, A-Z, 0-9, _ and -; map it.")


def _system(prefix: WirePrefix) -> list[str]:
    return [text for text in prefix.system if says_something(text)]


def _prefix(prefix: WirePrefix, tools_ttl: Ttl | None, system_ttl: Ttl | None) -> bytes:
    pieces = []
    aside = [deferred(_tool(tool)) for tool in prefix.deferred]
    search = [search_declaration(WireApi.ANTHROPIC)] if aside else []
    for key, values, ttl, behind in (
        ("tools", search + [_tool(tool) for tool in prefix.tools], tools_ttl, aside),
        ("system", [_text(text) for text in _system(prefix)], system_ttl, []),
    ):
        if values:
            what = f"The prefix part {key!r}"
            # A definition kept aside stands behind the marker: it can carry none.
            parts = [_marked(utf8(",".join(values), what), ttl)]
            parts += [utf8(",".join(behind), what)] if behind else []
            pieces.append(b'"%s":[' % key.encode() + b",".join(parts) + b"]")
    return b",".join(pieces)


def _tool(tool: WireTool) -> str:
    _check("_", tool.name)
    return (
        f'{{"name":"{tool.name}","description":{quoted(tool.description)},'
        f'"input_schema":{tool.input_schema}}}'
    )


def _marked(data: bytes, ttl: Ttl | None) -> bytes:
    """The same blocks with a marker on the last one: every block ends with its closing brace."""
    return data if ttl is None else data[:-1] + _CONTROL[ttl]
