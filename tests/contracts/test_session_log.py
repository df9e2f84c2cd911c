"""One contract for every session log: the in-memory one and the one in Postgres pass the same tests."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Sequence
from typing import Any

import pytest

from ctxengine.engine.errors import OrphanPair
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import ContentFormat, TextPart, Unit
from ctxengine.engine.log.chain import first_damage
from ctxengine.engine.log.records import GENESIS_HASH
from ctxengine.engine.ports import OpenCall, SessionLog, StaleHead, SumColumn, UnitSums
from ctxengine.engine.trust.levels import Trust
from tests.cast import AT, Call, Scribe, memory_log, postgres_log, sized

ENDED = EventDraft(EventType.RUN_ENDED, Trust.PLATFORM, {"outcome": "completed"})
HOSTILE = [
    "ELF\x00\x01 and the six characters \\u0000 as text",
    "half \ud83d an emoji",
    "\udc80\ud800",
    "",
    "\r\n\t \u2028 {\"a\": 1.0, \"big\": 123456789012345678901234567890}",
    "</untrusted> 👩‍👩‍👧 \x1b[31m",
]  # fmt: skip


@pytest.fixture(params=["memory", "postgres"])
def log(request: pytest.FixtureRequest) -> SessionLog:
    if request.param == "memory":
        return memory_log()
    request.getfixturevalue("db")
    return postgres_log()


def yielded(floor: int, total: int = 1000) -> EventDraft:
    return EventDraft(
        EventType.YIELD_APPLIED,
        Trust.PLATFORM,
        {"class": "history", "floor_sequence": floor, "plan_total": total},
    )


def all_units(log: SessionLog) -> Sequence[Unit]:
    return log.units(EventSeq(0), EventSeq(log.head().sequence + 1))


# --- append -----------------------------------------------------------------------------------------------------------


def test_an_empty_log_ends_at_nothing(log: SessionLog) -> None:
    head = log.head()
    assert (head.sequence, head.hash) == (0, GENESIS_HASH)
    assert (head.content_sequence, head.act_sequence, head.items, head.units) == (0, 0, 0, 0)
    assert list(log.events()) == []
    assert list(log.open_calls()) == []
    assert log.newest(EventType.USER_MESSAGE) is None
    assert log.at(EventSeq(1)) == UnitSums(EventSeq(1), 0, 0, 0, 0, 0)


def test_sequences_have_no_gap_and_each_event_continues_the_chain(log: SessionLog) -> None:
    scribe = Scribe(log)
    scribe.user("5|one")
    log.append([ENDED, ENDED], expected=EventSeq(1), at=AT, key="k-1")
    scribe.user("7|two")
    events = list(log.events())
    assert [event.sequence for event in events] == [1, 2, 3, 4]
    assert events[0].prev_hash == GENESIS_HASH
    assert all(b.prev_hash == a.hash for a, b in itertools.pairwise(events))
    assert first_damage(events, tenant=log.tenant, session=log.session) is None
    assert log.head().hash == events[-1].hash
    assert [event.idempotency_key for event in events] == ["", "k-1", "k-1", ""]
    assert {event.recorded_at for event in events} == {AT}


def test_a_writer_that_looked_too_early_is_turned_away_and_nothing_is_written(
    log: SessionLog,
) -> None:
    scribe = Scribe(log)
    draft = scribe.user_draft("5|late")
    scribe.user("5|first")
    before = log.head()
    with pytest.raises(StaleHead):
        log.append([draft], expected=EventSeq(0), at=AT)
    with pytest.raises(StaleHead):
        log.append([draft], expected=EventSeq(9), at=AT)
    assert log.head() == before
    assert len(log.events()) == 1


def test_a_writer_without_expectations_appends_behind_whatever_is_there(log: SessionLog) -> None:
    Scribe(log).user("5|one")
    log.append([ENDED], expected=None, at=AT)
    assert log.head().sequence == 2


def test_content_and_acts_move_their_own_heads(log: SessionLog) -> None:
    scribe = Scribe(log)
    scribe.user("5|one")
    log.append([ENDED], expected=None, at=AT)
    assert (log.head().content_sequence, log.head().act_sequence) == (1, 0)
    rotated = EventDraft(EventType.EPOCH_ROTATED, Trust.PLATFORM, {"epoch": 2})
    log.append([rotated], expected=None, at=AT)
    assert (log.head().content_sequence, log.head().act_sequence) == (1, 3)


def test_an_append_is_all_or_nothing(log: SessionLog) -> None:
    scribe = Scribe(log)
    scribe.user("5|one")
    before = log.head()
    nobody = OpenCall(EventSeq(1), 7, "read", "x", "x", None)
    batch = [scribe.user_draft("6|two"), scribe.result_draft(nobody, "9|lost", behind=1)]
    with pytest.raises(OrphanPair):
        log.append(batch, expected=None, at=AT)
    assert log.head() == before
    assert len(log.events()) == 1
    assert len(all_units(log)) == 1


def test_events_are_read_from_a_place_on_and_by_type(log: SessionLog) -> None:
    scribe = Scribe(log)
    for number in range(5):
        scribe.user(f"{number + 1}|message")
    assert [event.sequence for event in log.events(after=EventSeq(2))] == [3, 4, 5]
    assert [event.sequence for event in log.events(after=EventSeq(2), limit=2)] == [3, 4]
    assert list(log.events(after=EventSeq(5))) == []
    newest = log.newest(EventType.USER_MESSAGE)
    assert newest is not None
    assert newest.sequence == 5
    assert log.newest(EventType.TOOL_RESULT) is None


@pytest.mark.parametrize(
    ("wanted", "sequences"),
    [
        ({}, [6, 5, 4, 2, 1]),
        ({"limit": 2}, [6, 5]),
        ({"skip": 1}, [5, 4, 2, 1]),
        ({"skip": 3, "limit": 1}, [2]),
        ({"skip": 9, "limit": 2}, []),
        ({"after": EventSeq(4)}, [6, 5]),
        ({"after": EventSeq(2), "skip": 1, "limit": 5}, [5, 4]),
    ],
)
def test_the_newest_of_some_types_are_read_from_any_place_on(
    log: SessionLog, wanted: dict[str, Any], sequences: list[int]
) -> None:
    scribe = Scribe(log)
    scribe.user("1|one")
    scribe.user("1|two")
    log.append([yielded(1), ENDED], expected=None, at=AT)
    scribe.user("1|five")
    scribe.user("1|six")
    types = {EventType.USER_MESSAGE, EventType.RUN_ENDED}
    assert [event.sequence for event in log.latest(types, **wanted)] == sequences


def test_all_yields_are_read_newest_first(log: SessionLog) -> None:
    scribe = Scribe(log)
    scribe.user("5|one")
    log.append([yielded(1), yielded(2)], expected=None, at=AT)
    scribe.user("5|two")
    log.append([yielded(4, 500)], expected=None, at=AT)
    found = [
        (event.payload["floor_sequence"], event.payload["plan_total"])
        for event in log.newest_yields()
    ]
    assert found == [(4, 500), (2, 1000), (1, 1000)]


# --- pairs ------------------------------------------------------------------------------------------------------------


def test_results_join_the_step_of_their_call_in_call_order(log: SessionLog) -> None:
    scribe = Scribe(log)
    scribe.user("5|go")
    scribe.step(Call("w1", "read"), Call("w2", "read"), text="3|both")
    assert [call.wire_call_id for call in log.open_calls()] == ["w1", "w2"]
    scribe.result("w2", "20|second")
    assert [call.wire_call_id for call in log.open_calls()] == ["w1"]
    scribe.result("w1", "10|first")
    assert list(log.open_calls()) == []
    step = all_units(log)[1]
    assert [item.wire_call_id for item in step.items if item.kind == "tool_result"] == ["w1", "w2"]
    assert (step.sequence, step.last_sequence) == (2, 4)
    assert step.open_calls == ()


def test_a_call_is_answered_once(log: SessionLog) -> None:
    scribe = Scribe(log)
    scribe.step(Call("w1", "read"))
    (call,) = log.open_calls()
    scribe.result("w1", "1|done")
    with pytest.raises(OrphanPair):
        log.append([scribe.result_draft(call, "1|again")], expected=None, at=AT)
    assert log.head().sequence == 2


def test_a_call_is_answered_once_within_one_append_too(log: SessionLog) -> None:
    scribe = Scribe(log)
    scribe.step(Call("w1", "read"))
    (call,) = log.open_calls()
    twice = [scribe.result_draft(call, "1|a"), scribe.result_draft(call, "1|b", behind=1)]
    with pytest.raises(OrphanPair):
        log.append(twice, expected=None, at=AT)
    assert log.head().sequence == 1
    assert len(log.open_calls()) == 1


def test_a_result_may_arrive_with_its_call_and_only_for_a_call(log: SessionLog) -> None:
    scribe = Scribe(log)
    step = scribe.step_draft("1|say", [Call("w1", "read")])
    call = OpenCall(EventSeq(1), 1, "read", "w1", "w1", None)
    said = OpenCall(EventSeq(1), 0, "read", "w1", "w1", None)
    with pytest.raises(OrphanPair):
        log.append([step, scribe.result_draft(said, "1|x", behind=1)], expected=None, at=AT)
    log.append([step, scribe.result_draft(call, "1|x", behind=1)], expected=None, at=AT)
    assert list(log.open_calls()) == []
    assert len(all_units(log)) == 1


def test_taken_call_ids_are_those_of_calls(log: SessionLog) -> None:
    scribe = Scribe(log)
    scribe.step(Call("w1", "read"), Call("w2", "read"))
    scribe.result("w1", "1|done")
    assert log.taken_call_ids({"w1", "w2", "w3"}) == {"w1", "w2"}
    assert log.taken_call_ids(set()) == set()


def test_a_reused_id_gets_a_wire_id_of_its_own(log: SessionLog) -> None:
    scribe = Scribe(log)
    scribe.step(Call("look", "read", '{"dir":"/srv"}'))
    scribe.result("look", "1|shop wiki")
    scribe.step(Call("look", "read", '{"dir":"/var"}'))
    (call,) = log.open_calls()
    assert call.call_id == "look"
    assert call.wire_call_id != "look"
    scribe.result(call.wire_call_id, "1|log tmp")
    first, second = all_units(log)
    assert [item.arguments for item in (first.items[0], second.items[0])] == [
        '{"dir":"/srv"}',
        '{"dir":"/var"}',
    ]


# --- sums -------------------------------------------------------------------------------------------------------------


def test_sums_follow_late_results(log: SessionLog) -> None:
    scribe = Scribe(log)
    scribe.user("5|go")
    scribe.step(Call("w1", "read", '{"cost":3}'))
    scribe.user("7|meanwhile")
    before = log.at(EventSeq(3))
    scribe.result("w1", sized(400))
    unit, after = all_units(log)[1], log.at(EventSeq(3))
    assert unit.result_tokens > 400
    assert after.tokens - before.tokens == unit.result_tokens
    assert after.result_tokens == unit.result_tokens
    assert 0 < after.pointer_tokens - before.pointer_tokens < unit.result_tokens
    assert log.head().tokens == sum(unit.tokens for unit in all_units(log))


def test_look_ups_agree_with_adding_up(log: SessionLog) -> None:
    write_a_busy_session(Scribe(log), random.Random(11))
    units, last = all_units(log), log.head().sequence
    head = log.head()
    assert head.units == len(units)
    assert head.items == sum(len(unit.items) for unit in units)
    assert head.tokens == sum(unit.tokens for unit in units)
    assert head.pointer_tokens == sum(unit.pointer_tokens for unit in units)
    assert head.result_tokens == sum(unit.result_tokens for unit in units)
    for sequence in range(1, last + 3):
        assert log.at(EventSeq(sequence)) == added_up(units, sequence)
    for column in SumColumn:
        totals = [column_of(added_up(units, unit.sequence), column) for unit in units]
        wanted = {0, 1, *totals, *(total + 1 for total in totals), totals[-1] + 10_000}
        for at_least in sorted(wanted):
            for below in (1, units[len(units) // 2].sequence, last + 1):
                found = log.first(column, at_least, EventSeq(below))
                assert found == searched(units, column, at_least, below)


def test_units_of_a_range_are_those_that_start_in_it(log: SessionLog) -> None:
    write_a_busy_session(Scribe(log), random.Random(5))
    units = all_units(log)
    starts = [unit.sequence for unit in units]
    for first, below in itertools.combinations(range(0, log.head().sequence + 2, 3), 2):
        found = [unit.sequence for unit in log.units(EventSeq(first), EventSeq(below))]
        assert found == [start for start in starts if first <= start < below]


def write_a_busy_session(scribe: Scribe, chance: random.Random) -> None:
    number = 0
    for _ in range(40):
        waiting = scribe.log.open_calls()
        if waiting and chance.random() < 0.6:
            call = chance.choice(waiting)
            scribe.result(call.wire_call_id, sized(chance.randrange(500)))
        elif chance.random() < 0.4:
            scribe.user(f"{chance.randrange(60)}|asked")
        elif chance.random() < 0.3:
            scribe.log.append([ENDED], expected=None, at=AT)
        else:
            calls = [Call(f"c{number + n}", "read") for n in range(chance.randrange(3))]
            number += len(calls)
            scribe.step(*calls, text=f"{chance.randrange(90)}|said")


def added_up(units: Sequence[Unit], sequence: int) -> UnitSums:
    before = [unit for unit in units if unit.sequence < sequence]
    return UnitSums(
        sequence=EventSeq(sequence),
        index=len(before),
        turns=sum(unit.items[0].kind == "user_message" for unit in before),
        tokens=sum(unit.tokens for unit in before),
        pointer_tokens=sum(unit.pointer_tokens for unit in before),
        result_tokens=sum(unit.result_tokens for unit in before),
    )


def column_of(sums: UnitSums, column: SumColumn) -> int:
    return {
        SumColumn.TOKENS: sums.tokens,
        SumColumn.POINTER: sums.pointer_tokens,
        SumColumn.RESULTS: sums.result_tokens,
        SumColumn.SAVED: sums.saved_tokens,
    }[column]


def searched(units: Sequence[Unit], column: SumColumn, at_least: int, below: int) -> UnitSums:
    for unit in units:
        sums = added_up(units, unit.sequence)
        if unit.sequence < below and column_of(sums, column) >= at_least:
            return sums
    return added_up(units, below)


# --- bodies -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", HOSTILE)
def test_bodies_come_back_as_they_came(log: SessionLog, text: str) -> None:
    scribe = Scribe(log)
    scribe.step(Call("h1", "xxd"))
    scribe.result("h1", text)
    event = log.events()[-1]
    assert event.body is not None
    assert log.body(event.body.id) == text
    assert event.body.length == len(text.encode("utf-8", "surrogatepass"))
    result = all_units(log)[0].items[-1]
    assert "".join(part.text for part in result.parts if isinstance(part, TextPart)) == text
    assert result.bytes_len == event.body.length


def test_arguments_and_their_keys_come_back_as_they_came(log: SessionLog) -> None:
    raw = '{"pat":"\\u0000","k\\u0000":1.0,"b":123456789012345678901,"a":"\\\\u0000"}'
    Scribe(log).step(Call("h1", "xxd", raw))
    assert all_units(log)[0].items[0].arguments == raw


def test_every_content_format_is_read_back(log: SessionLog) -> None:
    scribe = Scribe(log)
    chat = json.dumps({"role": "user", "content": "4|chat"})
    items = json.dumps([{"type": "message", "role": "user", "content": "5|items"}])
    blocks = json.dumps([{"type": "text", "text": "6|blocks"}])
    for format, raw in (
        (ContentFormat.OPENAI_CHAT, chat),
        (ContentFormat.OPENAI_RESPONSES, items),
        (ContentFormat.ANTHROPIC, blocks),
        (ContentFormat.BLOCKS, blocks),
        (ContentFormat.TEXT, "7|text"),
    ):
        scribe.user(raw, format=format)
    assert [unit.tokens for unit in all_units(log)] == [4, 5, 6, 6, 7]
