"""What grows from a packet that a model wrote: its prose stays as long as facts have room behind it (capacity spec 4)."""

from __future__ import annotations

import pytest

from ctxengine.engine.compaction.packet import FRAME_TOKENS, CompactionResult
from ctxengine.engine.compaction.soundness import Refusal
from ctxengine.engine.compaction.summarise import Range
from ctxengine.engine.history.working_set_packet_text import (
    PacketGround,
    tell_packet,
    write_packet,
)
from ctxengine.engine.history.working_set_packets import StoredPacket
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.turns.closed import turn_costs
from tests.working_lab import Exchange, Teller, WorkingLab, lived

PROSE = "They look through the pages one by one, and nothing was decided so far. " * 4
TURNS = [
    Exchange(f"What does page {number} hold?", (), f"Page {number} holds {number} words. " * 20)
    for number in range(24)
]


@pytest.fixture(scope="module")
def lab() -> WorkingLab:
    return lived(TURNS)


def ground(lab: WorkingLab, through: int, stored: CompactionResult | None = None) -> PacketGround:
    """What a packet over the first turns is made from."""
    costs = turn_costs(lab.log)[:through]
    surroundings = lab.planning(6_000).surroundings
    assert surroundings is not None
    wanted = Range(
        EventSeq(costs[0].first), EventSeq(costs[-1].last + 1), sum(turn.full for turn in costs)
    )
    grown_from = StoredPacket(EventSeq(1), stored) if stored is not None else None
    return PacketGround(lab.log, wanted, grown_from, surroundings, lab.counter)


def made(result: CompactionResult | Refusal) -> CompactionResult:
    assert isinstance(result, CompactionResult), result
    return result


def told(lab: WorkingLab, through: int, stored: CompactionResult | None = None) -> CompactionResult:
    return made(
        tell_packet(ground(lab, through, stored), summariser=Teller(PROSE), budget_tokens=600)
    )


def test_the_prose_stays_and_what_was_said_since_stands_among_the_facts(lab: WorkingLab) -> None:
    stored = told(lab, 8)
    grown = made(write_packet(ground(lab, 16, stored), budget_tokens=600))
    assert (grown.kind, grown.prose_chars) == ("model", stored.prose_chars)
    assert grown.prose_through == stored.replaced_through_sequence
    assert grown.summary.startswith(PROSE.strip())
    assert "Page 15 holds 15 words." in grown.summary
    assert "Page 7 holds 7 words." not in grown.summary.partition("The assistant said")[2]
    further = made(write_packet(ground(lab, 24, grown), budget_tokens=600))
    assert further.prose_through == stored.replaced_through_sequence
    assert further.compactor_version == "teller@1 + ledger-summary@2"


@pytest.mark.parametrize(
    ("writer", "prose", "says"),
    [
        ("ledger-summary@1", False, "ledger-summary@2"),
        ("teller@1", True, "teller@1 + ledger-summary@2"),
        ("teller@1 + ledger-summary@1", True, "teller@1 + ledger-summary@2"),
    ],
)
def test_a_packet_that_grows_from_an_older_writers_says_who_wrote_what_stands_in_it_now(
    lab: WorkingLab, writer: str, prose: bool, says: str
) -> None:
    stored = told(lab, 8) if prose else made(write_packet(ground(lab, 8), budget_tokens=600))
    older = stored.model_dump(mode="json")
    older["compactor_version"] = writer
    for span in older["elided"]:
        del span["tool"]
    read = CompactionResult.model_validate(older)
    assert read.summary == stored.summary
    grown = made(write_packet(ground(lab, 16, read), budget_tokens=600))
    assert grown.compactor_version == says


def test_who_goes_on_from_it_reads_prose_and_facts_and_from_a_told_one_prose(
    lab: WorkingLab,
) -> None:
    stored = told(lab, 8)
    grown = made(write_packet(ground(lab, 16, stored), budget_tokens=600))
    for before, read in ((stored, PROSE.strip()), (grown, grown.summary)):
        teller = Teller(PROSE)
        again = made(tell_packet(ground(lab, 24, before), summariser=teller, budget_tokens=600))
        (source,) = teller.sources
        assert source.earlier == read
        read_from = min(int(said.item_id.split(".")[0]) for said in source.statements)
        assert read_from > before.replaced_through_sequence
        assert again.prose_through == 0 and again.units == 48
        assert again.sections.asked[0].text == "What does page 0 hold?"


@pytest.mark.parametrize("budget", range(190, 620, 30))
def test_a_packet_keeps_to_its_share_and_drops_prose_that_leaves_facts_no_room(
    lab: WorkingLab, budget: int
) -> None:
    stored = told(lab, 8)
    prose = lab.counter.text(PROSE.strip())
    grown = made(write_packet(ground(lab, 16, stored), budget_tokens=budget))
    assert grown.tokens_after <= budget
    kept = prose <= (budget - FRAME_TOKENS) * 0.75
    assert grown.summary.startswith(PROSE.strip()) is kept
    assert grown.kind == ("model" if kept else "deterministic")
    if not kept:
        assert grown.compactor_version == "ledger-summary@2"
