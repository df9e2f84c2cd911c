"""Reading the `content` of an Anthropic message, and our neutral blocks, which are close kin.

The neutral form (`blocks`) names calls `tool_call{id,name,arguments}` and results
`tool_result{call_id,content,is_error}`; either form is read in both formats, since runtimes mix
them. Server tools and any block unknown here stay raw.
"""

from __future__ import annotations

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
from ctxengine.engine.content.media import anthropic_media, neutral_media
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
    if block_type == "text":
        return TextPart(required_text(block, "text", where))
    if block_type in ("image", "document"):
        return neutral_media(block, block_type, where)
    if block_type == "file" and field(block, "source") is None:
        return neutral_media(block, block_type, where)
    if block_type == "file":
        return anthropic_media(block, block_type, where, _API)
    if not block_type:
        raise ContentError(f"{where}: a block needs a `type`; found none.")
    return ForeignPart(kind=block_type, raw=block.raw, api=_API)


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
