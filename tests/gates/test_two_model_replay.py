"""Gate: two-model replay. Small, large, small again: the packet is reused, every turn comes back whole, the bytes are equal.

A packet is a cache and never a boundary (capacity spec 4 and Verification; design 11).
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings

from ctxengine.engine.capacity.profile import Horizon, metadata_profile
from ctxengine.engine.compaction.packet import PACKET_REASON, CompactionResult
from ctxengine.engine.events import EventType
from ctxengine.engine.history.projection import Projection
from ctxengine.engine.history.working_set_ahead import turns_ahead
from ctxengine.engine.history.working_set_packet_text import PacketGround, tell_packet
from ctxengine.engine.history.working_set_packets import first_readable, packet_store
from ctxengine.engine.history.working_set_plan import Planned
from ctxengine.engine.turns.closed import closed_turns
from ctxengine.service.compactors import MadeFor, compaction_draft
from ctxengine.service.configure_session import configure_session
from ctxengine.service.plan_specs import Configure
from ctxengine.service.probe.profiles import keep_profile
from ctxengine.service.prove import replay_row
from ctxengine.service.rebuild import rebuild_request
from ctxengine.service.specs import ModelRef
from tests.cast import AT, PROVIDERS, Runtime
from tests.working_lab import Exchange, Teller, WorkingLab, lived, sessions

pytestmark = pytest.mark.gate

SMALL, MIDDLE, LARGE = 3_000, 5_000, 150_000
TURN = Exchange("What does the next page hold?", (("page of words\n" * 40,),), "It holds words.")


def shape(shown: Projection) -> tuple[object, ...]:
    """Everything of a projection that reaches the wire."""
    return shown.row_nine, tuple(shown.history), tuple(shown.promoted), shown.promoted_line


def packets(lab: WorkingLab) -> int:
    return len(lab.log.every(EventType.COMPACTED))


@settings(max_examples=15, deadline=None)
@given(sessions(24))
def test_small_large_small(turns: Sequence[Exchange]) -> None:
    lab = lived([*turns, *[TURN] * 18])
    lab.planned(SMALL)
    small, made = lab.projected(), packets(lab)
    large_plan = lab.planned(LARGE)
    large = lab.projected()
    count = len(turns) + 18
    assert (large_plan.full_from, large_plan.packet_through) == (1, 0)
    assert large.row_nine == "" and len(large.history) >= count
    lab.planned(SMALL)
    assert shape(lab.projected()) == shape(small)
    assert packets(lab) == made


def test_the_small_model_has_a_packet_and_the_large_one_no_word_of_it() -> None:
    lab = lived([TURN] * 31)
    plan = lab.planned(SMALL)
    assert plan.packet is not None and plan.packet_turn == plan.packet_through
    assert "[summary]" in lab.projected().row_nine
    lab.planned(LARGE)
    assert "[summary]" not in lab.projected().row_nine
    again: Planned = lab.plan_only(SMALL)
    assert again.packet is None and again.record.packet == plan.packet


def test_a_packet_grows_by_whole_batches_from_the_stored_one() -> None:
    lab, ends = WorkingLab(), []
    for _ in range(48):
        lab.live(TURN)
        plan = lab.planned(SMALL)
        if plan.packet_through and plan.packet_through not in ends:
            ends.append(plan.packet_through)
    assert len(ends) > 2
    assert all(end % 8 == 0 for end in ends)
    assert packets(lab) == len(ends)
    newest = lab.log.every(EventType.COMPACTED)[0]
    assert newest.payload["turns"] == ends[-1]


def test_a_packet_that_a_model_wrote_ahead_stands_again_in_the_same_bytes() -> None:
    lab, prose = lived([TURN] * 32), "They went from page to page, and each of them holds words."
    ahead = turns_ahead(lab.planned(MIDDLE), closed_turns(lab.log))
    planning = lab.planning(MIDDLE)
    assert ahead is not None and planning.surroundings is not None
    store = packet_store(lab.log, ())
    ground = PacketGround(
        lab.log,
        ahead.range,
        first_readable(lab.log, store.shorter(ahead.range.first, ahead.range.below - 1)),
        planning.surroundings,
        lab.counter,
    )
    made = tell_packet(ground, summariser=Teller(prose), budget_tokens=ahead.budget_tokens)
    assert isinstance(made, CompactionResult)
    before = shape(lab.projected())
    draft = compaction_draft(
        made,
        came_with=(),
        made_for=MadeFor(0, lab.model, "", "job:1"),
        run="run",
        owner="",
        reason=PACKET_REASON,
        writer={"model": "teller"},
    )
    lab.log.append([draft], expected=None, at=AT)
    lab.planned(MIDDLE)
    assert shape(lab.projected()) == before
    for _ in range(8):
        lab.live(TURN)
    assert lab.planned(MIDDLE).packet_through == ahead.last
    small, count = lab.projected(), packets(lab)
    assert prose in small.row_nine
    lab.planned(LARGE)
    assert "[summary]" not in lab.projected().row_nine
    lab.planned(MIDDLE)
    assert shape(lab.projected()) == shape(small)
    assert packets(lab) == count


@pytest.mark.django_db
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_live_session_between_two_models(provider: str) -> None:
    runtime = Runtime(provider=provider, extra={"engine": "working_set"})
    other = f"{runtime.model}-mini" if provider != "anthropic" else "claude-haiku-4-5"
    small = 6_000 if provider == "anthropic" else 3_500
    for model, horizon in ((runtime.model, small), (other, 150_000)):
        profile = metadata_profile(
            provider=provider, model=model, declared_window=200_000, max_output=8_192
        )
        horizon_of = Horizon(tokens=horizon, confidence=1.0)
        keep_profile(
            tenant_id=runtime.actor.tenant_id,
            profile=profile.model_copy(update={"horizon": horizon_of}),
        )
    for number in range(25):
        asked = f"Question {number}: {'why so, and then what? ' * 20}"
        runtime.turn(asked, f"Because of reason {number}. " * 20)
    made = len(runtime.events(EventType.COMPACTED))
    assert made
    bind(runtime, other)
    runtime.turn("One for the large model.", "Large it is.")
    large = runtime.requests[-1]
    assert large.model == other
    text = rebuild_request(runtime.row, large).body.decode()
    assert "[summary]" not in text and "[turn cards]" not in text
    assert all(f"Question {number}:" in text for number in range(25))
    bind(runtime, "")
    runtime.turn("One for the small model.", "Small it is.")
    assert "[summary]" in rebuild_request(runtime.row, runtime.requests[-1]).body.decode()
    assert len(runtime.events(EventType.COMPACTED)) == made
    assert {replay_row(runtime.row, row).verdict for row in runtime.requests} == {"identical"}


def bind(runtime: Runtime, model: str) -> None:
    """Bind the session to another model from the next run on."""
    ref = ModelRef(provider=runtime.provider, name=model or runtime.model)
    configure_session(actor=runtime.actor, session_id=runtime.session, spec=Configure(model=ref))
