"""Gate: no cut. Every tool result of the ledger is verbatim, a digest with its id, or named (capacity spec, Verification).

Named means: its id stands in the packet or on a card, or it lies in a range of events that row 9 names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxengine.engine.derive import text_of_item
from ctxengine.engine.events import EventType
from ctxengine.engine.history.projection import Projection
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import Item, ItemKind
from ctxengine.engine.ports import SessionLog
from tests.working_lab import Exchange, WorkingLab, lived, sessions

pytestmark = pytest.mark.gate

HORIZONS = st.sampled_from([500, 1_500, 2_500, 4_000, 8_000, 200_000])
_ID = re.compile(r"\b(\d+\.\d+)\b")
_BETWEEN = re.compile(r"more between (\d+)\.\d+ and (\d+)\.\d+")
_EVENTS = re.compile(r"not shown \([^)]*events (\d+) to (\d+)\)")


def results(log: SessionLog) -> list[Item]:
    """Every tool result of the ledger's closed turns."""
    newest = log.newest(EventType.TURN_CLOSED)
    last = newest.payload["last"] if newest is not None else 0
    units = log.units(EventSeq(1), EventSeq(last + 1))
    return [item for unit in units for item in unit.items if item.kind is ItemKind.TOOL_RESULT]


def missing(log: SessionLog, shown: Projection) -> list[str]:
    """Ids of results that a projection neither shows nor names."""
    kept = [unit for _, units in shown.kept for unit in units]
    held = {
        str(item.id): item
        for unit in (*kept, *shown.history, *shown.promoted)
        for item in unit.items
        if item.kind is ItemKind.TOOL_RESULT
    }
    named = set(_ID.findall(shown.row_nine))
    ranges = [
        (int(first), int(last))
        for pattern in (_BETWEEN, _EVENTS)
        for first, last in pattern.findall(shown.row_nine)
    ]
    lost = []
    for item in results(log):
        name = str(item.id)
        known = held.get(name)
        whole = known is not None and known.parts == item.parts
        digest = known is not None and name in text_of_item(known)
        ranged = any(first <= item.id.sequence <= last for first, last in ranges)
        if not (whole or digest or name in named or ranged):
            lost.append(name)
    return lost


@settings(max_examples=25, deadline=None)
@given(sessions(24), HORIZONS)
def test_no_result_is_ever_absent_or_cut(turns: Sequence[Exchange], horizon: int) -> None:
    lab = lived(turns)
    lab.planned(horizon)
    assert missing(lab.log, lab.projected()) == []


@settings(max_examples=8, deadline=None)
@given(sessions(24), st.lists(HORIZONS, min_size=2, max_size=4))
def test_nor_when_models_of_other_sizes_planned_before(
    turns: Sequence[Exchange], horizons: list[int]
) -> None:
    lab = WorkingLab()
    for number, turn in enumerate(turns):
        lab.live(turn)
        lab.planned(horizons[number % len(horizons)])
        assert missing(lab.log, lab.projected()) == []


def test_a_projection_that_loses_a_result_is_found_out() -> None:
    lab = lived([Exchange("look", (("a line\n" * 80,),), "done")] * 20)
    lab.planned(2_500)
    shown = lab.projected()
    blind = Projection(history=shown.history, row_nine=_ID.sub("", shown.row_nine))
    assert missing(lab.log, blind)
