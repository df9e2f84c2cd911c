"""Stored content as the REST door shows it: secrets masked, or as received for an operator, which is noted (design 8)."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from django.db import transaction

from ctxengine.engine.exporters.sheet import masked_json
from ctxengine.engine.items import FilePart, ForeignPart, ImagePart, Item, Part, TextPart
from ctxengine.engine.lexeme import LexemeError, parse
from ctxengine.engine.redaction.redact import redact
from ctxengine.service.audit import record_audit
from ctxengine.service.specs import Actor


def masked_text(text: str) -> str:
    """A text without the secrets that are recognised in it."""
    return redact(text).text


def masked_body(text: str) -> str:
    """A received text, JSON or not, without secrets: those that are spelt with escapes in a JSON string too."""
    if "\\" in text and _is_json(text):
        text = masked_json(text, masked_text)
    return masked_text(text)


def masked_part(part: Part) -> Part:
    """A part of an item without secrets in its words; media bytes stay as they are."""
    match part:
        case TextPart():
            return replace(part, text=masked_text(part.text))
        case ForeignPart():
            return replace(part, raw=masked_body(part.raw))
        case ImagePart():
            return replace(part, url=_masked(part.url))
        case FilePart():
            return replace(part, url=_masked(part.url), name=_masked(part.name))


def masked_item(item: Item) -> Item:
    """An item without secrets in its content."""
    arguments = None if item.arguments is None else masked_body(item.arguments)
    return replace(item, parts=tuple(map(masked_part, item.parts)), arguments=arguments)


def note_raw_read(*, actor: Actor, session_id: UUID, what: str) -> None:
    """Note in the audit log that somebody was shown content of a session with its secrets.

    Args:
        what: what was read, in a few words of ours: no content.
    """
    with transaction.atomic():
        record_audit(
            actor=actor, action="content.read_raw", target=str(session_id), after={"what": what}
        )


def _masked(text: str | None) -> str | None:
    return None if text is None else masked_text(text)


def _is_json(text: str) -> bool:
    try:
        parse(text)
    except LexemeError:
        return False
    return True
