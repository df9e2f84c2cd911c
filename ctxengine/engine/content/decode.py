"""From the raw text of an event's body to its items, and that text without its reasoning.

Grouping rule of every format: consecutive parts that are neither calls nor results make one message
item; every call and every result is an item of its own; each message of a Responses array is its
own item. Reasoning makes no item, and `decode(format, strip_opaque(format, body).body)` gives
exactly the items of `decode(format, body)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ctxengine.engine.content.anthropic import read_content, strip_content
from ctxengine.engine.content.assembly import Assembly, Reading
from ctxengine.engine.content.bedrock import read_bedrock, strip_bedrock
from ctxengine.engine.content.errors import ContentError
from ctxengine.engine.content.google import read_google, strip_google
from ctxengine.engine.content.openai_chat import OLLAMA, read_message, strip_message
from ctxengine.engine.content.openai_responses import read_items, strip_items
from ctxengine.engine.items import ContentFormat, DecodedItem, ItemKind, Opaque, TextPart

__all__ = ["ContentError", "Decoded", "Role", "Stripped", "decode", "strip_opaque"]

Role = Literal["user", "assistant"]
"""Who speaks in a body whose format does not say (`text`, `blocks`, `anthropic`, `bedrock`), or says it loosely (`google`)."""

_WHAT = {ContentFormat.BLOCKS: "content blocks", ContentFormat.ANTHROPIC: "Anthropic content"}


@dataclass(frozen=True, slots=True)
class Decoded:
    """Items of one body, in order; reasoning is not among them."""

    items: tuple[DecodedItem, ...]


@dataclass(frozen=True, slots=True)
class Stripped:
    """A body that may be stored, and what was taken out of it."""

    body: str
    opaque: tuple[Opaque, ...]


def decode(format: ContentFormat, body: str, *, role: Role = "user") -> Decoded:
    """Read a body.

    Args:
        format: How the body is written.
        body: Its raw text.
        role: Whose message it is; the two OpenAI formats say so themselves and ignore it.

    Raises:
        ContentError: the body is not written in that format.
    """
    return Decoded(_read(format, body, role).items)


def strip_opaque(format: ContentFormat, body: str, *, role: Role = "user") -> Stripped:
    """Take the reasoning out of a body; what stays keeps every byte and its format.

    In Chat a reasoning member comes out as an object of that one member, exactly as it was written.

    Raises:
        ContentError: the body is not written in that format.
    """
    opaque = _read(format, body, role).opaque
    if not opaque:
        return Stripped(body, ())
    match format:
        case ContentFormat.OPENAI_CHAT:
            return Stripped(strip_message(body), opaque)
        case ContentFormat.OPENAI_RESPONSES:
            return Stripped(strip_items(body), opaque)
        case ContentFormat.OLLAMA:
            return Stripped(strip_message(body, OLLAMA), opaque)
        case ContentFormat.GOOGLE:
            return Stripped(strip_google(body), opaque)
        case ContentFormat.BEDROCK:
            return Stripped(strip_bedrock(body), opaque)
        case _:
            return Stripped(strip_content(body), opaque)


def _read(format: ContentFormat, body: str, role: Role) -> Reading:
    kind = ItemKind.USER_MESSAGE if role == "user" else ItemKind.ASSISTANT_MESSAGE
    match format:
        case ContentFormat.TEXT:
            assembly = Assembly(kind)
            assembly.part(TextPart(body))
            return assembly.reading()
        case ContentFormat.BLOCKS | ContentFormat.ANTHROPIC:
            return read_content(body, kind, _WHAT[format])
        case ContentFormat.OPENAI_CHAT:
            return read_message(body)
        case ContentFormat.OPENAI_RESPONSES:
            return read_items(body)
        case ContentFormat.OLLAMA:
            return read_message(body, OLLAMA)
        case ContentFormat.GOOGLE:
            return read_google(body, kind)
        case ContentFormat.BEDROCK:
            return read_bedrock(body, kind)
