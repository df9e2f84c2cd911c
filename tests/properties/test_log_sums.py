"""Whatever is appended in whatever order: the log's sums, units and chain agree with adding everything up again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import ContentFormat, TextPart
from ctxengine.engine.log.chain import first_damage
from ctxengine.engine.ports import SumColumn
from tests.cast import Call, Scribe, memory_log, sized

moves = st.lists(
    st.one_of(
        st.tuples(st.just("user"), st.integers(0, 500)),
        st.tuples(st.just("answer"), st.integers(1, 500)),
        st.tuples(st.just("step"), st.integers(1, 4)),
        st.tuples(st.just("result"), st.integers(0, 900)),
    ),
    max_size=25,
)
any_text = st.text(st.characters(codec=None), max_size=60)


def written(session: list[tuple[str, int]], choose: st.DataObject) -> Scribe:
    scribe = Scribe(memory_log())
    for number, (what, size) in enumerate(session):
        waiting = scribe.log.open_calls()
        if what == "user":
            scribe.user(f"{size}|asked")
        elif what == "answer":
            scribe.answers(f"{size}|said")
        elif what == "step":
            scribe.step(*(Call(f"c{number}.{n}", "read") for n in range(size)))
        elif waiting:
            call = choose.draw(st.sampled_from(list(waiting)))
            scribe.result(call.wire_call_id, sized(size))
    return scribe


@given(moves, st.data())
def test_sums_agree_with_adding_up(session: list[tuple[str, int]], data: st.DataObject) -> None:
    log = written(session, data).log
    end = EventSeq(log.head().sequence + 1)
    units = log.units(EventSeq(0), end)
    for place, unit in enumerate(units):
        before = units[:place]
        sums = log.at(unit.sequence)
        assert sums.index == place
        assert sums.tokens == sum(other.tokens for other in before)
        assert sums.pointer_tokens == sum(other.pointer_tokens for other in before)
        assert sums.result_tokens == sum(other.result_tokens for other in before)
        assert 0 <= unit.pointer_tokens <= unit.tokens
        assert unit.result_tokens <= unit.tokens
    head = log.head()
    assert (head.units, head.items) == (len(units), sum(len(unit.items) for unit in units))
    assert head.tokens == sum(unit.tokens for unit in units) == log.at(end).tokens
    assert head.pointer_tokens == sum(unit.pointer_tokens for unit in units)
    assert first_damage(log.events(), tenant=log.tenant, session=log.session) is None


@given(moves, st.data(), st.sampled_from(list(SumColumn)), st.integers(0, 4_000))
def test_a_look_up_is_the_first_place_that_reaches_the_sum(
    session: list[tuple[str, int]], data: st.DataObject, column: SumColumn, wanted: int
) -> None:
    log = written(session, data).log
    end = EventSeq(log.head().sequence + 1)
    below = data.draw(st.integers(0, end).map(EventSeq))
    field = column.value.removeprefix("before_")
    places = [log.at(unit.sequence) for unit in log.units(EventSeq(0), below)]
    reached = [sums for sums in places if getattr(sums, field) >= wanted]
    found = log.first(column, wanted, below)
    assert found == (reached[0] if reached else log.at(below))


@given(st.lists(any_text, min_size=1, max_size=5))
def test_any_text_comes_back_as_it_came(texts: list[str]) -> None:
    scribe = Scribe(memory_log())
    for text in texts:
        scribe.user(text, format=ContentFormat.TEXT)
    units = scribe.log.units(EventSeq(0), EventSeq(99))
    shown = [
        "".join(part.text for part in unit.items[0].parts if isinstance(part, TextPart))
        for unit in units
    ]
    assert shown == texts
    bodies = [scribe.log.body(event.body.id) for event in scribe.log.events() if event.body]
    assert bodies == texts
