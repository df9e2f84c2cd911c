"""Images and files inside messages, in the forms that providers and frameworks give them."""

from __future__ import annotations

from ctxengine.engine.importers.dialect import object_at, text_at
from ctxengine.engine.importers.pieces import Pieces
from ctxengine.engine.lexeme import Node


def google_data(pieces: Pieces, data: Node) -> None:
    """Google's inline data and file references."""
    media_type = text_at(data, "mimeType") or text_at(data, "mime_type")
    kind = "image" if (media_type or "").startswith("image/") else "file"
    url = text_at(data, "fileUri") or text_at(data, "file_uri")
    pieces.media(kind, media_type, text_at(data, "data"), url)


def bedrock_image(pieces: Pieces, image: Node) -> None:
    """An image of the Converse API."""
    source = object_at(image, "source")
    media_type = f"image/{text_at(image, 'format') or 'png'}"
    pieces.media("image", media_type, text_at(source, "bytes"), None)


def typed_image(pieces: Pieces, part: Node) -> None:
    """An image as OpenAI, LangChain and others write it: a data URL, an address, or data with its type."""
    inner = object_at(part, "image_url")
    url = text_at(inner, "url") or text_at(part, "image_url") or text_at(part, "image")
    data, media_type = text_at(part, "data"), text_at(part, "mimeType")
    if url is None and data is None:
        pieces.foreign("image", part)
        return
    head, _, rest = (url or "").partition(";base64,")
    if head.startswith("data:") and rest:
        pieces.media("image", head.removeprefix("data:"), rest, None)
    else:
        pieces.media("image", media_type, data, url)
