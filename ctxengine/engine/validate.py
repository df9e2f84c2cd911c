"""The last look before a request leaves: rows in order, pairs whole, budget kept, provider rules kept (design 6, step 6)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from ctxengine.engine.budget.classes import BudgetClass
from ctxengine.engine.errors import BudgetExceeded, LayoutBreach, OrphanPair, WireInvalid
from ctxengine.engine.items import ForeignPart, ItemKind, Opaque, Unit
from ctxengine.engine.layout import ROWS
from ctxengine.engine.manifest import Budget
from ctxengine.engine.memo import BuildMemo, Region, Single, Tape
from ctxengine.engine.rows import Behind
from ctxengine.engine.stretch import Part, Stretch
from ctxengine.engine.wire.base import (
    Fragment,
    Marker,
    WireApi,
    WireMessage,
    WireParams,
    WirePrefix,
    WireRenderer,
    WireText,
)
from ctxengine.engine.wire.rule import loads
from ctxengine.engine.wire.rules import violations


def check_pairs(units: Iterable[Unit]) -> None:
    """Every call has its result in its own unit, every result its call.

    Raises:
        OrphanPair: names the first call or result that stands alone.
    """
    for unit in units:
        if len(unit.items) == 1 and unit.items[0].kind not in {
            ItemKind.TOOL_CALL,
            ItemKind.TOOL_RESULT,
        }:
            continue
        calls = {item.wire_call_id for item in unit.items if item.kind is ItemKind.TOOL_CALL}
        results = [item for item in unit.items if item.kind is ItemKind.TOOL_RESULT]
        answered = {item.wire_call_id for item in results}
        if answered - calls:
            lone = next(item for item in results if item.wire_call_id not in calls)
            raise OrphanPair(f"Result {lone.id} answers no call of its step.")
        if calls - answered:
            lone = next(
                item
                for item in unit.items
                if item.kind is ItemKind.TOOL_CALL and item.wire_call_id not in answered
            )
            raise OrphanPair(
                f"Call {lone.id} ({lone.name}) has no result yet; report it before assembling."
            )
        if len(results) != len(answered):
            raise OrphanPair(f"A call of the step at {unit.sequence} is answered twice.")


def check_layout(stretches: Sequence[Stretch]) -> None:
    """Everything behind the prefix belongs to region B and stands in the order of the rows.

    Raises:
        LayoutBreach: names the first row out of place.
    """
    before = (0, 0)
    for stretch in stretches:
        if ROWS[stretch.row - 1].region != "B":
            raise LayoutBreach(
                f"Row {stretch.row} belongs to region A and stands behind the prefix; it is pinned with the plan."
            )
        place = (stretch.row, _PLACE_IN_ROW[stretch.part])
        if place < before:
            raise LayoutBreach(
                f"Row {stretch.row} ({stretch.part}) stands behind row {before[0]}; rows never stand out of their order."
            )
        before = place


def check_budget(budget: Budget) -> None:
    """The request as its manifest adds it up fits what is usable, so that the output reserve stays whole.

    Raises:
        BudgetExceeded: it does not, whatever was allocated.
    """
    if budget.request > budget.usable:
        raise BudgetExceeded(
            BudgetClass.HISTORY.value,
            budget.request,
            budget.usable,
            "The rows add up to more than was allocated; compact the session or end the run.",
        )


_PLACE_IN_ROW: dict[Part, int] = {
    "history": 0,
    "kept": 0,
    "block": 1,
    "pinned": 1,
    "active": 2,
    "sent": 2,
    "input": 3,
}
"""Order within row 10; what opens pinned units is a block, and blocks that stay stand between the units they were sent with."""


def check_wire(api: WireApi, body: bytes) -> None:
    """Hold the body against the provider's validity rules.

    Raises:
        WireInvalid: names the rule, the place and what is wrong.
    """
    found = violations(api, body)
    if found:
        first = found[0]
        raise WireInvalid(
            f"{first.message} (rule {first.rule} at {first.path}; {len(found)} in all)"
        )


_SPOKEN = WireMessage("user", (WireText("Go on."),))
_NO_PREFIX = WirePrefix((), ())
_MARKS = ("cache_control", "prompt_cache_breakpoint")


def known_to_be_valid(
    behind: Behind,
    memo: BuildMemo,
    region: Region,
    params: WireParams,
    markers: Sequence[Marker],
    renderer: WireRenderer,
) -> bool:
    """Whether a request keeps the provider's rules, looking only at what no earlier build looked at.

    True is certain; False asks for the whole body to be checked. Rules speak about a message, about neighbours, about the two
    ends, or count over the request. So a unit is looked at once, between two user messages, where neighbours are strictest;
    prefix and ends are looked at by themselves; call ids are compared over all units; and blocks that are not ours, which
    might carry ids and markers of their own, are never vouched for, nor are units that stand out of their order.
    """
    if any(stretch.part == "pinned" for stretch in behind.stretches):
        return False
    return (
        all(_prove_tape(tape, places, memo, params, renderer) for tape, places in behind.taped)
        and all(_prove_single(single, memo, params, renderer) for single in behind.singles)
        and _prove_prefix(region, params, markers, renderer)
        and _ends_hold(behind)
    )


def _prove_tape(
    tape: Tape, places: range, memo: BuildMemo, params: WireParams, renderer: WireRenderer
) -> bool:
    if all(tape.sound[places.start : places.stop]):
        return True
    open_places = [place for place in places if not tape.sound[place]]
    if any(_holds_foreign(tape.units[place]) for place in open_places):
        return False
    fragments = [f for place in open_places for f in tape.fragments_at(place)]
    if not _passes_between(fragments, params, renderer):
        return False
    if not all(memo.claim_calls(tape.units[place]) for place in open_places):
        return False
    for place in open_places:
        tape.sound[place] = True
    return True


def _prove_single(
    single: Single, memo: BuildMemo, params: WireParams, renderer: WireRenderer
) -> bool:
    single.sound = single.sound or (
        not _holds_foreign(single.unit)
        and not any(_is_marked(block) for block in single.opaque)
        and _passes_between(single.rendered.fragments, params, renderer)
        and memo.claim_calls(single.unit)
    )
    return single.sound


def _prove_prefix(
    region: Region, params: WireParams, markers: Sequence[Marker], renderer: WireRenderer
) -> bool:
    on_prefix = tuple(marker for marker in markers if marker.after_fragment is None)
    if (params, on_prefix) in region.checked:
        return True
    body = renderer.body(region.prefix, renderer.fragments(_SPOKEN), params, on_prefix)
    if violations(renderer.api, body):
        return False
    region.checked.add((params, on_prefix))
    return True


def _ends_hold(behind: Behind) -> bool:
    """Whether a request begins and ends with the user and holds a user's message; blocks are plain user texts."""
    fragments = behind.fragments
    if not fragments or {fragments[0].role, fragments[-1].role} - {"", "user"}:
        return False
    return any(
        stretch.part in {"block", "input"} and stretch.fragments for stretch in behind.stretches
    )


def _passes_between(
    fragments: Sequence[Fragment], params: WireParams, renderer: WireRenderer
) -> bool:
    spoken = renderer.fragments(_SPOKEN)
    body = renderer.body(_NO_PREFIX, (*spoken, *fragments, *spoken), params)
    return not violations(renderer.api, body)


def _holds_foreign(unit: Unit) -> bool:
    return any(isinstance(part, ForeignPart) for item in unit.items for part in item.parts)


def _is_marked(block: Opaque) -> bool:
    # Written again, a key shows itself however the block had escaped it.
    text = json.dumps(loads(block.raw.encode()), ensure_ascii=False)
    return any(mark in text for mark in _MARKS)
