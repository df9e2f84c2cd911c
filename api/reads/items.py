"""One item with its content."""

from __future__ import annotations

import base64
from typing import Any
from uuid import UUID

from api.problems import Problem
from ctxengine.engine.ids import ItemId
from ctxengine.engine.items import FilePart, ForeignPart, ImagePart, Part, TextPart
from ctxengine.engine.trust.model_view import model_view
from ctxengine.ledger.queries.items import item_content
from ctxengine.service.raw_reads import masked_body, masked_part, masked_text, note_raw_read
from ctxengine.service.specs import Actor


def item_facts(
    actor: Actor, session_id: UUID, item: ItemId, *, raw: bool = False
) -> dict[str, Any]:
    """The item's facts and its content in both forms, secrets masked. Three queries.

    Args:
        raw: leave secrets as they are; it stands in the audit log.

    Raises:
        Problem: `not_found`.
    """
    found = item_content(actor.tenant_id, session_id, item)
    if found is None:
        raise Problem("not_found", f"The session {session_id} has no item {item} for this key.")
    line, decoded = found.line, found.decoded
    parts = decoded.parts if decoded else ()
    arguments = decoded.arguments if decoded else None
    body = found.raw
    if raw:
        note_raw_read(actor=actor, session_id=session_id, what=f"item {item}")
    else:
        parts = tuple(map(masked_part, parts))
        arguments = None if arguments is None else masked_body(arguments)
        body = masked_body(body)
    text = "".join(_text_of(part) for part in parts)
    text = text if raw else masked_text(text)
    return {
        "id": str(line.id),
        "kind": line.kind,
        "trust": line.trust,
        "run": line.run_id,
        "name": line.name,
        "call_id": line.call_id,
        "wire_call_id": line.wire_call_id,
        "source": line.source,
        "is_error": line.is_error,
        "tokens": line.tokens,
        "pointer_tokens": line.pointer_tokens,
        "bytes": line.bytes_len,
        "characters": line.chars_len,
        "digest": line.digest,
        "recorded_at": found.recorded_at,
        "erased_at": found.erased_at,
        "format": found.format,
        "text": model_view(text),
        "text_base64": _base64(text),
        "arguments": None if arguments is None else model_view(arguments),
        "arguments_base64": None if arguments is None else _base64(arguments),
        "parts": [_part(part) for part in parts],
        "body_base64": _base64(body),
        "problem": found.problem,
    }


def _base64(text: str) -> str:
    return base64.b64encode(text.encode("utf-8", "surrogatepass")).decode()


def _text_of(part: Part) -> str:
    match part:
        case TextPart():
            return part.text
        case ForeignPart():
            return part.raw
        case _:
            return ""


def _part(part: Part) -> dict[str, Any]:
    """What a part is; media bytes stay in the body."""
    match part:
        case TextPart():
            return {"type": "text", "characters": len(part.text)}
        case ImagePart():
            return {
                "type": "image",
                "media_type": part.media_type,
                "url": part.url,
                "base64_characters": len(part.base64 or ""),
            }
        case FilePart():
            return {
                "type": "file",
                "media_type": part.media_type,
                "name": part.name,
                "url": part.url,
                "base64_characters": len(part.base64 or ""),
            }
        case ForeignPart():
            return {"type": part.kind, "api": part.api, "characters": len(part.raw)}
