"""Reading the content blocks of a Bedrock Converse message. Each block is an object of one member that names its kind."""

from __future__ import annotations

from ctxengine.engine.content.assembly import Assembly, Reading
from ctxengine.engine.content.errors import ContentError
from ctxengine.engine.content.fields import (
    field,
    objects,
    optional_text,
    parsed,
    required_text,
)
from ctxengine.engine.content.slices import element_spans, without
from ctxengine.engine.items import FilePart, ForeignPart, ImagePart, ItemKind, Part, TextPart
from ctxengine.engine.lexeme import Node, NodeKind

REASONING = "reasoningContent"
_API = "bedrock"
_WHAT = "Converse content"


def read_bedrock(body: str, kind: ItemKind) -> Reading:
    """Decode an array of blocks into items of the given message kind.

    Raises:
        ContentError: the body is not one.
    """
    assembly = Assembly(kind)
    for where, block in _blocks(body):
        _take(assembly, block, where)
    return assembly.reading()


def strip_bedrock(body: str) -> str:
    """The body without its reasoning blocks; everything else keeps its bytes."""
    drop = [i for i, (_, block) in enumerate(_blocks(body)) if field(block, REASONING) is not None]
    return without(body, element_spans(body), drop) if drop else body


def _blocks(body: str) -> list[tuple[str, Node]]:
    root = parsed(body, _WHAT)
    if root.kind is not NodeKind.ARRAY:
        raise ContentError(f"{_WHAT}: an array of blocks is required, found {root.kind}.")
    return [(where, block) for where, _, block in objects(root, "content")]


def _take(assembly: Assembly, block: Node, where: str) -> None:
    call, result = field(block, "toolUse"), field(block, "toolResult")
    if field(block, REASONING) is not None:
        assembly.opaque("reasoning", block.raw, _API)
    elif call is not None:
        arguments = field(call, "input")
        assembly.call(
            optional_text(call, "toolUseId", where),
            required_text(call, "name", where),
            "" if arguments is None else arguments.raw,
        )
    elif result is not None:
        content = field(result, "content")
        assembly.result(
            optional_text(result, "toolUseId", where),
            ()
            if content is None
            else tuple(_part(one, at) for at, _, one in objects(content, f"{where}.content")),
            is_error=optional_text(result, "status", where) == "error",
        )
    else:
        assembly.part(_part(block, where))


def _part(block: Node, where: str) -> Part:
    if field(block, "text") is not None:
        return TextPart(required_text(block, "text", where))
    for kind in ("image", "document"):
        holder = field(block, kind)
        source = None if holder is None else field(holder, "source")
        data = None if source is None else field(source, "bytes")
        if holder is None or data is None or data.text() is None:
            continue
        form = optional_text(holder, "format", where) or "png"
        if kind == "image":
            return ImagePart(f"image/{form}", data.text(), None)
        name = optional_text(holder, "name", where)
        return FilePart(f"application/{form}", data.text(), None, name=name)
    value = field(block, "json")
    if value is not None:
        return TextPart(value.raw)
    kinds = [key for key, _ in block.items()]
    return ForeignPart(kind=kinds[0] if kinds else "block", raw=block.raw, api=_API)
