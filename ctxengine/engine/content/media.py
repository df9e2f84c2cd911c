"""Images and documents: the ways in which the formats write them, read into one form."""

from __future__ import annotations

from typing import NamedTuple

from ctxengine.engine.content.fields import field, optional_text, required_text, whole_number
from ctxengine.engine.items import FilePart, ForeignPart, ImagePart, Part
from ctxengine.engine.lexeme import Node, NodeKind

_STANDARD_LETTERS = str.maketrans("-_", "+/")


class Payload(NamedTuple):
    """Where the bytes of an attachment are."""

    media_type: str | None
    base64: str | None
    url: str | None


def from_url(url: str) -> Payload:
    """Split a `data:` address into type and base64 text, None where that is empty; any other address stays one."""
    scheme, _, rest = url.partition(":")
    if scheme.lower() != "data":
        return Payload(None, None, url)
    head, comma, data = rest.partition(",")
    media_type, *flags = head.split(";")
    if not comma or "base64" not in flags:
        return Payload(None, None, url)
    return Payload(media_type or None, data or None, None)


def inline(media_type: str | None, data: str) -> Payload:
    """Inline bytes; a whole `data:` address in their place is split, and no bytes at all are none."""
    if data.startswith("data:"):
        linked = from_url(data)
        if linked.url is None:
            return linked._replace(media_type=linked.media_type or media_type)
    return Payload(media_type, data or None, None)


def standard_base64(data: str) -> str:
    """Base64 in its standard letters: Google's own clients write those that are safe in addresses, which no other API takes."""
    if "-" not in data and "_" not in data:
        return data
    bare = data.translate(_STANDARD_LETTERS).rstrip("=")
    return bare + "=" * (-len(bare) % 4)


def sound(node: Node, kind: str, where: str, api: str) -> Part:
    """A recording, as MCP (`data`, `mimeType`) or OpenAI (`input_audio{data,format}`) writes it; any other stays foreign."""
    holder = field(node, "input_audio") or node
    data = optional_text(holder, "data", where) if holder.kind is NodeKind.OBJECT else None
    if data is None:
        return ForeignPart(kind=kind, raw=node.raw, api=api)
    form = optional_text(holder, "format", where)
    media_type = f"audio/{form}" if form else _media_type(holder, where)
    return FilePart(*inline(media_type or "audio/wav", data))


def _media_type(node: Node, where: str) -> str | None:
    """The media type under our name for it, or under MCP's."""
    return optional_text(node, "media_type", where) or optional_text(node, "mimeType", where)


def anthropic_media(node: Node, kind: str, where: str, api: str) -> Part:
    """An `image` or `document` block; sources other than base64 and url stay foreign."""
    source = field(node, "source")
    if source is None or source.kind is not NodeKind.OBJECT:
        return ForeignPart(kind=kind, raw=node.raw, api=api)
    source_type = optional_text(source, "type", f"{where}.source")
    if source_type == "base64":
        payload = inline(
            optional_text(source, "media_type", where), required_text(source, "data", where)
        )
    elif source_type == "url":
        payload = from_url(required_text(source, "url", where))
    else:
        return ForeignPart(kind=kind, raw=node.raw, api=api)
    if kind == "image":
        return ImagePart(*payload)
    return FilePart(*payload, name=optional_text(node, "title", where))


def openai_image(node: Node, where: str, api: str) -> Part:
    """An `image_url` or `input_image` part; one that only names an uploaded file stays foreign."""
    address = field(node, "image_url")
    if address is not None and address.kind is NodeKind.OBJECT:
        address = field(address, "url")
    text = None if address is None else address.text()
    if text is None:
        return ForeignPart(
            kind=optional_text(node, "type", where) or "image", raw=node.raw, api=api
        )
    return ImagePart(*from_url(text))


def openai_file(node: Node, where: str, api: str) -> Part:
    """A `file` or `input_file` part; one that only names an uploaded file stays foreign."""
    holder = field(node, "file") or node
    data = optional_text(holder, "file_data", where)
    url = optional_text(holder, "file_url", where)
    if data is None and url is None:
        return ForeignPart(kind=optional_text(node, "type", where) or "file", raw=node.raw, api=api)
    payload = Payload(None, None, url) if data is None else from_url(data)
    if data is not None and not data.startswith("data:"):
        payload = Payload(None, data or None, None)
    return FilePart(*payload, name=optional_text(holder, "filename", where))


def neutral_media(node: Node, kind: str, where: str) -> Part:
    """Our own form: `media_type` with `data` (base64) or `url`; a `source` is accepted too."""
    data = optional_text(node, "data", where)
    url = optional_text(node, "url", where)
    if data is None and url is None:
        return anthropic_media(node, kind, where, "anthropic")
    payload = Payload(_media_type(node, where), None, url)
    if data is not None:
        payload = inline(payload.media_type, data)._replace(url=url)
    elif url is not None:
        linked = from_url(url)
        payload = linked._replace(media_type=linked.media_type or payload.media_type)
    if kind == "image":
        return ImagePart(
            *payload, width=whole_number(node, "width"), height=whole_number(node, "height")
        )
    return FilePart(*payload, name=optional_text(node, "name", where))
