"""Message parts that only the OpenTelemetry GenAI conventions have: data by value or address, and compactions."""

from __future__ import annotations

from ctxengine.engine.importers.dialect import text_at
from ctxengine.engine.importers.pieces import Pieces
from ctxengine.engine.lexeme import Node, NodeKind

_IN_RESULTS = frozenset(("text", "blob", "uri"))


def read_otel_part(pieces: Pieces, part: Node) -> bool:
    """Read a part of one of these kinds; False when it is of another."""
    kind = text_at(part, "type")
    if kind == "compaction":
        _compaction(pieces, part)
    elif kind == "blob" and text_at(part, "content") is not None:
        _data(pieces, part, text_at(part, "content"), None)
    elif kind == "uri" and text_at(part, "uri") is not None:
        _data(pieces, part, None, text_at(part, "uri"))
    else:
        return False
    return True


def holds_parts(response: Node | None) -> bool:
    """Whether a tool's response is a list of message parts rather than data of the tool's own."""
    if response is None or response.kind is not NodeKind.ARRAY or not len(response):
        return False
    return all(text_at(part, "type") in _IN_RESULTS for part in response)


def _compaction(pieces: Pieces, part: Node) -> None:
    """A summary in the place of what it replaced; some providers give it encrypted alone."""
    pieces.is_summary = True
    content = part.get("content")
    if content is not None and content.kind is NodeKind.STRING:
        pieces.text(content)
    else:
        pieces.foreign("compaction", part)


def _data(pieces: Pieces, part: Node, data: str | None, url: str | None) -> None:
    media_type = text_at(part, "mime_type")
    modality = text_at(part, "modality") or (media_type or "").partition("/")[0]
    kind = "image" if modality == "image" else "file"
    pieces.media(kind, media_type, data, url, name=text_at(part, "name"))
