"""A packet that an operator took back stays away, in the open run and later, until one is made by hand (design 8)."""

from __future__ import annotations

import pytest

from ctxengine.engine.events import EventType
from ctxengine.ledger.models import Event
from ctxengine.service.compact import compact
from ctxengine.service.specs import Compact, UndoCompaction
from ctxengine.service.undo_compaction import undo_compaction
from tests.cast import Call, Runtime
from tests.service.working_set.test_loop import live, lived, plans, verdicts

pytestmark = pytest.mark.django_db


def packets(runtime: Runtime) -> list[Event]:
    return runtime.events(EventType.COMPACTED)


def undo(runtime: Runtime, event: int) -> None:
    spec = UndoCompaction(note="it tells it wrong")
    undo_compaction(actor=runtime.actor, session_id=runtime.session, event=event, spec=spec)


def with_packet(runtime: Runtime) -> int:
    """An open run that shows a packet; gives the packet's event."""
    runtime.ask("And what now?")
    runtime.assemble()
    packet = plans(runtime)[-1]["packet"]
    assert packet is not None
    runtime.say("", Call("k", "read"))
    return int(packet)


def shown_packets(runtime: Runtime) -> set[int]:
    spans = runtime.requests[-1].manifest["spans"]
    return {
        s["numbers"]["event"]
        for s in spans
        if s["reason"] == "in_packet" and "event" in s["numbers"]
    }


def test_the_open_run_shows_it_no_longer_and_the_next_makes_no_other() -> None:
    runtime = lived(40)
    packet = with_packet(runtime)
    through = packets(runtime)[-1].payload["replaced_through_sequence"]
    assert packet in shown_packets(runtime)
    made = len(packets(runtime))
    undo(runtime, packet)
    runtime.results(("k", "nothing there"))
    runtime.assemble()
    assert packet not in shown_packets(runtime)
    plan = plans(runtime)[-1]
    assert (plan["reason"], plan["refused"]) == ("by_hand", "taken_back")
    runtime.say("Nothing more to tell, it seems to me.")
    live(runtime, 12, first=40)
    assert len(packets(runtime)) == made
    assert all(p["packet_last"] < through for p in plans(runtime)[-12:])
    assert verdicts(runtime) == {"identical"}


def test_one_made_by_hand_afterwards_stands_and_grows() -> None:
    runtime = lived(40)
    packet = with_packet(runtime)
    undo(runtime, packet)
    runtime.results(("k", "nothing there"))
    runtime.assemble()
    runtime.say("Nothing more to tell, it seems to me.")
    done = compact(actor=runtime.actor, session_id=runtime.session, spec=Compact(note="anew"))
    assert done.outcome == "compacted"
    live(runtime, 16, first=40)
    plan = plans(runtime)[-1]
    assert plan["packet"] >= done.event and plan["refused"] == ""
    assert plan["packet_turn"] == plan["packet_through"]
    assert verdicts(runtime) == {"identical"}
