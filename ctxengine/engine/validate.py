"""The last look before a request leaves: pairs whole, provider rules kept (design 6, step 6)."""

from __future__ import annotations

from collections.abc import Iterable

from ctxengine.engine.errors import OrphanPair, WireInvalid
from ctxengine.engine.items import ItemKind, Unit
from ctxengine.engine.wire.base import WireApi
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
