"""A pointer says which tool its content came from, in a name that the plan pins and never in a model's words (design 7.2)."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.compaction.elision import ElidedSpan, named, pointer_line, rest_line, span_of
from ctxengine.engine.compaction.extract import without_pointers
from ctxengine.engine.compaction.model_text import clean_prose
from ctxengine.engine.compaction.parrot import NOTHING_BROUGHT
from ctxengine.engine.compaction.source import SummarySource, source_of, untrusted_of
from ctxengine.engine.ids import EventSeq, ItemId
from ctxengine.engine.items import Item, ItemKind, TextPart, unit_of
from ctxengine.engine.trust.levels import Trust

OLD = '{"item_id":"3.0","kind":"tool.result","trust_level":"EXTERNAL_UNTRUSTED","byte_length":41,"event_id":3}'
OLD_LINE = '[elided] tool.result 3.0 (external_untrusted, 41 bytes) -> recall "3.0"'


def result(sequence: int, name: str | None, text: str = "Rows of a page.") -> Item:
    return Item(
        id=ItemId(EventSeq(sequence), 0),
        kind=ItemKind.TOOL_RESULT,
        trust=Trust.EXTERNAL_UNTRUSTED,
        run=None,
        parts=(TextPart(text),),
        tokens=9,
        digest="",
        bytes_len=len(text.encode()),
        name=name,
        source=f"tool:{name}",
    )


def spans_of(*names: str | None, tools: set[str]) -> tuple[ElidedSpan, ...]:
    items = [result(3 + place, name) for place, name in enumerate(names)]
    return named(map(span_of, items), items, tools)


def read(items: list[Item], tools: set[str]) -> SummarySource:
    units = [unit_of([item]) for item in items]
    return source_of(
        units,
        first=EventSeq(1),
        through=EventSeq(99),
        tokens=100,
        untrusted=untrusted_of(units),
        brought=NOTHING_BROUGHT,
        tools=tools,
    )


def test_a_pointer_names_the_pinned_tool() -> None:
    (span,) = spans_of("web.fetch", tools={"web.fetch"})
    assert pointer_line(span) == (
        '[elided] tool.result 3.0 (external_untrusted, 15 bytes) from web.fetch -> recall "3.0"'
    )


@pytest.mark.parametrize("name", ["web.fetch", "", None, "obey me", "x" * 65, "a\nb", 'x" ->'])
def test_a_name_that_is_not_pinned_or_no_name_is_not_told(name: str | None) -> None:
    tools = {"read"} if name == "web.fetch" else {"read", name or ""}
    (span,) = spans_of(name, tools=tools)
    assert span.tool == "" and "from" not in pointer_line(span)


@pytest.mark.parametrize(
    ("source", "tools", "told"),
    [
        ("tool:notes", {"notes", "tool.call"}, "notes"),
        ("tool:notes", {"tool.call"}, ""),
        ("platform", {"notes", "tool.call"}, "tool.call"),
    ],
    ids=["pinned", "pinned no more", "the platform's own answer"],
)
def test_a_result_of_a_deferred_tool_is_not_named_after_what_its_call_was_wrapped_in(
    source: str, tools: set[str], told: str
) -> None:
    item = replace(result(3, "tool.call"), source=source)
    (span,) = named([span_of(item)], [item], tools)
    assert span.tool == told


@given(
    st.text(max_size=80), st.sets(st.sampled_from(["read", "web.fetch", "a b", "a\n[elided] x"]))
)
def test_nothing_but_one_word_of_the_plan_gets_into_a_pointer(name: str, tools: set[str]) -> None:
    for called in (name, *sorted(tools)):
        (span,) = spans_of(called, tools=tools)
        assert span.tool in {"", *tools} and len(pointer_line(span).split()) in (9, 11)


def test_one_line_for_many_pointers_names_their_tools_the_newest_first_and_counts_the_rest() -> (
    None
):
    names = [f"t{number}" for number in range(8)]
    line = rest_line(spans_of(*names, "t7", None, tools=set(names)))
    assert " from t7, t6, t5, t4, t3, t2 and 2 other tools -> recall" in line
    assert "10 more between 3.0 and 12.0" in line
    assert " from " not in rest_line(spans_of(*names, tools=set()))


def test_a_pointer_that_was_stored_without_a_tool_reads_as_it_did() -> None:
    span = ElidedSpan.model_validate_json(OLD)
    assert pointer_line(span) == OLD_LINE


def test_the_source_of_a_range_names_tools_and_is_the_same_source_whatever_the_plan_pins() -> None:
    items = [result(3, "web.fetch"), result(5, "shell")]
    one, other = read(items, {"web.fetch"}), read(items, set())
    assert [span.tool for span in one.elided] == ["web.fetch", ""]
    assert [span.tool for span in other.elided] == ["", ""]
    assert one.digest == other.digest
    assert one.digest != read([result(3, "web.fetch", "Rows of another page.")], set()).digest


def test_prose_keeps_the_pointers_of_its_source_in_both_forms_and_no_other() -> None:
    spans = (*spans_of("web.fetch", tools={"web.fetch"}), ElidedSpan.model_validate_json(OLD))
    full, plain = pointer_line(spans[0]), pointer_line(spans[0].model_copy(update={"tool": ""}))
    for line in (full, plain, OLD_LINE):
        assert clean_prose(f"It was read:\n{line}\nand kept.", spans).count(line) == 1
    invented = full.replace("web.fetch", "the.platform")
    assert "the.platform" not in clean_prose(f"It was read:\n{invented}", spans)


def test_facts_are_not_looked_for_in_a_pointer_with_the_longest_name() -> None:
    name = "mcp/" + "a.b/" * 15
    (span,) = spans_of(name, tools={name})
    span = span.model_copy(
        update={
            "item_id": "1234567.1234",
            "byte_length": 123_456_789,
            "trust_level": Trust.TRUSTED_CONFIGURATION,
        }
    )
    assert span.tool == name and without_pointers(f"See {pointer_line(span)}.") == "See  ."


def test_a_source_is_plain_data() -> None:
    told = json.loads(read([result(3, "web.fetch")], {"web.fetch"}).model_dump_json())
    assert told["elided"][0]["tool"] == "web.fetch"
