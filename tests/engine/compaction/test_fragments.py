"""A source in fragments: in order, whole units, within a limit, each line a record of its own."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.compaction.elision import ElidedSpan, pointer_line
from ctxengine.engine.compaction.fragments import Fragment, fragments_of, packed
from ctxengine.engine.compaction.model_text import clean_prose
from ctxengine.engine.compaction.source import CallNote, Statement, SummarySource
from ctxengine.engine.trust.levels import Trust
from tests.cast import PricedCounter

COUNTER = PricedCounter()


def span(sequence: int) -> ElidedSpan:
    return ElidedSpan(
        item_id=f"{sequence}.0",
        kind="tool.result",
        trust_level=Trust.EXTERNAL_UNTRUSTED,
        byte_length=40,
        event_id=sequence,
    )


def a_source(texts: list[str]) -> SummarySource:
    """A user's message, a call with its result, an answer; again and again, one text for each."""
    statements, calls, elided = [], [], []
    for place, text in enumerate(texts):
        sequence = 1 + 3 * place
        if place % 2 == 0:
            statements.append(Statement(item_id=f"{sequence}.0", trust=Trust.USER, text=text))
            continue
        statements.append(Statement(item_id=f"{sequence}.0", trust=Trust.MODEL, text=text))
        calls.append(CallNote(item_id=f"{sequence}.1", name="read", texts=(("path", text[:20]),)))
        elided.append(span(sequence + 1))
    return SummarySource(
        first_sequence=1,
        through_sequence=3 * len(texts) + 1,
        turns=len(texts),
        units=len(texts),
        tokens=10_000,
        statements=tuple(statements),
        calls=tuple(calls),
        elided=tuple(elided),
        source_event_ids=(),
    )


def test_notes_of_the_turns_before_open_the_first_fragment_alone_and_are_no_part_of_the_digest() -> (
    None
):
    plain = a_source(["What is it?" * 20, "It is this." * 20] * 4)
    source = plain.model_copy(update={"earlier": "They have begun."})
    first, *others = fragments_of(source, COUNTER, 200)
    assert json.loads(first.lines[0]) == {"by": "notes", "text": "They have begun."}
    assert others and not any("notes" in fragment.text for fragment in others)
    assert source.model_dump() == plain.model_dump()


def places(fragments: tuple[Fragment, ...]) -> list[int]:
    return [unit.sequence for fragment in fragments for unit in fragment.units]


TEXTS = st.lists(st.text(min_size=1, max_size=300), min_size=1, max_size=12)


@given(TEXTS, st.integers(150, 2_000))
def test_every_unit_stands_in_one_fragment_in_order_and_no_fragment_is_over_the_limit(
    texts: list[str], limit: int
) -> None:
    found = fragments_of(a_source(texts), COUNTER, limit)
    assert places(found) == [1 + 3 * place for place in range(len(texts))]
    assert all(fragment.tokens <= limit for fragment in found)
    assert fragments_of(a_source(texts), COUNTER, limit) == found


@given(TEXTS)
def test_each_line_is_one_record_whatever_is_said_in_it(texts: list[str]) -> None:
    (fragment,) = fragments_of(a_source(texts), COUNTER, 1 << 30)
    records = [json.loads(line) for line in fragment.text.split("\n")]
    assert [r["text"] for r in records if "text" in r] == texts
    assert all("\n" not in line for line in fragment.lines)


def test_a_call_its_words_and_the_pointer_of_its_result_are_never_torn_apart() -> None:
    texts = [f"Text {number} " + "x" * 400 for number in range(8)]
    for limit in (130, 300, 700):
        for fragment in fragments_of(a_source(texts), COUNTER, limit):
            for unit in fragment.units:
                kinds = {key for record in unit.records for key in record}
                assert ("calls" in kinds) == ("elided" in kinds)


def test_a_unit_beyond_every_window_is_shortened_visibly() -> None:
    (fragment,) = fragments_of(a_source(["head " + "y" * 9_000 + " tail"]), COUNTER, 400)
    assert fragment.tokens <= 400
    assert "head" in fragment.text
    assert "tail" in fragment.text
    assert " … " in fragment.text


def test_a_fragment_that_was_too_long_splits_into_smaller_ones_of_the_same_units() -> None:
    (whole,) = fragments_of(a_source(["a" * 400] * 6), COUNTER, 1 << 30)
    smaller = packed(whole.units, COUNTER, whole.tokens // 3)
    assert len(smaller) >= 3
    assert places(smaller) == places((whole,))


def test_prose_keeps_pointers_of_its_source_and_loses_those_it_made_up() -> None:
    line = pointer_line(span(5))
    made_up = pointer_line(span(9)).replace("40 bytes", "7 bytes")
    prose = f"It read a page.\n{line} and went on.\n{made_up}\nThen it stopped.\x00"
    kept = clean_prose(prose, [span(5)])
    assert line in kept
    assert "9.0" not in kept
    assert kept.startswith("It read a page.")
    assert "\x00" not in kept
