"""What append derives once from a message: items with their counts, digests and ids (design 4)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from json.encoder import encode_basestring
from typing import NamedTuple

from ctxengine.engine.canonical import canonical_bytes, sha256_hex
from ctxengine.engine.events import ItemFacts
from ctxengine.engine.evidence.excerpt import RECALL_SOURCE, shortened
from ctxengine.engine.evidence.inline import NO_LIMIT, InlineLimit
from ctxengine.engine.evidence.pointer import pointer_is_shorter, pointer_text
from ctxengine.engine.ids import EventSeq, ItemId
from ctxengine.engine.items import (
    DecodedItem,
    FilePart,
    ForeignPart,
    ImagePart,
    Item,
    ItemKind,
    Part,
    TextPart,
    speaks_in_user_role,
)
from ctxengine.engine.ports import TokenCounter
from ctxengine.engine.redaction.redact import begins_no_secret, redact
from ctxengine.engine.trust.levels import Trust
from ctxengine.engine.trust.model_view import model_view
from ctxengine.engine.wire.names import wire_call_id
from ctxengine.engine.wire.tool_search import REFERENCE_KIND, found_names

PREVIEW_CHARS = 200
_SECRET_CHARS = 400
"""How far behind the preview a secret may reach that begins in it."""
ENVELOPE_TOKENS = 40
"""Upper bound for the two delimiter lines of one envelope, attributes included (tokens)."""


@dataclass(frozen=True, slots=True)
class Derivation:
    """What items are derived with."""

    counter: TokenCounter
    foreign_as_pointer: bool = False
    inline: InlineLimit = NO_LIMIT
    """Tool results above this are counted as the excerpt they will be shown as."""
    whole_lines: bool = False
    """Whether that excerpt is a window of whole lines."""
    kept_aside: Mapping[str, int] = field(default_factory=dict)
    """Definitions (tokens by wire name) that enter the prompt where a result of the provider's own search names them."""


def facts_of(
    decoded: Sequence[DecodedItem],
    *,
    sequence: EventSeq,
    trust: Trust,
    source: str,
    derivation: Derivation,
    taken: Collection[str],
    answered: str = "",
    name: str = "",
    is_error: bool = False,
    ledger_name: Callable[[str], str] = str,
) -> tuple[ItemFacts, ...]:
    """Facts of one event's items.

    Args:
        taken: wire call ids that calls of this session already use.
        answered: for a result, the wire call id of its call.
        name: for a result, the tool's ledger name.
        ledger_name: reverses the plan's wire names for calls.
    """
    facts = []
    used: set[str] = set(taken)
    for item in decoded:
        wire_id = answered
        if item.kind is ItemKind.TOOL_CALL:
            wire_id = wire_call_id(item.call_id or "", sequence, item.ordinal, used)
            used.add(wire_id)
        shown = ledger_name(item.name) if item.name else name
        facts.append(_facts(item, sequence, trust, source, derivation, wire_id, shown, is_error))
    return tuple(facts)


def _facts(
    item: DecodedItem,
    sequence: EventSeq,
    trust: Trust,
    source: str,
    derivation: Derivation,
    wire_id: str,
    name: str,
    is_error: bool,
) -> ItemFacts:
    excerpt = _excerpt(item, sequence, source, derivation)
    tokens = pointer = _tokens(item, excerpt or item.parts, trust, source, derivation)
    text = text_of_item(item)
    bytes_len = _bytes_len(item, text)
    if item.kind is ItemKind.TOOL_RESULT and pointer_is_shorter(item.parts, bytes_len):
        shape = Item(
            ItemId(sequence, item.ordinal), item.kind, trust, None, (), tokens, "", bytes_len
        )
        pointer = min(tokens, derivation.counter.parts((TextPart(pointer_text(shape)),)))
    return ItemFacts(
        ordinal=item.ordinal,
        kind=item.kind,
        tokens=tokens,
        pointer_tokens=pointer,
        digest=item_digest(item),
        bytes_len=bytes_len,
        chars_len=_chars_len(item),
        name=model_view(name),
        call_id=model_view(item.call_id or ""),
        wire_call_id=wire_id,
        source=source,
        is_error=item.is_error or is_error,
        preview=_preview(item, text),
        excerpt_limit=derivation.inline.most or 0 if excerpt else 0,
    )


class Counts(NamedTuple):
    """What an item takes under one counter."""

    tokens: int
    pointer_tokens: int


def recounted(item: Item, derivation: Derivation) -> Counts:
    """The counts of a ledger item under another counter, in the form it was counted in before."""
    again = DecodedItem(
        ordinal=item.id.ordinal,
        kind=item.kind,
        parts=item.parts,
        call_id=item.call_id,
        name=item.name,
        arguments=item.arguments,
        is_error=item.is_error,
    )
    limit = InlineLimit(item.excerpt_limit or None, derivation.inline.unit)
    kept = replace(derivation, inline=limit)
    facts = _facts(
        again, item.id.sequence, item.trust, item.source, kept, "", item.name or "", item.is_error
    )
    return Counts(facts.tokens, facts.pointer_tokens)


def _excerpt(
    item: DecodedItem, sequence: EventSeq, source: str, derivation: Derivation
) -> tuple[Part, ...] | None:
    """The form in which a result above the limit will stand in requests."""
    limit, unit = derivation.inline
    if limit is None or item.kind is not ItemKind.TOOL_RESULT or source.startswith(RECALL_SOURCE):
        return None
    reference = f"{sequence}.{item.ordinal}"
    return shortened(item.parts, limit, reference, whole_lines=derivation.whole_lines, unit=unit)


def _tokens(
    item: DecodedItem, shown: Sequence[Part], trust: Trust, source: str, derivation: Derivation
) -> int:
    if item.kind is ItemKind.TOOL_CALL:
        return derivation.counter.call(item.name or "", item.arguments or "")
    parts = shown
    if derivation.foreign_as_pointer:
        parts = [
            TextPart("[elided] provider block " + "0" * 100)
            if isinstance(part, ForeignPart)
            else part
            for part in parts
        ]
    wrapped = item.kind in {ItemKind.TOOL_RESULT, ItemKind.SUMMARY} or (
        item.kind is ItemKind.USER_MESSAGE and not speaks_in_user_role(item.kind, trust, source)
    )
    loaded = _loaded(item, derivation.kept_aside) if derivation.kept_aside else 0
    return derivation.counter.parts(parts) + (ENVELOPE_TOKENS if wrapped else 0) + loaded


def _loaded(item: DecodedItem, kept_aside: Mapping[str, int]) -> int:
    """What the references of a search result bring into the prompt; a result that holds definitions is counted as it is."""
    blocks = [part for part in item.parts if isinstance(part, ForeignPart)]
    return sum(
        kept_aside.get(name, 0)
        for part in blocks
        if part.kind == REFERENCE_KIND
        for name in found_names(part.kind, part.raw)
    )


def item_digest(item: DecodedItem) -> str:
    """sha256 of an item's canonical form; content only, so that it is the same before and after storage."""
    head = (item.kind, item.call_id or "", item.name or "", item.arguments or "")
    parts = ",".join([f"[{_quoted(_part_shape(part))}]" for part in item.parts])
    try:
        return sha256_hex(f"[{_quoted(head)},[{parts}]]".encode())
    except UnicodeEncodeError:
        shape = [*head, [_part_shape(part) for part in item.parts]]
        return sha256_hex(canonical_bytes(_utf8_safe(shape)))


def _quoted(texts: Iterable[str]) -> str:
    """Texts as the members of a canonical array."""
    return ",".join(map(encode_basestring, texts))


def _part_shape(part: Part) -> list[str]:
    match part:
        case TextPart(text):
            return ["text", text]
        case ImagePart():
            return ["image", part.media_type or "", part.url or "", part.base64 or ""]
        case FilePart():
            return [
                "file",
                part.media_type or "",
                part.url or "",
                part.base64 or "",
                part.name or "",
            ]
        case ForeignPart():
            return ["foreign", part.kind, part.api, part.raw]


def _utf8_safe(value: object) -> object:
    """Lone surrogates as their escape, so that canonical JSON can carry them and stays injective enough to hash."""
    if isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            return {"surrogates": value.encode("utf-8", "surrogatepass").hex()}
        return value
    if isinstance(value, list):
        return [_utf8_safe(entry) for entry in value]
    return value


def text_of_item(item: DecodedItem | Item) -> str:
    """All text of an item, arguments included; what searches and previews read."""
    texts = [part.text for part in item.parts if isinstance(part, TextPart)]
    if item.arguments is not None:
        texts.append(item.arguments)
    return "\n".join(texts)


def preview(item: DecodedItem) -> str:
    """First characters of an item in model view, for lists."""
    return _preview(item, text_of_item(item))


def _preview(item: DecodedItem, text: str) -> str:
    if not text:
        other = next((part for part in item.parts if not isinstance(part, TextPart)), None)
        text = f"[{_part_shape(other)[0]}]" if other is not None else ""
    return shown_start(text)


def shown_start(text: str) -> str:
    """The first characters of a text in model view and without secrets."""
    if begins_no_secret(text, PREVIEW_CHARS):
        return model_view(text[:PREVIEW_CHARS])
    # Masked before it is cut: half a key would not be recognised and would still be shown.
    return model_view(redact(text[: PREVIEW_CHARS + _SECRET_CHARS]).text[:PREVIEW_CHARS])


def _bytes_len(item: DecodedItem, text: str) -> int:
    if any(not isinstance(part, TextPart) for part in item.parts):
        return sum(
            len(piece.encode("utf-8", "surrogatepass"))
            for part in item.parts
            for piece in _part_shape(part)[1:]
        )
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _chars_len(item: DecodedItem) -> int:
    return sum(len(part.text) for part in item.parts if isinstance(part, TextPart)) + len(
        item.arguments or ""
    )
