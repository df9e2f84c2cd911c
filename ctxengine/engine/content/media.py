"""Images and documents: the ways in which the formats write them, read into one form."""

from __future__ import annotations

from typing import NamedTuple

from ctxengine.engine.content.fields import field, optional_text, required_text, whole_number
from ctxengine.engine.items import FilePart, ForeignPart, ImagePart, Part
from ctxengine.engine.lexeme import Node, NodeKind


class Payload(NamedTuple):
    """Where the bytes of an attachment are."""

    media_type: str | None
    base64: str | None
    url: str | None


def from_url(url: str) -> Payload:
    """Split a `data:` address into type and base64 text; any other address stays one."""
    scheme, _, rest = url.partition(":")
    if scheme.lower() != "data":
        return Payload(None, None, url)
    head, comma, data = rest.partition(",")
    media_type, *flags = head.split(";")
    if not comma or "base64" not in flags:
        return Payload(None, None, url)
    return Payload(media_type or None, data, None)


def anthropic_media(node: Node, kind: str, where: str, api: str) -> Part:
    """An `image` or `document` block; sources other than base64 and url stay foreign."""
    source = field(node, "source")
    if source is None or source.kind is not NodeKind.OBJECT:
        return ForeignPart(kind=kind, raw=node.raw, api=api)
    source_type = optional_text(source, "type", f"{where}.source")
    if source_type == "base64":
        payload = Payload(
            optional_text(source, "media_type", where), required_text(source, "data", where), None
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
        payload = Payload(None, data, None)
    return FilePart(*payload, name=optional_text(holder, "filename", where))


def neutral_media(node: Node, kind: str, where: str) -> Part:
    """Our own form: `media_type` with `data` (base64) or `url`; a `source` is accepted too."""
    data = optional_text(node, "data", where)
    url = optional_text(node, "url", where)
    if data is None and url is None:
        return anthropic_media(node, kind, where, "anthropic")
    payload = Payload(optional_text(node, "media_type", where), data, url)
    if data is None and url is not None:
        linked = from_url(url)
        payload = linked._replace(media_type=linked.media_type or payload.media_type)
    if kind == "image":
        return ImagePart(
            *payload, width=whole_number(node, "width"), height=whole_number(node, "height")
        )
    return FilePart(*payload, name=optional_text(node, "name", where))
