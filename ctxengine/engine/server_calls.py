"""Calls of tools that the provider runs itself, and that are still running when the client's own results go back.

Anthropic takes nothing but results behind such an answer (providers 2.1 A), so a step says nothing new there. Where the user
speaks all the same, the call is abandoned: it and a result that comes for it later stand as a platform note, and the reasoning
in front of them is no longer replayed, since it was signed over what they held.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import ForeignPart, Item, ItemKind, Part, Unit
from ctxengine.engine.lexeme import LexemeError, Node, is_json_object, parse

_CALL = "server_tool_use"
_RESULT = "_tool_result"
_NO_API = ""
"""Wire API of a block that is sent to nobody as it is: it is rendered as a note that names it."""


def server_call_open(active: Sequence[Unit]) -> bool:
    """Whether the newest unit calls a tool of the provider whose result the same answer does not hold."""
    if not active:
        return False
    asked, answered = _ids(active[-1])
    return not asked <= answered


def serves(unit: Unit) -> bool:
    """Whether a unit holds a call of a tool that the provider runs, or the result of one."""
    return any(_is_served(part) for item in unit.items for part in item.parts)


def without_abandoned(
    units: Sequence[Unit], serving: Collection[EventSeq], *, api: str, over: bool = False
) -> Mapping[EventSeq, Unit]:
    """Those units that cannot stand as they are, by their sequence, each as it stands instead; their counts stay.

    Args:
        units: in the order in which they stand.
        serving: where units with such calls or results may be.
        api: wire API that the request is for; what another one made is no call there.
        over: whether the user has spoken behind them all.
    """
    abandoned: set[str] = set()
    for place, unit in enumerate(units):
        if unit.sequence in serving and any(part.api == api for part in _served(unit)):
            abandoned |= _abandoned(units, place, over)
    if not abandoned:
        return {}
    return {
        unit.sequence: mended
        for unit in units
        if unit.sequence in serving and (mended := _without(unit, abandoned)) is not unit
    }


def _abandoned(units: Sequence[Unit], place: int, over: bool) -> set[str]:
    """Calls of one answer that nobody answers before the user speaks. Answers without calls of the client's are one turn."""
    asked, answered = _ids(units[place])
    while asked - answered and place + 1 < len(units):
        following = units[place + 1]
        if following.items[0].kind in {ItemKind.USER_MESSAGE, ItemKind.SUMMARY}:
            return asked - answered
        if any(item.kind is ItemKind.TOOL_RESULT for item in units[place].items):
            return set()
        place += 1
        answered |= _ids(following)[1]
    return asked - answered if over else set()


def _ids(unit: Unit) -> tuple[set[str], set[str]]:
    """Ids of the calls and of the results in a unit."""
    asked, answered = set(), set()
    for part in _served(unit):
        if part.kind == _CALL:
            asked.add(_member(part.raw, "id"))
        else:
            answered.add(_member(part.raw, "tool_use_id"))
    return asked, answered


def _served(unit: Unit) -> Iterator[ForeignPart]:
    for item in unit.items:
        for part in item.parts:
            if isinstance(part, ForeignPart) and _is_served(part):
                yield part


def _is_served(part: Part) -> bool:
    return isinstance(part, ForeignPart) and (part.kind == _CALL or part.kind.endswith(_RESULT))


def _without(unit: Unit, abandoned: Collection[str]) -> Unit:
    items = [_noted(item, abandoned) for item in unit.items]
    if all(now is was for now, was in zip(items, unit.items, strict=True)):
        return unit
    return replace(unit, items=tuple(items))


def _noted(item: Item, abandoned: Collection[str]) -> Item:
    parts = tuple(_unsent(part, abandoned) for part in item.parts)
    return item if parts == item.parts else replace(item, parts=parts)


def _unsent(part: Part, abandoned: Collection[str]) -> Part:
    if not isinstance(part, ForeignPart) or not _is_served(part):
        return part
    named = "id" if part.kind == _CALL else "tool_use_id"
    return replace(part, api=_NO_API) if _member(part.raw, named) in abandoned else part


def _member(raw: str, name: str) -> str:
    node: Node | None
    try:
        node = parse(raw).get(name) if is_json_object(raw) else None
    except LexemeError:
        return ""
    return (node.text() or "") if node is not None else ""
