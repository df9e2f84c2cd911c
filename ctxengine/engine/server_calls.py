"""Calls of tools that the provider runs itself, and that are still running when the client's own results go back.

Anthropic takes nothing but results behind such an answer (providers 2.1 A), so a step says nothing new there. Where the user
speaks all the same, the call is abandoned: it and a result that comes for it later stand as a platform note, and the reasoning
in front of them is no longer replayed, since it was signed over what they held. A result whose call is not in view stands as a
note too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import NamedTuple

from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import ForeignPart, Item, ItemKind, Part, Unit
from ctxengine.engine.lexeme import LexemeError, Node, is_json_object, parse

_CALL = "server_tool_use"
_REMOTE_CALL = "mcp_tool_use"
"""A call that its own answer always waits for; it is never open, and yet a result may lose it."""
_RESULT = "_tool_result"
_NO_API = ""
"""Wire API of a block that is sent to nobody as it is: it is rendered as a note that names it."""

_Id = tuple[str, str]
"""Wire API and id of a call: a block of another API stands as a note and answers nothing."""


class Served(NamedTuple):
    """What one unit holds of tools that a provider runs."""

    calls: frozenset[_Id]
    """Those that may stay open."""
    named: frozenset[_Id]
    """All that a result in the unit or behind it may name."""
    results: frozenset[_Id]
    doubled: frozenset[_Id] = frozenset()
    """Ids that two of its calls have."""


_NOTHING = Served(frozenset(), frozenset(), frozenset())
_SPOKEN = frozenset({ItemKind.USER_MESSAGE, ItemKind.SUMMARY})


def server_call_open(active: Sequence[Unit], api: str) -> bool:
    """Whether the model's turn at the end calls a tool of the provider whose result it does not hold.

    Args:
        api: wire API of the request; what another one made is no call there.
    """
    calls: set[_Id] = set()
    results: set[_Id] = set()
    for place, unit in enumerate(reversed(active)):
        if unit.items[0].kind in _SPOKEN:
            break
        # Answers without calls of the client's are one turn with what comes behind them.
        if place and any(item.kind is ItemKind.TOOL_RESULT for item in unit.items):
            break
        served = served_in(unit)
        calls |= served.calls
        results |= served.results
    return any(call not in results for call in calls if call[0] == api)


def serves(unit: Unit) -> bool:
    """Whether a unit holds a call of a tool that the provider runs, or the result of one."""
    return any(True for _ in _served(unit))


def served_in(unit: Unit) -> Served:
    """The calls and results of such tools in a unit."""
    calls, named, results, doubled = set(), set(), set(), set()
    for part in _served(unit):
        known = (part.api, _call_id(part))
        if part.kind.endswith(_RESULT):
            results.add(known)
            continue
        if known in named:
            doubled.add(known)
        named.add(known)
        if part.kind == _CALL:
            calls.add(known)
    return Served(*map(frozenset, (calls, named, results, doubled)))


def unsent_calls(
    shown: Sequence[Unit | None],
    served: Mapping[EventSeq, Served],
    *,
    lone_results: bool,
    over: bool = False,
) -> frozenset[str]:
    """Ids of the calls that cannot stand as they are, and neither can their results: given up, lost, or used twice.

    Args:
        shown: units in the order in which they stand; None is a platform line in the user's role.
        served: what units hold, by their sequence; the others hold nothing.
        lone_results: whether results that no shown call stands in front of are among them.
        over: whether the user has spoken behind them all.
    """
    found: set[_Id] = set()
    seen: set[_Id] = set()
    for place, unit in enumerate(shown):
        mine = served.get(unit.sequence) if unit is not None else None
        if mine is None:
            continue
        # No request holds an id twice, and these blocks go back as they came.
        found |= mine.doubled | (mine.named & seen)
        seen |= mine.named
        if lone_results:
            found |= mine.results - seen
        if not mine.calls <= mine.results:
            found |= _abandoned(shown, place, served, over)
    return frozenset(name for _, name in found)


def without_calls(
    units: Sequence[Unit], served: Collection[EventSeq], unsent: Collection[str], *, api: str
) -> Mapping[EventSeq, Unit]:
    """Those units that hold one of these calls or its result, by their sequence, each as it stands instead; counts stay.

    Args:
        api: wire API that the request is for; what another one made is no call there.
    """
    if not unsent:
        return {}
    return {
        unit.sequence: mended
        for unit in units
        if unit.sequence in served and (mended := _without(unit, unsent, api)) is not unit
    }


def without_abandoned(
    units: Sequence[Unit], serving: Collection[EventSeq], *, api: str, over: bool = False
) -> Mapping[EventSeq, Unit]:
    """Those units that cannot stand as they are, by their sequence, each as it stands instead; their counts stay.

    Args:
        units: in the order in which they stand, and nothing between them.
        serving: where units with such calls or results may be.
        api: wire API that the request is for; what another one made is no call there.
        over: whether the user has spoken behind them all.
    """
    served = {unit.sequence: served_in(unit) for unit in units if unit.sequence in serving}
    unsent = unsent_calls(units, served, lone_results=True, over=over)
    return without_calls(units, served, unsent, api=api)


def _abandoned(
    shown: Sequence[Unit | None], place: int, served: Mapping[EventSeq, Served], over: bool
) -> Set[_Id]:
    """Calls of one answer that nobody answers before the user speaks. Answers without calls of the client's are one turn."""
    unit, left = shown[place], frozenset[_Id]()
    if unit is not None:
        left = served[unit.sequence].calls - served[unit.sequence].results
    for following in (shown[behind] for behind in range(place + 1, len(shown))):
        if following is None or following.items[0].kind in _SPOKEN:
            return left
        if unit is None or any(item.kind is ItemKind.TOOL_RESULT for item in unit.items):
            return frozenset()
        left -= served.get(following.sequence, _NOTHING).results
        if not left:
            return frozenset()
        unit = following
    return left if over else frozenset()


def _served(unit: Unit) -> Iterator[ForeignPart]:
    for item in unit.items:
        # What a client's own tool hands on of another conversation is its text.
        for part in item.parts if item.kind is not ItemKind.TOOL_RESULT else ():
            if isinstance(part, ForeignPart) and _is_served(part):
                yield part


def _is_served(part: Part) -> bool:
    return isinstance(part, ForeignPart) and (
        part.kind in {_CALL, _REMOTE_CALL} or part.kind.endswith(_RESULT)
    )


def _without(unit: Unit, unsent: Collection[str], api: str) -> Unit:
    items = [
        item if item.kind is ItemKind.TOOL_RESULT else _noted(item, unsent, api)
        for item in unit.items
    ]
    if all(now is was for now, was in zip(items, unit.items, strict=True)):
        return unit
    return replace(unit, items=tuple(items))


def _noted(item: Item, unsent: Collection[str], api: str) -> Item:
    parts = tuple(_as_sent(part, unsent, api) for part in item.parts)
    return item if parts == item.parts else replace(item, parts=parts)


def _as_sent(part: Part, unsent: Collection[str], api: str) -> Part:
    if not isinstance(part, ForeignPart) or part.api != api or not _is_served(part):
        return part
    return replace(part, api=_NO_API) if _call_id(part) in unsent else part


def _call_id(part: ForeignPart) -> str:
    """Id of the call that a block is, or answers; empty where it names none."""
    name = "tool_use_id" if part.kind.endswith(_RESULT) else "id"
    node: Node | None
    try:
        node = parse(part.raw).get(name) if is_json_object(part.raw) else None
    except LexemeError:
        return ""
    return (node.text() or "") if node is not None else ""
