"""Parts of a message as the chat APIs write them."""

from __future__ import annotations

from collections.abc import Iterable

from ctxengine.engine.exporters.sheet import quoted
from ctxengine.engine.importers.dialect import text_at
from ctxengine.engine.items import FilePart, ForeignPart, ImagePart, Part, TextPart
from ctxengine.engine.lexeme import parse


def text_of(parts: Iterable[Part]) -> list[str]:
    """Texts of a message, in order."""
    return [part.text for part in parts if isinstance(part, TextPart)]


def chat_part(part: Part) -> str | None:
    """A content part of a user message in Chat Completions; None when the API has no form for it."""
    if isinstance(part, TextPart):
        return f'{{"type":"text","text":{quoted(part.text)}}}'
    if isinstance(part, ImagePart):
        address = _address(part)
        if address is None:
            return None
        return f'{{"type":"image_url","image_url":{{"url":{quoted(address)}}}}}'
    if isinstance(part, FilePart) and part.base64 is not None:
        name = f'"filename":{quoted(part.name)},' if part.name is not None else ""
        data = quoted(_address(part) or "")
        return f'{{"type":"file","file":{{{name}"file_data":{data}}}}}'
    if isinstance(part, ForeignPart) and part.api == "openai":
        return part.raw
    return None


def anthropic_block(part: Part, *, own: bool) -> str | None:
    """A content block of the Messages API; None when the API has no form for it.

    Args:
        part: What the block holds.
        own: Whether the part was read from content of that API, so that foreign blocks are its own.
    """
    if isinstance(part, TextPart):
        return f'{{"type":"text","text":{quoted(part.text)}}}'
    if isinstance(part, ForeignPart):
        return part.raw if own and part.api == "anthropic" else None
    kind = "image" if isinstance(part, ImagePart) else "document"
    name = part.name if isinstance(part, FilePart) else None
    title = f',"title":{quoted(name)}' if name is not None else ""
    if part.base64 is not None:
        media_type = part.media_type or "application/octet-stream"
        source = f'"type":"base64","media_type":{quoted(media_type)},"data":{quoted(part.base64)}'
    elif part.url is not None:
        source = f'"type":"url","url":{quoted(part.url)}'
    else:
        return None
    return f'{{"type":"{kind}","source":{{{source}}}{title}}}'


def otel_part(part: Part) -> str:
    """A message part of the OpenTelemetry conventions, which have a generic form for what they do not name."""
    if isinstance(part, TextPart):
        return f'{{"type":"text","content":{quoted(part.text)}}}'
    if isinstance(part, ForeignPart):
        return _generic(part)
    modality = "image" if isinstance(part, ImagePart) else "file"
    name = part.name if isinstance(part, FilePart) else None
    fields = [f'"modality":"{modality}"']
    if part.media_type is not None:
        fields.append(f'"mime_type":{quoted(part.media_type)}')
    if name is not None:
        fields.append(f'"name":{quoted(name)}')
    if part.base64 is not None:
        return f'{{"type":"blob",{",".join(fields)},"content":{quoted(part.base64)}}}'
    return f'{{"type":"uri",{",".join(fields)},"uri":{quoted(part.url or "")}}}'


def _generic(part: ForeignPart) -> str:
    """A part of another API: as it is where it names its own type, else in a frame that does."""
    node = parse(part.raw)
    if text_at(node, "type") != part.kind:
        return f'{{"type":{quoted(part.kind)},"part":{node.raw}}}'
    inner = node.get("part")
    if len(node) == 2 and text_at(inner, "type") == part.kind and inner is not None:
        return inner.raw
    return node.raw


def _address(part: ImagePart | FilePart) -> str | None:
    if part.base64 is None:
        return part.url
    return f"data:{part.media_type or 'application/octet-stream'};base64,{part.base64}"
