"""An item's content as parts that a page can show as text, never as markup."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from django.utils.safestring import SafeString, mark_safe

from ctxengine.engine.items import (
    FilePart,
    ForeignPart,
    ImagePart,
    ItemKind,
    Part,
    TextPart,
)
from ctxengine.engine.trust.lookalikes import STUFFED, may_hold_lookalike
from ctxengine.ledger.queries.items import ItemContent
from inspector.figures import number, size
from inspector.jsonview import pretty
from inspector.visible import visible

SHOWN_CHARS = 60_000
"""Characters shown of one part unless the whole is asked for."""


@dataclass(frozen=True, slots=True)
class PartView:
    """One part of an item."""

    caption: str
    """What it is, when it is not plain text: `image/png, inline, 41 kB`."""
    html: SafeString
    chars: int
    """Characters of the whole part."""
    hidden: int
    """Characters not shown here; nought when all are."""


def parts_of(content: ItemContent, *, whole: bool) -> tuple[PartView, ...]:
    """The parts of an item, or the raw body when it could not be read."""
    item = content.decoded
    if item is None:
        return (_text(content.raw, "raw body", whole),) if content.raw else ()
    views = [_part(part, whole) for part in item.parts]
    if item.kind is ItemKind.TOOL_CALL:
        views.insert(0, _arguments(item.arguments or "", whole))
    return tuple(views)


def lookalikes(content: ItemContent) -> int:
    """Places in the item's texts that look like a delimiter."""
    parts = content.decoded.parts if content.decoded else ()
    texts = [part.text for part in parts if isinstance(part, TextPart)]
    return sum(1 for text in texts for _ in _found(text))


def marked(text: str) -> SafeString:
    """Text as HTML with look-alikes of delimiters marked."""
    pieces: list[str] = []
    at = 0
    for match in _found(text):
        pieces += [visible(text[at : match.start()]), "<mark>", visible(match.group()), "</mark>"]
        at = match.end()
    pieces.append(visible(text[at:]))
    return mark_safe("".join(pieces))  # noqa: S308  every piece is escaped by `visible`


def _found(text: str) -> Iterator[re.Match[str]]:
    return STUFFED.finditer(text) if may_hold_lookalike(text) else iter(())


def _part(part: Part, whole: bool) -> PartView:
    match part:
        case TextPart():
            return _text(part.text, "", whole)
        case ImagePart():
            place = _place(part.base64, part.url)
            sides = f", {part.width} × {part.height}" if part.width and part.height else ""
            return _note(f"Image {part.media_type or 'of unknown type'}{sides}, {place}", part.url)
        case FilePart():
            name = f" “{part.name}”" if part.name else ""
            kind = part.media_type or "of unknown type"
            return _note(f"File {kind}{name}, {_place(part.base64, part.url)}", part.url)
        case ForeignPart():
            return _json(part.raw, f"{part.kind}, a block that only {part.api} understands", whole)


def _place(base64: str | None, url: str | None) -> str:
    if base64:
        return f"inline, {size(len(base64) * 3 // 4)}; not shown"
    return "by address; not loaded" if url else "without content"


def _note(caption: str, url: str | None) -> PartView:
    return PartView(caption, visible(url or ""), len(url or ""), 0)


def _arguments(arguments: str, whole: bool) -> PartView:
    return _json(arguments, "arguments as received", whole)


def _json(raw: str, caption: str, whole: bool) -> PartView:
    if not whole and len(raw) > SHOWN_CHARS:
        return _text(raw, caption, whole)
    return PartView(caption, pretty(raw), len(raw), 0)


def _text(text: str, caption: str, whole: bool) -> PartView:
    shown = text if whole else text[:SHOWN_CHARS]
    return PartView(caption, marked(shown), len(text), len(text) - len(shown))


def summary(content: ItemContent) -> str:
    """Size of the content in words."""
    return f"{number(content.line.chars_len)} characters, {size(content.line.bytes_len)}"
