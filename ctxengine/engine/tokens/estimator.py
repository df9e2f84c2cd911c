"""Estimating parts, calls and tools of a request (design 7.4; the spec's token estimator).

Figures are raw: nearest tokenizer times class prior plus framing. The calibration factor divides
the budget and never touches them. A stored count carries `COUNTER_VERSION` and the family's name;
either being different means counting again.
"""

from __future__ import annotations

from collections.abc import Iterable

from ctxengine.engine.items import FilePart, ForeignPart, ImagePart, Part, TextPart
from ctxengine.engine.tokens.attachments import file_tokens, image_size, image_tokens
from ctxengine.engine.tokens.counters import Encoding, count
from ctxengine.engine.tokens.families import Family
from ctxengine.engine.tokens.text import count_text

COUNTER_VERSION = "counter-1"
"""Changes whenever the same content would be counted differently."""

_FAMILY_MODEL = {
    "o200k": "gpt-5.4",
    "cl100k": "gpt-4-turbo",
    "gpt-6": "gpt-6",
    "claude-old": "claude-sonnet-4-6",
    "claude-new": "claude-opus-4-8",
    "gemini": "gemini-3",
}
"""The member of a family with the dearest images: stored counts know the family and no model."""


def estimate_parts(parts: Iterable[Part], family: Family) -> int:
    """Tokens of a message's content, framing of the message not included.

    An image or a file costs what `attachments` says and never the length of its base64; a block
    only one provider understands costs its raw text.
    """
    return sum(_part(part, family) for part in parts)


def estimate_message(parts: Iterable[Part], family: Family) -> int:
    """Tokens of a message with its frame."""
    return family.per_message + estimate_parts(parts, family)


def estimate_result(parts: Iterable[Part], family: Family) -> int:
    """Tokens of a tool result with its frame."""
    return family.per_result + estimate_parts(parts, family)


def estimate_call(name: str, arguments: str | None, family: Family) -> int:
    """Tokens of one tool call with its frame; arguments are text and need not be JSON."""
    return family.per_call + count_text(name, family) + count_text(arguments or "", family)


def estimate_tool(name: str, description: str, schema_text: str, family: Family) -> int:
    """Tokens of one tool definition. `Family.tools_once` comes on top once in a request.

    The schema factor was measured against the bare vocabulary, so it takes the place of the class
    prior here and does not multiply it.
    """
    definition = f"{name}\n{description}\n{schema_text}"
    bare = count(definition, family.encoding or Encoding.O200K)
    charged = -(-bare * family.schema_factor // 100)
    return family.per_tool + max(charged, count_text(definition, family))


def attachment_tokens(part: ImagePart | FilePart, provider: str, model: str) -> int:
    """Tokens of one attachment on a named model, from its own size where it tells one."""
    if isinstance(part, FilePart):
        return file_tokens(provider, model, part.media_type, part.base64)
    width, height = part.width, part.height
    if not (width and height) and part.base64:
        found = image_size(part.base64)
        width, height = found or (None, None)
    return image_tokens(provider, model, width, height)


def _part(part: Part, family: Family) -> int:
    match part:
        case TextPart():
            return count_text(part.text, family)
        case ForeignPart():
            return count_text(part.raw, family)
        case ImagePart() | FilePart():
            return attachment_tokens(part, "", _FAMILY_MODEL.get(family.name, family.name))
