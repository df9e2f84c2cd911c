"""A plan records which turns stand as sent, not what they are: its event stays small, older ones still prove (design 4)."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pytest

from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.history import sent_record
from ctxengine.engine.history.sent_record import AsSent, turns_as_sent
from ctxengine.engine.history.working_set_record import (
    PlannedSet,
    SentTurn,
    Stretch,
    planned_of,
    ranges_of,
)
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.trust.levels import Trust
from ctxengine.service.erase import erase_person
from ctxengine.service.specs import PrincipalSpec
from tests.cast import AT
from tests.service.working_set.test_loop import live, opened, plans, sent, verdicts
from tests.working_lab import Exchange, WorkingLab

pytestmark = pytest.mark.django_db

TURN = Exchange("look at the ledger", (("copper lantern\n" * 20,),), "It is done.")


def test_a_plan_takes_as_much_room_at_forty_turns_as_at_ten() -> None:
    lab, sizes = WorkingLab(), {}
    for number in range(1, 41):
        lab.live_planned(TURN, 150_000)
        sizes[number] = len(json.dumps(lab.planned(150_000).model_dump(mode="json")))
    assert lab.planned(150_000).sent_numbers == tuple(range(1, 41))
    assert sizes[40] - sizes[10] < 30


@pytest.mark.parametrize("numbers", [[], [3], [1, 2, 3], [1, 3, 4, 9]])
def test_numbers_and_their_ranges_are_the_same(numbers: list[int]) -> None:
    record = PlannedSet.model_construct(as_sent=ranges_of(numbers), sent=())
    assert [*record.sent_numbers] == numbers


def written_out(record: PlannedSet, turns: Sequence[AsSent]) -> PlannedSet:
    """The plan as events held it when every turn was listed."""
    listed = tuple(
        SentTurn(t.number, t.first, t.last, tuple(int(b.sequence) for b in t.blocks), t.promoted, 1)
        for t in turns
    )
    return record.model_copy(update={"sent": listed, "as_sent": (), "brought": ()})


def test_sessions_whose_plans_list_their_turns_go_on_and_prove(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runtime = opened(principal=PrincipalSpec(id="mara"))
    draft = PlannedSet.draft

    def older(record: PlannedSet, run: str | None) -> Any:
        return draft(written_out(record, turns_as_sent(runtime.log, record)), run)

    with monkeypatch.context() as before:
        before.setattr(PlannedSet, "draft", older)
        live(runtime, 3, lines=20)
    assert [turn[0] for turn in plans(runtime)[-1]["sent"]] == [1, 2]
    live(runtime, 2, first=3, lines=20)
    newest = plans(runtime)[-1]
    assert newest["sent"] == [] and newest["as_sent"] == [[1, 4]] == [[*sent(newest)[::3]]]
    assert [plan["rewritten"] for plan in plans(runtime)] == [0] * 5
    assert verdicts(runtime) == {"identical"}
    erase_person(actor=runtime.actor, principal="mara", note="asked for it")
    assert verdicts(runtime) <= {"identical", "identical_except"}


def test_blocks_of_an_older_plan_are_found_when_many_followed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lab, seen = WorkingLab(), []
    for _ in range(6):
        lab.live_planned(TURN, 150_000)
        seen.append(lab.planned(150_000))
    wanted = [turns_as_sent(lab.log, record) for record in seen]
    assert all(len(turn.blocks) == 1 for turns in wanted for turn in turns)
    monkeypatch.setattr(sent_record, "_EACH", 0)
    monkeypatch.setattr(sent_record, "_BESIDE", 1)
    assert [turns_as_sent(lab.log, record) for record in seen] == wanted


def test_what_stood_in_front_of_a_turn_is_read_back() -> None:
    lab = WorkingLab()
    for _ in range(3):
        lab.live_planned(TURN, 150_000)
    record = lab.planned(150_000)
    stretch = Stretch(1, 1, 4)
    turns = [turn._replace(promoted=(stretch,)) for turn in turns_as_sent(lab.log, record)[1:]]
    read = planned_of(
        record.showing({turn.number: turn.promoted for turn in turns}).model_dump(mode="json")
    )
    assert [*turns_as_sent(lab.log, read)] == turns
    assert read.kept == (stretch, stretch)


def test_cards_are_looked_at_again_where_something_was_erased_and_else_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lab, read = WorkingLab(), list[int]()
    long = TURN._replace(steps=(("copper lantern meadow line\n" * 250,),))
    for _ in range(24):
        lab.live_planned(long, 32_000)
    record = lab.planned(32_000)
    cards = range(record.packet_through + 1, record.full_from)
    assert len(cards) > 8 and not record.gone
    texts = lab.log.texts

    def counting(ids: Collection[str]) -> Mapping[str, str | None]:
        read.append(len(ids))
        return texts(ids)

    monkeypatch.setattr(lab.log, "texts", counting)
    assert lab.planned(32_000).gone == ()
    assert max(read, default=0) < len(cards)
    body = lab.log.every(EventType.TURN_CLOSED)[-cards[0]].body
    assert body is not None
    lab.log.erase(body.id)
    payload = {"bodies": 1, "snapshot": False, "kept": 0, "runs": 0, "erasure": "e"}
    erased = EventDraft(type=EventType.PERSON_ERASED, trust=Trust.PLATFORM, payload=payload)
    lab.log.append([erased], expected=None, at=AT)
    assert lab.planned(32_000).gone == (cards[0],)
    assert lab.planned(32_000).gone == (cards[0],)


def test_a_plan_of_a_turn_that_never_closed_is_not_read() -> None:
    lab = WorkingLab()
    lab.live_planned(TURN, 150_000)
    record = lab.planned(150_000).model_copy(update={"as_sent": ranges_of([7])})
    with pytest.raises(LookupError):
        turns_as_sent(lab.log, record)
    assert lab.log.head().sequence > EventSeq(0)
