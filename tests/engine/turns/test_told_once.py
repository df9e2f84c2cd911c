"""A card that a response shows twice stands in the full record of its turn once (capacity spec 10)."""

from __future__ import annotations

import json

import pytest

from ctxengine.engine.derive import text_of_item
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import ItemKind, Unit
from ctxengine.engine.turns.record import closed_record
from tests.cast import Call, PricedCounter, Scribe, memory_log

CARD = {"label": "Copper", "value": "9100"}
FENCE = "```card metric\n" + json.dumps(CARD) + "\n```"
REORDERED = '```card metric\n{"value": "9100",\n "label": "Copper"}\n```'
OTHER = '```card metric\n{"label":"Zinc","value":"1"}\n```'


def unit_of_response(text: str, *calls: Call) -> Unit:
    """One response as the log holds it."""
    scribe = Scribe(memory_log())
    scribe.user("Show it.")
    scribe.step(*calls, text=text) if calls else scribe.answers(text)
    units = scribe.log.units(EventSeq(1), EventSeq(scribe.log.head().sequence + 1))
    return next(unit for unit in units if unit.items[0].kind is not ItemKind.USER_MESSAGE)


def closed(unit: Unit) -> tuple[str, Unit]:
    """Its prose in the record, and the record."""
    (after,) = closed_record([unit], PricedCounter())
    said = [i for i in after.items if i.kind is ItemKind.ASSISTANT_MESSAGE]
    return "\n".join(text_of_item(item) for item in said), after


@pytest.mark.parametrize(
    ("text", "calls", "left"),
    [
        (f"Here:\n{FENCE}\nDone.", (Call("c", "emit_metric", json.dumps(CARD)),), "Here:\n\nDone."),
        (REORDERED, (Call("c", "emit_metric", json.dumps(CARD)),), ""),
        (f"{FENCE}\nand\n{REORDERED}", (), f"{FENCE}\nand"),
        (f"{FENCE}\n{OTHER}", (), f"{FENCE}\n{OTHER}"),
        (FENCE, (Call("c", "emit_metric", '{"label":"Zinc"}'),), FENCE),
        (FENCE, (Call("c", "emit_metric", "{}"),), FENCE),
        ("```python\nprint()\n```", (Call("c", "read", "{}"),), "```python\nprint()\n```"),
    ],
)
def test_what_repeats_goes_and_all_else_stays(
    text: str, calls: tuple[Call, ...], left: str
) -> None:
    unit = unit_of_response(text, *calls)
    said, after = closed(unit)
    assert said == left
    assert [i.id for i in after.items] == [i.id for i in unit.items]
    assert after.tokens == unit.tokens - sum(i.tokens for i in unit.items) + sum(
        i.tokens for i in after.items
    )
    assert (after.tokens < unit.tokens) == (left != text)
    assert closed(after) == (said, after), "closing again changes nothing"
