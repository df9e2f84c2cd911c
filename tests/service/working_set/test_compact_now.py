"""Compacting by hand makes the packet that the next plan wants, and undoing it makes that plan write another (spec 10)."""

from __future__ import annotations

from typing import Any

import pytest

from ctxengine.engine.compaction.packet import PACKET_REASON
from ctxengine.engine.events import EventType
from ctxengine.service.compact import compact
from ctxengine.service.compacted import Compacted
from ctxengine.service.compactions import CompactionLine, compactions_of
from ctxengine.service.compactors import MadeFor, compaction_draft
from ctxengine.service.specs import Compact, ServiceError, UndoCompaction
from ctxengine.service.undo_compaction import undo_compaction
from tests.cast import AT, Runtime
from tests.service.working_set.test_loop import live, lived, opened, plans, verdicts

pytestmark = pytest.mark.django_db


def by_hand(runtime: Runtime, **fields: Any) -> Compacted:
    spec = Compact.model_validate(fields)
    return compact(actor=runtime.actor, session_id=runtime.session, spec=spec)


def one_of_two_stands(runtime: Runtime, older: CompactionLine) -> None:
    """Another packet over the same turns takes the place of the one before."""
    assert older.result is not None
    again = compaction_draft(
        older.result,
        came_with=(),
        made_for=MadeFor(older.event.payload["plan_total"], runtime.model, "", "somebody"),
        run=None,
        owner="",
        reason=PACKET_REASON,
    )
    runtime.log.append([again], expected=None, at=AT)
    listed = compactions_of(actor=runtime.actor, session_id=runtime.session).lines
    assert [line.state for line in listed[:2]] == ["standing", "superseded"]
    assert listed[1].event.sequence == older.event.sequence
    newer = listed[0].event.sequence
    assert listed[1].bar is not None and listed[1].bar.first == newer
    with pytest.raises(ServiceError) as refused:
        undo(runtime, older.event.sequence)
    assert (refused.value.code, refused.value.extra["first"]) == ("compaction_covered", newer)
    undo(runtime, newer)


def undo(runtime: Runtime, event: int) -> None:
    undo_compaction(
        actor=runtime.actor,
        session_id=runtime.session,
        event=event,
        spec=UndoCompaction(note="it misleads"),
    )


def test_the_packet_made_by_hand_is_the_one_the_next_run_uses() -> None:
    runtime = lived(24)
    before = len(runtime.events(EventType.COMPACTED))
    preview = by_hand(runtime, preview=True)
    assert preview.outcome == "previewed" and preview.event is None
    made = by_hand(runtime)
    assert made.outcome == "compacted"
    assert by_hand(runtime).outcome == "unchanged"
    live(runtime, 1, first=24)
    assert plans(runtime)[-1]["packet"] == made.event
    assert len(runtime.events(EventType.COMPACTED)) == before + 1
    listed = compactions_of(actor=runtime.actor, session_id=runtime.session)
    assert {line.state for line in listed.lines} == {"standing"}
    assert listed.lines[0].event.payload["forced_by"] == runtime.actor.label
    one_of_two_stands(runtime, listed.lines[0])
    undo(runtime, made.event or 0)
    live(runtime, 1, first=25)
    assert plans(runtime)[-1]["packet"] != made.event
    assert verdicts(runtime) == {"identical"}


def test_nothing_is_made_where_every_turn_fits_and_no_range_of_ones_own() -> None:
    runtime = opened()
    live(runtime, 2)
    for fields, code in (({}, "nothing_to_compact"), ({"through": 5}, "invalid_target")):
        with pytest.raises(ServiceError) as refused:
            by_hand(runtime, **fields)
        assert refused.value.code == code
