"""What of an item's content is evidence that a model may repeat (design 7.2)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator

from ctxengine.engine.content.slices import member_spans, without
from ctxengine.engine.items import FilePart, ForeignPart, Item, ItemKind, Part, TextPart, Unit
from ctxengine.engine.lexeme import LexemeError, Node, NodeKind, parse
from ctxengine.engine.trust.levels import Trust

_OWN = frozenset({Trust.USER, Trust.PLATFORM})
_MODELS_OWN = frozenset({"server_tool_use", "mcp_tool_use", "executableCode", "executable_code"})
"""Blocks of a provider that hold what its model asked for, where they stand in a model's answer."""
_SAID = frozenset({"code", "action", "queries", "arguments", "transcript"})
"""Members of a provider's other blocks that hold the same, or what its model said aloud."""
_ENCRYPTED = frozenset({"encrypted_content", "encrypted_stdout"})
_KEPT_BY_PROVIDER = frozenset({"web_search_call", "file_search_call"})
"""Blocks for searches whose findings the model read, and which name them only where they have `results`."""


def evidence_texts(item: Item) -> Iterator[str]:
    """The texts of an item that nobody here vouches for, each as it was received.

    Of a model's answer that is what a provider's own tools put into it; of anything else below the user all of it, what lies in
    blocks of one provider and in text files included.
    """
    if item.trust in _OWN:
        return
    if item.trust is not Trust.MODEL:
        text = "\n".join(part.text for part in item.parts if isinstance(part, TextPart))
        if text:
            yield text
    for part in item.parts:
        inside = _inside(part, models=item.trust is Trust.MODEL)
        if inside:
            yield inside


def brings_unseen(item: Item) -> bool:
    """Whether a provider's own tools put into a model's answer what cannot be read: encrypted, or kept by the provider."""
    return item.trust is Trust.MODEL and any(
        isinstance(part, ForeignPart) and _is_unseen(part) for part in item.parts
    )


def beside_unseen(units: Iterable[Unit]) -> Iterator[tuple[Unit, bool]]:
    """Each unit with whether the model said it knowing findings that nobody here can read.

    So it is of the answer that brought them, whatever items and calls this is made of, and of the answers behind it to the end
    of the turn: the model may tell at any of these places what it found.

    Args:
        units: in their order.
    """
    found, before = False, None
    for unit in units:
        opening = unit.items[0]
        if opening.kind is ItemKind.USER_MESSAGE and (opening.run is None or opening.run != before):
            found = False
        before = opening.run
        found = found or any(map(brings_unseen, unit.items))
        yield unit, found


def words_of(item: Item) -> str:
    """What a model said in an item, or asked for in a call."""
    if item.kind is ItemKind.TOOL_CALL:
        return item.arguments or ""
    if item.kind is not ItemKind.ASSISTANT_MESSAGE:
        return ""
    return "\n".join(part.text for part in item.parts if isinstance(part, TextPart))


def _is_unseen(part: ForeignPart) -> bool:
    if part.kind in _MODELS_OWN:
        return False
    try:
        block = parse(part.raw)
    except LexemeError:
        return True
    if part.kind in _KEPT_BY_PROVIDER:
        results = block.get("results")
        return results is None or not any(results)
    return _is_encrypted(block)


def _is_encrypted(block: Node) -> bool:
    open_nodes = [block]
    while open_nodes:
        node = open_nodes.pop()
        if any(name in _ENCRYPTED and inner.text() for name, inner in node.items()):
            return True
        open_nodes += [*node, *(inner for _, inner in node.items())]
    return False


def _inside(part: Part, *, models: bool) -> str:
    """The text within a block that is none itself; of a block in a model's answer, what the model did not say in it."""
    if isinstance(part, ForeignPart):
        if not models:
            return part.raw
        return "" if part.kind in _MODELS_OWN else _brought(part.raw)
    if isinstance(part, FilePart) and part.base64 and (part.media_type or "").startswith("text/"):
        try:
            return base64.b64decode(part.base64).decode("utf-8", "replace")
        except (binascii.Error, ValueError):
            return ""
    return ""


def _brought(raw: str) -> str:
    """A block without what the model asked for in it; the sources that a search names are no words of the model's."""
    try:
        block = parse(raw)
    except LexemeError:
        return raw
    if block.kind is not NodeKind.OBJECT:
        return raw
    members = member_spans(raw)
    said = [place for place, member in enumerate(members) if member.key in _SAID]
    rest = without(raw, tuple(member.whole for member in members), said)
    action = block.get("action")
    sources = action.get("sources") if action is not None else None
    return rest if sources is None else f"{rest}\n{sources.raw}"
