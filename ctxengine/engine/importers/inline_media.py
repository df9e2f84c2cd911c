"""Images and files inside messages, in the forms that providers and frameworks give them."""

from __future__ import annotations

from ctxengine.engine.content.media import standard_base64
from ctxengine.engine.importers.dialect import array_at, object_at, text_at
from ctxengine.engine.importers.pieces import Pieces
from ctxengine.engine.lexeme import Node, NodeKind


def google_data(pieces: Pieces, data: Node) -> None:
    """Google's inline data and file references."""
    media_type = text_at(data, "mimeType") or text_at(data, "mime_type")
    kind = "image" if (media_type or "").startswith("image/") else "file"
    url = text_at(data, "fileUri") or text_at(data, "file_uri")
    written = text_at(data, "data")
    inline = None if written is None else standard_base64(written)
    if inline is None and url is None:
        pieces.foreign("inline_data", data)
    else:
        pieces.media(kind, media_type, inline, url)


def bedrock_image(pieces: Pieces, image: Node) -> None:
    """An image of the Converse API; one of any other form stays as it was written."""
    source = object_at(image, "source")
    media_type = f"image/{text_at(image, 'format') or 'png'}"
    _media(pieces, "image", image, media_type, source)


def bedrock_file(pieces: Pieces, file: Node) -> None:
    """A document or a video of the Converse API; one of any other form stays as it was written."""
    source = object_at(file, "source")
    kind = text_at(file, "format") or ""
    media_type = (
        kind if "/" in kind else _MEDIA_TYPES.get(kind, f"application/{kind or 'octet-stream'}")
    )
    texts = _texts_of(source)
    if texts is None:
        _media(pieces, "file", file, media_type, source)
        return
    for text in texts:
        pieces.text(text)


def _media(pieces: Pieces, kind: str, holder: Node, media_type: str, source: Node | None) -> None:
    data = text_at(source, "bytes")
    url = text_at(object_at(source, "s3Location"), "uri")
    if data is None and url is None:
        pieces.foreign(kind, holder)
    else:
        pieces.media(kind, media_type, data, url, name=text_at(holder, "name"))


def _texts_of(source: Node | None) -> list[Node] | None:
    """What a document says in plain text; None where it is anything else."""
    if source is None:
        return None
    whole = source.get("text")
    parts = [part.get("text") for part in array_at(source, "content")] or [whole]
    texts = [text for text in parts if text is not None and text.kind is NodeKind.STRING]
    return texts if len(texts) == len(parts) else None


_MEDIA_TYPES = {
    "txt": "text/plain",
    "md": "text/markdown",
    "html": "text/html",
    "csv": "text/csv",
    "mp4": "video/mp4",
    "mov": "video/quicktime",
    "webm": "video/webm",
}
"""Formats that are not called as their media types are."""


def typed_image(pieces: Pieces, part: Node) -> None:
    """An image as OpenAI, Anthropic, LangChain and others write it: addresses, data URLs, or data with its type."""
    urls = array_at(part, "image_urls")
    for url in urls:
        if url.text():
            image_at(pieces, url.text() or "")
        else:
            pieces.foreign("image", url)
    if urls:
        return
    source = object_at(part, "source")
    places = (object_at(part, "image_url"), source, part)
    names = ("url", "image_url", "image", "source")
    found = (text_at(place, name) for place in places for name in names)
    address = next((text for text in found if text), None)
    data = text_at(part, "data") or text_at(part, "base64") or text_at(source, "data")
    media_type = next((text for place in (part, source) if (text := _media_type(place))), None)
    if address is not None and (not data or address.startswith("data:")):
        image_at(pieces, address, media_type)
    elif data:
        pieces.media("image", media_type, data, address)
    else:
        pieces.foreign("image", part)


def image_at(pieces: Pieces, address: str, media_type: str | None = None) -> None:
    """An image by its address; one that holds the image itself is taken apart."""
    head, _, data = address.partition(";base64,")
    if head.startswith("data:") and data:
        pieces.media("image", head.removeprefix("data:"), data, None)
    else:
        pieces.media("image", media_type, None, address)


def _media_type(holder: Node | None) -> str | None:
    names = ("mimeType", "mime_type", "media_type")
    return next((text for name in names if (text := text_at(holder, name))), None)
