"""What covers the history of a `working_set` session, as its compactions tell it: every turn once (design 6 and 9)."""

from __future__ import annotations

from itertools import pairwise

import pytest

from ctxengine.engine.compaction.packet import PACKET_REASON
from ctxengine.engine.events import EventType
from ctxengine.engine.history.working_set_record import PlannedSet
from ctxengine.ledger.models import Role, Tenant
from ctxengine.service.compact import compact
from ctxengine.service.compactions import compactions_of
from ctxengine.service.compactors import MadeFor, compaction_draft
from ctxengine.service.coverage import Covered, planned_coverage
from ctxengine.service.specs import Compact, ResetSession, UndoCompaction
from ctxengine.service.undo_compaction import undo_compaction
from ctxengine.service.working_set.reset import reset_session
from tests.cast import AT, Runtime
from tests.factories import make_person
from tests.inspector.conftest import Cast, client_of
from tests.service.working_set.test_loop import opened
from tests.working_lab import Exchange, WorkingLab


def covered(lab: WorkingLab) -> tuple[Covered, ...]:
    made = lab.log.every(EventType.COMPACTED)
    return planned_coverage(lab.log, [e for e in made if e.payload["reason"] == PACKET_REASON])


def turn(number: int) -> Exchange:
    return Exchange(f"What of part {number}?", (("one line\n" * 40,),), f"Part {number} it is.")


def held(plan: PlannedSet, found: tuple[Covered, ...]) -> None:
    """Each turn that does not stand whole is told of once, by what the plan shows for it."""
    assert all(one.through < other.first for one, other in pairwise(found))
    assert all(tile.through < plan.cut and tile.tokens > 0 for tile in found)
    told = {tile.told_by: tile for tile in found}
    assert len(told) == len(found)
    assert sum(tile.turns for tile in found) == plan.full_from - 1
    cards = plan.full_from - 1 - max(plan.packet_through, plan.behind)
    assert ("cards" in told) == (cards > 0)
    assert ("summary" in told) == (plan.packet is not None)
    if plan.packet is not None:
        assert told["summary"].event == plan.packet
        assert told["summary"].through == plan.packet_last
    assert ("omission" in told) == (plan.told_last > plan.packet_last)


def test_every_turn_that_is_not_whole_is_covered_once() -> None:
    lab, seen = WorkingLab(), set[str]()
    assert covered(lab) == ()
    for number in range(40):
        lab.live(turn(number))
        # A large model sees all of it again; the small one finds its forms once more.
        for horizon in (100_000, 6_000, 9_000) if number % 5 == 4 else (6_000,):
            plan = lab.planned(horizon)
            found = covered(lab)
            held(plan, found)
            seen |= {" ".join(tile.told_by for tile in found)}
    assert seen >= {"", "cards", "summary cards"}


def test_a_packet_made_behind_the_plan_stands_in_its_place_at_once() -> None:
    lab = WorkingLab()
    for number in range(40):
        lab.live(turn(number))
        packet = lab.plan_only(6_000).packet
        if packet is not None and covered(lab) != ():
            made_for = MadeFor(0, lab.model, lab.policy.label, "somebody")
            draft = compaction_draft(
                packet, came_with=(), made_for=made_for, run=None, owner="", reason=PACKET_REASON
            )
            lab.log.append([draft], expected=None, at=AT)
            (first, *rest) = covered(lab)
            assert first[:4] == (
                packet.first_sequence,
                packet.replaced_through_sequence,
                "summary",
                lab.log.head().sequence,
            )
            assert {tile.told_by for tile in rest} <= {"cards"}
        held(lab.planned(6_000), covered(lab))
    assert len(lab.log.every(EventType.COMPACTED)) >= 3


SAID = {"cards": '/turns/">cards</a>', "summary": ">summary</a>", "handoff": "handoff of a reset"}


def on_the_page(runtime: Runtime) -> set[str]:
    """What the page of compactions says that history is covered by; it is what the service tells."""
    tenant = Tenant.objects.get(id=runtime.actor.tenant_id)
    viewer = client_of(make_person(tenant, Role.VIEWER))
    page = Cast(tenant, runtime, viewer, viewer).page(f"sessions/{runtime.session}/compactions/")
    covers = page[page.index("What covers history") : page.index("Marked by hand")]
    found = compactions_of(actor=runtime.actor, session_id=runtime.session).tiles
    assert {kind for kind, words in SAID.items() if words in covers} == {t.told_by for t in found}
    return {tile.told_by for tile in found}


@pytest.mark.django_db
def test_a_packet_by_hand_covers_its_turns_until_undone_and_a_reset_covers_all() -> None:
    runtime, seen = opened(5_500), set[str]()
    for number in range(8):
        # Just short enough to stand in their cards word for word: few turns fill the room.
        asked, said = (f"{what} {number}, " + "of many words, " * 19 for what in ("Why", "So"))
        runtime.turn(asked, f"{said}.\n\n" + "And so on and on. " * 100)
        seen |= on_the_page(runtime) if number in {4, 6} else set()
    assert "cards" in seen
    done = compact(actor=runtime.actor, session_id=runtime.session, spec=Compact())
    assert done.outcome == "compacted" and done.event is not None
    found = compactions_of(actor=runtime.actor, session_id=runtime.session)
    payload = found.lines[0].event.payload
    assert found.as_json()["coverage"][0] == {
        "first": payload["first_sequence"],
        "through": payload["replaced_through_sequence"],
        "told_by": "summary",
        "event": done.event,
    }
    assert "summary" in on_the_page(runtime)
    spec = UndoCompaction(note="it misleads")
    undo_compaction(actor=runtime.actor, session_id=runtime.session, event=done.event, spec=spec)
    again = compactions_of(actor=runtime.actor, session_id=runtime.session)
    assert done.event not in {tile.event for tile in again.tiles}
    reset = ResetSession(note="fresh start")
    reset_session(actor=runtime.actor, session_id=runtime.session, spec=reset)
    runtime.turn("And now?", "Now it is this.")
    (event,) = runtime.events(EventType.SESSION_RESET)
    (handoff,) = compactions_of(actor=runtime.actor, session_id=runtime.session).tiles
    assert (handoff.told_by, handoff.event, handoff.turns) == ("handoff", event.sequence, 8)
    assert on_the_page(runtime) == {"handoff"}
