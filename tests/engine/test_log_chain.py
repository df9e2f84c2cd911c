"""The hash chain covers every field of every event; erasing a body leaves it whole."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.canonical import CanonicalError, canonical_bytes, sha256_hex
from ctxengine.engine.events import EVENT_RULES, EventDraft, EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import TextPart
from ctxengine.engine.log.chain import commit_body, event_hash, first_damage, hashed_fields
from ctxengine.engine.log.records import EventRecord
from ctxengine.engine.trust.levels import Trust
from tests.cast import AT, Call, Scribe, memory_log


def a_log() -> Scribe:
    scribe = Scribe(memory_log())
    scribe.user("5|go")
    scribe.step(Call("c1", "read"))
    scribe.result("c1", "7|found")
    return scribe


def damage(events: list[EventRecord]) -> tuple[int, str] | None:
    found = first_damage(events, tenant="t", session="s")
    return None if found is None else (found.sequence, found.problem)


CHANGES: dict[str, Any] = {
    "sequence": EventSeq(9),
    "type": EventType.INPUT_RECEIVED,
    "trust": Trust.PLATFORM,
    "payload": {"format": "anthropic"},
    "run": None,
    "body": commit_body("x", b"salt", b"other"),
    "tokens": 99,
    "prev_hash": "a" * 64,
    "hash": "b" * 64,
    "recorded_at": AT + timedelta(microseconds=1),
}


def test_every_field_that_means_anything_is_covered() -> None:
    assert {field.name for field in fields(EventRecord)} == {*CHANGES, "idempotency_key"}


@pytest.mark.parametrize("field", sorted(CHANGES))
def test_a_change_of_any_field_is_seen_at_its_event(field: str) -> None:
    events = list(a_log().log.events())
    events[1] = replace(events[1], **{field: CHANGES[field]})
    found = damage(events)
    assert found is not None
    assert found[0] in {2, 9}


def test_order_and_loss_are_seen() -> None:
    events = list(a_log().log.events())
    assert damage(events) is None
    assert damage([]) is None
    assert damage([events[0], events[2]]) == (2, "event 2 is missing")
    assert damage([events[0], events[2], events[1]]) == (2, "event 2 is missing")


def test_another_session_cannot_borrow_the_chain() -> None:
    events = a_log().log.events()
    assert first_damage(events, tenant="t", session="other") is not None
    assert first_damage(events, tenant="other", session="s") is not None
    assert event_hash(events[0], tenant="t", session="s") == events[0].hash


def test_erasing_a_body_leaves_the_chain_and_a_tombstone() -> None:
    scribe = a_log()
    log = scribe.log
    event = log.events()[2]
    assert event.body is not None
    log.erase(event.body.id)  # type: ignore[attr-defined]
    assert log.body(event.body.id) is None
    assert damage(list(log.events())) is None
    result = log.units(EventSeq(0), EventSeq(9))[1].items[1]
    assert result.parts == (TextPart("[erased]"),)
    assert result.tokens > 0


def test_payloads_carry_no_field_that_the_table_does_not_know() -> None:
    for rule in EVENT_RULES:
        with pytest.raises(ValueError, match="foreign"):
            EventDraft(rule.type, Trust.PLATFORM, {"foreign": 1})
    assert len({rule.type for rule in EVENT_RULES}) == len(EVENT_RULES) == len(EventType)


def test_the_salt_hides_equal_contents() -> None:
    one, two = commit_body("1", b"a" * 16, b"same"), commit_body("2", b"b" * 16, b"same")
    assert one.sha256 != two.sha256
    assert one.length == two.length == 4


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(-1e15, 1e15)
    | st.text()
    | st.just(1 << 4000),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    payload=st.dictionaries(st.text(), values, max_size=5),
    run=st.none() | st.text(),
    names=st.tuples(st.text(), st.text()),
)
def test_the_text_laid_out_by_hand_is_the_canonical_text(
    payload: dict[str, Any], run: str | None, names: tuple[str, str]
) -> None:
    (event, *_) = a_log().log.events()
    tenant, session = names
    changed = replace(event, payload=payload, run=run)
    fields_of = hashed_fields(changed, tenant=tenant, session=session)
    expected = sha256_hex(changed.prev_hash.encode() + canonical_bytes(fields_of))
    assert event_hash(changed, tenant=tenant, session=session) == expected


def test_a_payload_that_no_wire_carries_is_refused_by_name() -> None:
    event = replace(a_log().log.events()[0], payload={"note": "\ud83d"})
    with pytest.raises(CanonicalError, match="D83D"):
        event_hash(event, tenant="t", session="s")
