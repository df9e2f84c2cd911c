"""Which listed tools a query or a reading is about, and what is said of those whose schemas are not given (capacity spec 5)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.control.find import (
    MOST_FOUND,
    MOST_NAMED,
    MOST_NAMED_CHARS,
    matching,
    schemas_text,
    serving,
)
from ctxengine.engine.plan.tool import PinnedTool
from ctxengine.engine.reading import Reading
from ctxengine.service.tool_terms import known_terms


def listed(name: str, **fields: Any) -> PinnedTool:
    known = {
        "wire_name": name,
        "description": "",
        "input_schema": '{"type":"object"}',
        "group": "deferred",
        "tokens": 100,
    }
    return PinnedTool(name=name, **(known | fields))


def names(tools: tuple[PinnedTool, ...]) -> list[str]:
    return [tool.name for tool in tools]


def test_a_query_that_names_a_server_finds_its_tools() -> None:
    tools = [
        listed("tides", server="sea"),
        listed("winds", server="sea"),
        listed("roads", server="map"),
    ]
    assert names(matching(tools, "what can sea do")) == ["tides", "winds"]


def test_small_words_find_no_description_but_a_name() -> None:
    tools = [listed("tides", description="Tells what the tide is."), listed("ask", server="desk")]
    assert names(matching(tools, "what is the thing to ask")) == ["ask"]
    assert names(matching(tools, "what is the tide")) == ["tides"]


def test_the_name_of_a_tool_counts_more_than_the_name_of_its_server() -> None:
    tools = [listed("a", server="harbour"), listed("harbour", server="z"), listed("b")]
    assert names(matching(tools, "the harbour please")) == ["harbour", "a"]


@pytest.mark.parametrize("many", [1, MOST_FOUND, MOST_FOUND + 1, MOST_FOUND + MOST_NAMED + 3])
def test_what_matches_is_given_whole_or_named_or_counted(many: int) -> None:
    tools = [listed(f"lamp.t{n:03}") for n in range(many)]
    found = matching(tools, "lamp")
    assert names(found) == [f"lamp.t{n:03}" for n in range(many)]
    text = schemas_text(found[:MOST_FOUND], caller="call", others=found[MOST_FOUND:], finder="find")
    said = json.loads(text)
    given_whole = [tool["name"] for tool in said["tools"]]
    more = said.get("more", {"names": [], "count": 0})
    assert len(given_whole) + more["count"] == many
    assert given_whole + more["names"] == names(found)[: MOST_FOUND + MOST_NAMED]
    assert ("more" in said) == (many > MOST_FOUND)
    if more["count"]:
        assert more["schemas_by"] == "find"


def test_a_tool_that_serves_more_of_the_reading_comes_before_one_with_an_earlier_name() -> None:
    reading = Reading(domains=("harbour", "web"))
    tools = [
        listed("a", serves=("web",)),
        listed("b", serves=("harbour", "web")),
        listed("c", serves=("shell",)),
    ]
    served = serving(tools, reading, 100)
    assert (names(served.tools), names(served.left)) == (["b"], ["a"])


def test_among_equals_the_words_of_the_directive_and_the_entities_decide_then_the_name() -> None:
    tools = [
        listed("a", serves=("web",)),
        listed("b", serves=("web",), description="Tells the tide."),
        listed("oslo", serves=("web",)),
        listed("d", serves=("web",)),
    ]
    reading = Reading(domains=("web",), entities=("Oslo",))
    served = serving(tools, reading, 1_000, directive="When is high tide there?")
    assert names(served.tools) == ["oslo", "b", "a", "d"]


def test_an_uncertain_reading_is_served_the_orientation_floor() -> None:
    tools = [listed("a", serves=("web",)), listed("b", serves=("filesystem",))]
    served = serving(tools, Reading(domains=("web",), uncertain=True), 1_000)
    assert (names(served.tools), served.left) == (["b"], ())


TOOLS = st.lists(
    st.builds(
        lambda name, serves, server, tokens: listed(
            name, serves=tuple(serves), server=server, tokens=tokens
        ),
        st.from_regex(r"[a-e]{1,3}", fullmatch=True),
        st.sets(st.sampled_from(["web", "shell", "sea", "memory"])),
        st.sampled_from(["", "sea", "map"]),
        st.integers(1, 900),
    ),
    unique_by=lambda tool: tool.name,
    max_size=20,
)


@given(TOOLS, st.integers(0, 2_000), st.integers(1, 60), st.integers(1, 24))
def test_the_names_of_what_is_left_come_from_the_same_room(
    tools: list[PinnedTool], room: int, each: int, most: int
) -> None:
    def naming(left: Sequence[PinnedTool]) -> int:
        return each * min(len(left), most)

    reading = Reading(domains=("web", "sea", "shell"))
    served = serving(tools, reading, room, naming=naming)
    used = sum(tool.tokens for tool in served.tools)
    assert used + naming(served.left) <= room or not served.tools
    beside = serving(tools, reading, room)
    if not beside.left:
        assert served == beside


@pytest.mark.parametrize("name", ["n", "n" * 190, "\u6e2f" * 190], ids=["short", "long", "wide"])
def test_names_of_any_length_take_no_more_than_their_share(name: str) -> None:
    others = [listed(f"{name}{number}") for number in range(MOST_NAMED + 5)]
    said = json.loads(schemas_text((), caller="call", others=others, finder="find"))["more"]
    assert said["count"] == len(others)
    assert said["names"] == [tool.name for tool in others][: len(said["names"])]
    assert sum(len(json.dumps(told)) for told in said["names"]) <= MOST_NAMED_CHARS
    assert said["names"] and (len(name) > 1 or len(said["names"]) == MOST_NAMED)


@given(TOOLS, st.data())
def test_words_that_were_kept_rank_as_those_that_are_worked_out_anew(
    tools: list[PinnedTool], data: st.DataObject
) -> None:
    texts = st.sampled_from(["Tells the tide at sea.", "web abc", "", "a b c de"])
    worded = [t.model_copy(update={"description": data.draw(texts)}) for t in tools]
    reading = Reading(domains=("web", "sea"))
    for query in ("abc tide", "the sea", "de"):
        assert matching(worded, query) == matching(worded, query, terms=known_terms)
        assert serving(worded, reading, 900, directive=query) == serving(
            worded, reading, 900, directive=query, terms=known_terms
        )


@given(TOOLS, st.sets(st.sampled_from(["web", "sea", "shell"])), st.integers(0, 2_000), st.data())
def test_every_tool_that_serves_is_shown_or_said_to_be_left_in_whatever_order_they_come(
    tools: list[PinnedTool], domains: set[str], room: int, data: st.DataObject
) -> None:
    reading = Reading(domains=tuple(sorted(domains)))
    served = serving(tools, reading, room, directive="sea abc")
    again = serving(data.draw(st.permutations(tools)), reading, room, directive="sea abc")
    assert served == again
    able = {tool.name for tool in tools if domains & set(tool.serves)}
    assert {*names(served.tools), *names(served.left)} == able
    assert len(served.tools) + len(served.left) == len(able)
    used = sum(tool.tokens for tool in served.tools)
    assert used <= room
    # Only what does not fit beside better ones is left.
    assert all(tool.tokens > room - used for tool in served.left)
