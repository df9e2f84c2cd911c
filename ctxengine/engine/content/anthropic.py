"""Reading the `content` of an Anthropic message, and our neutral blocks, which are close kin.

The neutral form (`blocks`) names calls `tool_call{id,name,arguments}` and results
`tool_result{call_id,content,is_error}`; either form is read in both formats, since runtimes mix
them. So are texts and attachments as OpenAI's formats and MCP spell them. Server tools and any block
unknown here stay raw.
"""

from __future__ import annotations

import re

from ctxengine.engine.content.assembly import Assembly, Reading
from ctxengine.engine.content.errors import ContentError
from ctxengine.engine.content.fields import (
    field,
    flag,
    objects,
    optional_text,
    parsed,
    required_text,
    string_of,
    text_or_raw,
)
from ctxengine.engine.content.media import (
    anthropic_media,
    neutral_media,
    openai_file,
    openai_image,
    sound,
)
from ctxengine.engine.content.slices import element_spans, without
from ctxengine.engine.items import ForeignPart, ItemKind, Part, TextPart
from ctxengine.engine.lexeme import Node, NodeKind

OPAQUE_TYPES = {
    "thinking": "anthropic",
    "redacted_thinking": "anthropic",
    "reasoning": "openai-responses",
}
"""Block types that hold signed or encrypted reasoning, and the API that wrote them."""

_API = "anthropic"
_SERVER_ID = re.compile(r"srvtoolu_[a-zA-Z0-9_]+")
_ELSEWHERE = ""
"""API of a part that another format spells and that only names what lies at its provider: nobody is sent it as it is."""
_TEXT_TYPES = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}
"""Types of a text, whichever format spells it, and the member that holds it."""


def read_content(body: str, kind: ItemKind, what: str) -> Reading:
    """Decode a JSON string or an array of blocks into items of the given message kind.

    Raises:
        ContentError: the body is not that.
    """
    root = parsed(body, what)
    assembly = Assembly(kind)
    if root.kind is NodeKind.STRING:
        assembly.part(TextPart(string_of(root, "content")))
        return assembly.reading()
    if root.kind is not NodeKind.ARRAY:
        raise ContentError(
            f"{what}: the content must be a string or an array of blocks, found {root.kind}."
        )
    for where, block_type, block in objects(root, "content"):
        _take(assembly, block, block_type, where)
    return assembly.reading()


def strip_content(body: str) -> str:
    """The body without its reasoning blocks; everything else keeps its bytes."""
    root = parsed(body, "content")
    if root.kind is not NodeKind.ARRAY:
        return body
    drop = [i for i, (_, kind, _) in enumerate(objects(root, "content")) if kind in OPAQUE_TYPES]
    return without(body, element_spans(body), drop) if drop else body


def _take(assembly: Assembly, block: Node, block_type: str, where: str) -> None:
    if block_type in OPAQUE_TYPES:
        assembly.opaque(block_type, block.raw, OPAQUE_TYPES[block_type])
    elif block_type in ("tool_use", "tool_call"):
        arguments = field(block, "input" if block_type == "tool_use" else "arguments")
        assembly.call(
            optional_text(block, "id", where),
            required_text(block, "name", where),
            text_or_raw(arguments),
        )
    elif block_type == "tool_result":
        call_id = optional_text(block, "tool_use_id", where)
        assembly.result(
            call_id if call_id is not None else optional_text(block, "call_id", where),
            _result_parts(block, where),
            is_error=flag(block, "is_error", where),
            name=optional_text(block, "name", where),
        )
    else:
        assembly.part(_part(block, block_type, where))


def _part(block: Node, block_type: str, where: str) -> Part:
    if block_type in _TEXT_TYPES:
        return TextPart(required_text(block, _TEXT_TYPES[block_type], where))
    if block_type in ("image_url", "input_image"):
        return openai_image(block, where, _ELSEWHERE)
    if block_type == "input_file" or (block_type == "file" and field(block, "file") is not None):
        return openai_file(block, where, _ELSEWHERE)
    if block_type in ("audio", "input_audio"):
        return sound(block, block_type, where, _ELSEWHERE)
    if block_type in ("image", "document"):
        return neutral_media(block, block_type, where)
    if block_type == "file" and field(block, "source") is None:
        return neutral_media(block, block_type, where)
    if block_type == "file":
        return anthropic_media(block, block_type, where, _API)
    if not block_type:
        raise ContentError(f"{where}: a block needs a `type`; found none.")
    api = _API if block_type != "server_tool_use" or _is_call(block) else _ELSEWHERE
    return ForeignPart(kind=block_type, raw=block.raw, api=api)


def _is_call(block: Node) -> bool:
    """Whether the API would take a server tool's call back: under an id of its own, with an object of arguments."""
    given, arguments = block.get("id"), block.get("input")
    named = given is not None and _SERVER_ID.fullmatch(given.text() or "") is not None
    return named and arguments is not None and arguments.kind is NodeKind.OBJECT


def _result_parts(block: Node, where: str) -> tuple[Part, ...]:
    content = field(block, "content")
    if content is None:
        return ()
    if content.kind is NodeKind.STRING:
        text = string_of(content, where)
        return (TextPart(text),) if text else ()
    if content.kind is not NodeKind.ARRAY:
        raise ContentError(
            f"{where}.content: a result holds a string or an array of blocks, found {content.kind}."
        )
    return tuple(_part(node, kind, at) for at, kind, node in objects(content, f"{where}.content"))
