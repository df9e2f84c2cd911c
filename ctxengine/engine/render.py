"""From ledger items to neutral wire messages: envelopes, pointers, model view (design 6, 7.5, 7.6).

A user's words need no envelope where a message of the user role holds nothing else: the role says whose they are. All other
content below configuration trust stands in one. Envelope syntax inside any content is escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ctxengine.engine.evidence.excerpt import limit_for, shortened
from ctxengine.engine.evidence.inline import NO_LIMIT, InlineLimit
from ctxengine.engine.evidence.pointer import pointer_is_shorter, pointer_text
from ctxengine.engine.items import (
    FilePart,
    ForeignPart,
    ImagePart,
    Item,
    ItemKind,
    Opaque,
    Part,
    TextPart,
    Unit,
    speaks_in_user_role,
)
from ctxengine.engine.trust.envelope import (
    close_marker,
    escape,
    nonce,
    open_marker,
    render_envelope,
)
from ctxengine.engine.trust.levels import Trust, needs_envelope
from ctxengine.engine.trust.model_view import model_view
from ctxengine.engine.wire.base import (
    WireApi,
    WireCall,
    WireFile,
    WireImage,
    WireMessage,
    WireOpaque,
    WirePart,
    WireResult,
    WireText,
)
from ctxengine.engine.wire.foreign import FOR_USERS, without_marks, words_inside
from ctxengine.engine.wire.names import arguments_view, called_name, carries
from ctxengine.engine.wire.tool_search import is_search, resolvable

EMPTY_RESULT = "(no output)"
EMPTY_MESSAGE = "(empty message)"

_Carried = WireText | WireImage | WireFile


@dataclass(frozen=True, slots=True)
class RenderContext:
    """What rendering needs beside the unit itself; equal contexts give equal bytes."""

    nonce_key: bytes
    wire_names: dict[str, str]
    """Ledger tool name to pinned wire name."""
    api: str
    """Wire API of the bound provider: blocks only it understands are sent as they are, to it alone."""
    foreign_as_pointer: bool = False
    """Imported sessions: another tool's provider blocks are evidence, not ours to replay."""
    inline: InlineLimit = NO_LIMIT
    """Tool results with more text than this stand as excerpts."""
    whole_lines: bool = False
    """Whether those excerpts are windows of whole lines, whatever the limit's unit."""
    searchable: frozenset[str] | None = None
    """Wire names that results of the provider's tool search may refer to; empty where it has no such search any more;
    None: nothing is held against it."""

    def wire_name(self, name: str) -> str:
        """The name a call goes out under."""
        return called_name(name, self.wire_names)


def unit_messages(
    unit: Unit, context: RenderContext, *, as_pointers: bool, opaque: Sequence[Opaque] = ()
) -> tuple[WireMessage, ...]:
    """Render one unit; a unit with nothing to say (a step that only thought) gives no message."""
    first = unit.items[0]
    if first.kind in {ItemKind.USER_MESSAGE, ItemKind.SUMMARY}:
        return (WireMessage("user", _user_parts(unit.items, context)),)
    said = [item for item in unit.items if item.kind is not ItemKind.TOOL_RESULT]
    results = {item.wire_call_id: item for item in unit.items if item.kind is ItemKind.TOOL_RESULT}
    assistant = _assistant_parts(said, context, opaque)
    if not any(isinstance(part, WireText | WireCall) or _is_block(part) for part in assistant):
        return ()
    messages = [WireMessage("assistant", assistant, phase=_phase(said))]
    answered = [
        _result(results[item.wire_call_id], item, context, as_pointers)
        for item in said
        if item.kind is ItemKind.TOOL_CALL and item.wire_call_id in results
    ]
    if answered:
        messages.append(WireMessage("user", tuple(answered)))
    return tuple(messages)


def _is_block(part: WirePart) -> bool:
    return isinstance(part, WireOpaque) and part.kind != "reasoning"


def _phase(said: Sequence[Item]) -> str | None:
    return next((item.phase for item in said if item.phase), None)


def _user_parts(items: Sequence[Item], context: RenderContext) -> tuple[WirePart, ...]:
    parts: list[WirePart] = []
    for item in items:
        if speaks_in_user_role(item.kind, item.trust, item.source):
            parts.extend(_bare(item.parts, item, context))
        else:
            parts.extend(_enveloped(item, context))
    return tuple(parts) or (WireText(EMPTY_MESSAGE),)


def _assistant_parts(
    said: Sequence[Item], context: RenderContext, opaque: Sequence[Opaque]
) -> tuple[WirePart, ...]:
    parts: list[WirePart] = []
    for item in said:
        ordinal = item.id.ordinal
        if item.kind is ItemKind.TOOL_CALL:
            parts.extend(_opaque_at(ordinal, 0, opaque, context))
            parts.append(
                WireCall(
                    item.wire_call_id or str(item.id),
                    context.wire_name(item.name or ""),
                    arguments_view(item.arguments or ""),
                )
            )
            continue
        for place, part in enumerate(item.parts):
            parts.extend(_opaque_at(ordinal, place, opaque, context))
            parts.extend(_bare((part,), item, context))
    parts.extend(_opaque_at(len(said), 0, opaque, context))
    return tuple(parts)


def _opaque_at(
    ordinal: int, part: int, opaque: Sequence[Opaque], context: RenderContext
) -> list[WireOpaque]:
    return [
        WireOpaque(block.raw, "reasoning", block.follower_id)
        for block in opaque
        if block.before == ordinal
        and block.before_part == part
        and block.api == context.api
        and carries(block.raw)
    ]


def _bare(parts: Sequence[Part], item: Item, context: RenderContext) -> list[WirePart]:
    """Content of a message attributed by its role alone."""
    out: list[WirePart] = []
    for part in parts:
        match part:
            case TextPart(text):
                shown = escape(model_view(text))
                if shown.strip():
                    out.append(WireText(shown))
            case ForeignPart():
                out.append(_foreign(part, item, context))
            case _:
                out.append(_media(part))
    return out


def _foreign(part: ForeignPart, item: Item, context: RenderContext) -> WirePart:
    users = item.kind is not ItemKind.ASSISTANT_MESSAGE
    if _goes_back(part, context, users=users):
        if context.searchable is None or not is_search(part.kind, part.raw):
            return WireOpaque(without_marks(part.raw), part.kind)
        if context.searchable:
            return WireOpaque(resolvable(part.kind, part.raw, context.searchable), part.kind)
    # What an import brought is counted as a pointer, and so it stands.
    words = words_inside(part.kind, part.raw) if users and not context.foreign_as_pointer else ""
    if shown := escape(model_view(words)):
        return WireText(shown)
    size = len(part.raw.encode("utf-8", "surrogatepass"))
    return WireText(
        f"[elided] provider block ({Trust.EXTERNAL_UNTRUSTED.value.lower()}, {size:,} bytes); "
        f'the whole block is kept: recall it with id "{item.id}".'
    )


def _goes_back(part: ForeignPart, context: RenderContext, *, users: bool) -> bool:
    """Whether a block may stand in a request as it is."""
    if part.api != context.api or context.foreign_as_pointer or not carries(part.raw):
        return False
    return not users or part.kind in FOR_USERS.get(WireApi(context.api), frozenset())


def _media(part: ImagePart | FilePart) -> WireImage | WireFile:
    if isinstance(part, ImagePart):
        return WireImage(part.media_type, part.base64, part.url)
    return WireFile(part.media_type, part.base64, part.url, part.name)


def _enveloped(item: Item, context: RenderContext) -> list[_Carried]:
    """One item's content inside exactly one envelope, images and files between two text blocks of it."""
    parts, short = _shown(item, context)
    mark = nonce(context.nonce_key, str(item.id), "excerpt" if short else "whole", item.digest)
    total_bytes = item.bytes_len if short else None
    texts = [part.text for part in parts if isinstance(part, TextPart)]
    if all(isinstance(part, TextPart) for part in parts):
        body = "\n".join(texts)
        if not body.strip():
            body = EMPTY_RESULT
        return [
            WireText(
                render_envelope(
                    body,
                    source=item.source,
                    item_id=str(item.id),
                    trust=item.trust,
                    nonce=mark,
                    truncated=short,
                    total_bytes=total_bytes,
                )
            )
        ]
    opening = open_marker(
        source=item.source,
        item_id=str(item.id),
        trust=item.trust,
        nonce=mark,
        truncated=short,
        total_bytes=total_bytes,
    )
    out: list[_Carried] = [WireText(opening)]
    for part in parts:
        match part:
            case TextPart(text):
                shown = escape(model_view(text))
                if shown.strip():
                    out.append(WireText(shown))
            case ForeignPart(raw=raw):
                out.append(WireText(escape(model_view(raw))))
            case _:
                out.append(_media(part))
    out.append(WireText(close_marker(mark)))
    return out


def _shown(item: Item, context: RenderContext) -> tuple[Sequence[Part], bool]:
    """An item's content as it stands in requests, and whether that is an excerpt of it."""
    limit, unit = limit_for(item, context.inline), context.inline.unit
    short = None
    if limit is not None:
        lines = context.whole_lines
        short = shortened(item.parts, limit, str(item.id), whole_lines=lines, unit=unit)
    return (item.parts, False) if short is None else (short, True)


def _result(item: Item, call: Item, context: RenderContext, as_pointers: bool) -> WireResult:
    shorter = as_pointers and pointer_is_shorter(item.parts, item.bytes_len)
    if shorter:
        content: tuple[_Carried, ...] = (WireText(pointer_text(item)),)
    elif needs_envelope(item.trust):
        content = tuple(_enveloped(item, context))
    else:
        shown = "\n".join(p.text for p in _shown(item, context)[0] if isinstance(p, TextPart))
        content = (WireText(model_view(shown) or EMPTY_RESULT),)
    return WireResult(
        call.wire_call_id or str(call.id),
        context.wire_name(call.name or ""),
        content,
        item.is_error,
    )
