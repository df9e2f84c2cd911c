"""The full record of a closed turn: as it was, reasoning gone, every result as its digest (capacity spec 3 and 10).

A card that a response shows twice, by a call and in a fence beside it or in two fences, stands in its record once. So does one
that a later response of the turn shows in a fence again: which fences these are is noted at the turn's close. Where a response
holds nothing else, it keeps them, for it would be gone.

Calls and results stay real pairs, since later turns imitate what the assistant's role shows. A closed record never changes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from ctxengine.engine.canonical import sha256_hex
from ctxengine.engine.derive import ENVELOPE_TOKENS, text_of_item
from ctxengine.engine.evidence.digest import CURRENT_DIGESTS, Shape, digest_of
from ctxengine.engine.evidence.digest.make import reference_line
from ctxengine.engine.ids import EventSeq, parse_item_id
from ctxengine.engine.items import (
    FilePart,
    ForeignPart,
    ImagePart,
    Item,
    ItemKind,
    TextPart,
    Unit,
    unit_of,
)
from ctxengine.engine.lexeme import LexemeError, parse
from ctxengine.engine.ports import TokenCounter
from ctxengine.engine.presentations.fences import payloads_in, without_repeats
from ctxengine.engine.presentations.payload import canonical_payload, payload_sha256
from ctxengine.engine.turns.presentation import PresentationRecord

CARDS_TWICE = "digest@1"
"""Name under which the digest of a unit is kept whose record held a card twice, as plans of `working-set@1` showed it."""


Repeats = Mapping[int, Collection[str]]
"""By the event that opens a unit: payload digests of cards that stand before it in its turn and that its fences show again."""


def repeats_in(units: Sequence[Unit], shown: Sequence[PresentationRecord]) -> dict[int, list[str]]:
    """What the responses of one turn show in fences that an earlier response of it has shown, by a call or in a fence.

    Args:
        shown: the turn's cards. A fence whose payload made none is plain text, and so is its repetition.
    """
    made = [(parse_item_id(card.source).sequence, card.payload_sha256) for card in shown]
    cards = {digest for _, digest in made}
    found: dict[int, list[str]] = {}
    fenced: set[str] = set()
    for unit in units if cards else ():
        own = cards.intersection(_fenced(unit))
        again = own & (fenced | {digest for sequence, digest in made if sequence < unit.sequence})
        if again:
            found[unit.sequence] = sorted(again)
        fenced |= own
    return found


def _fenced(unit: Unit) -> list[str]:
    return [
        digest
        for item in unit.items
        if _may_hold_a_fence(item)
        for part in item.parts
        if isinstance(part, TextPart)
        for digest in payloads_in(part.text)
    ]


def closed_record(
    units: Sequence[Unit],
    counter: TokenCounter,
    *,
    once: bool = True,
    repeats: Repeats = MappingProxyType({}),
    digests: Callable[[EventSeq], int] | None = None,
) -> tuple[Unit, ...]:
    """The units of a closed turn with each result in its digest form, counted anew.

    Args:
        once: whether a card that a response shows twice stands once; it stood twice under plans of `working-set@1`.
        repeats: what the turn's close noted of fences that repeat a card of an earlier response.
        digests: version of the digests that the turn of a unit shows, by the event that opens the unit, as its close noted;
            None: the current one.
    """
    return tuple(
        _closed(
            unit,
            counter,
            once=once,
            before=repeats.get(unit.sequence, ()),
            digests=CURRENT_DIGESTS if digests is None else digests(unit.sequence),
        )
        for unit in units
    )


def _closed(
    unit: Unit, counter: TokenCounter, *, once: bool, before: Collection[str], digests: int
) -> Unit:
    items = [
        _digested(item, counter, digests) if item.kind is ItemKind.TOOL_RESULT else item
        for item in (_told_once(unit.items, counter, before) if once else unit.items)
    ]
    return unit if items == list(unit.items) else unit_of(items)


def _told_once(
    items: Sequence[Item], counter: TokenCounter, before: Collection[str]
) -> Sequence[Item]:
    """The items without fences that repeat a card of the same response, or one that stands before it."""
    if not any(_may_hold_a_fence(item) for item in items):
        return items
    own = {_payload(item) for item in items if item.kind is ItemKind.TOOL_CALL}
    told = _each_once(items, own | set(before), counter)
    if before and not any(map(_says_something, told)):
        return _each_once(items, own, counter)
    return told


def _each_once(items: Sequence[Item], shown: set[str], counter: TokenCounter) -> Sequence[Item]:
    return [
        _without_repeats(item, shown, counter) if _may_hold_a_fence(item) else item
        for item in items
    ]


def _says_something(item: Item) -> bool:
    """Whether a response with this item alone would still be one."""
    if item.kind is ItemKind.TOOL_CALL:
        return True
    return item.kind is ItemKind.ASSISTANT_MESSAGE and any(
        not isinstance(part, TextPart) or bool(part.text.strip()) for part in item.parts
    )


def _may_hold_a_fence(item: Item) -> bool:
    return item.kind is ItemKind.ASSISTANT_MESSAGE and any(
        isinstance(part, TextPart) and "```" in part.text for part in item.parts
    )


def _payload(call: Item) -> str:
    """Digest of a call's arguments as a card's payload; empty for what is no JSON."""
    try:
        return payload_sha256(canonical_payload(parse(call.arguments or "")))
    except LexemeError:
        return ""


def _without_repeats(item: Item, shown: set[str], counter: TokenCounter) -> Item:
    """The message without the cards shown before it; those that it shows itself are added to `shown`."""
    parts = tuple(
        replace(part, text=without_repeats(part.text, shown))
        if isinstance(part, TextPart)
        else part
        for part in item.parts
    )
    if parts == item.parts:
        return item
    spared = max(0, counter.parts(item.parts) - counter.parts(parts))
    text = "\n".join(part.text for part in parts if isinstance(part, TextPart))
    return replace(
        item,
        parts=parts,
        tokens=max(0, item.tokens - spared),
        pointer_tokens=max(0, item.pointer_tokens - spared),
        digest=sha256_hex(f"once:{item.digest}:{text}".encode("utf-8", "surrogatepass")),
    )


def _digested(item: Item, counter: TokenCounter, digests: int) -> Item:
    """The result as its digest; itself where it is shorter. Its trust, its id and its size stay what they were."""
    media = [_media_line(part) for part in item.parts if not isinstance(part, TextPart)]
    digest = digest_of(
        text_of_item(item), reference=str(item.id), is_error=item.is_error, version=digests
    )
    if digest.shape is Shape.WHOLE and not media:
        return item
    reference = [reference_line(str(item.id), item.bytes_len)] if media else []
    text = "\n".join([*media, *([digest.text] if digest.text else []), *reference])
    tokens = counter.parts((TextPart(text),)) + ENVELOPE_TOKENS
    return replace(
        item,
        parts=(TextPart(text),),
        tokens=tokens,
        pointer_tokens=min(item.pointer_tokens, tokens),
        digest=sha256_hex(f"digest:{item.digest}:{text}".encode("utf-8", "surrogatepass")),
    )


def _media_line(part: ImagePart | FilePart | ForeignPart) -> str:
    if isinstance(part, ForeignPart):
        return f"[{part.kind} block of {len(part.raw):,} characters]"
    kind = "image" if isinstance(part, ImagePart) else "file"
    size = f", {len(part.base64):,} characters of base64" if part.base64 else ""
    return f"[{kind} {part.media_type or 'of unknown type'}{size}]"
