"""Names and ids for the wire, and arguments that are always an object."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.wire.names import (
    CALL_ID_LIMIT,
    UNPARSED,
    arguments_view,
    wire_call_id,
    wire_names,
)

ledger_names = st.lists(
    st.text("ab._- ü", min_size=1, max_size=8) | st.text("xy.", min_size=60, max_size=80),
    max_size=12,
    unique=True,
)


def test_forbidden_characters_become_underscores() -> None:
    assert wire_names(["tool.call", "web_fetch"]) == {
        "tool.call": "tool_call",
        "web_fetch": "web_fetch",
    }


def test_a_collision_leaves_the_fitting_name_alone_and_suffixes_the_other() -> None:
    mapped = wire_names(["a.b", "a_b", "a b"])
    assert mapped["a_b"] == "a_b"
    assert re.fullmatch(r"a_b_[0-9a-f]{8}", mapped["a.b"])
    assert mapped["a.b"] != mapped["a b"]


def test_a_long_name_is_cut_and_suffixed() -> None:
    (mapped,) = wire_names(["n" * 70]).values()
    assert re.fullmatch(r"n{55}_[0-9a-f]{8}", mapped)


def test_a_name_that_begins_as_one_api_forbids_gets_an_underscore_in_front() -> None:
    assert wire_names(["1st", "-x", "_2nd"]) == {"1st": "_1st", "-x": "_-x", "_2nd": "_2nd"}
    assert wire_names(["1st", "_1st"])["_1st"] == "_1st"


def test_no_name_at_all_goes_out_as_an_underscore() -> None:
    assert wire_names(["a", ""]) == {"a": "a", "": "_"}
    assert wire_names(["_", ""])["_"] == "_"


@given(ledger_names, st.randoms(use_true_random=False))
def test_wire_names_are_valid_distinct_and_independent_of_order(
    names: list[str], order: object
) -> None:
    mapped = wire_names(names)
    assert set(mapped) == set(names)
    assert len(set(mapped.values())) == len(names)
    assert all(re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}", name) for name in mapped.values())
    assert wire_names(list(reversed(names))) == mapped
    assert wire_names(sorted(names)) == mapped


def test_a_valid_free_id_is_kept() -> None:
    assert wire_call_id("toolu_01A", 3, 0, set()) == "toolu_01A"


@pytest.mark.parametrize(
    "original", [None, "", "look:0", "call_x|fc_y", "x" * 41, "srvtoolu_1", "tå", "taken"]
)
def test_any_other_id_is_made_from_its_place(original: str | None) -> None:
    assert wire_call_id(original, 3, 1, {"taken"}) == "call_3_1"
    assert wire_call_id(original, 3, 1, {"taken", "call_3_1"}) == "call_3_1_2"


@given(st.lists(st.none() | st.text("ab:_", max_size=3) | st.just("call_1_0"), max_size=12))
def test_ids_of_a_session_are_unique_and_fit_every_api(originals: list[str | None]) -> None:
    taken: set[str] = set()
    for ordinal, original in enumerate(originals):
        given_id = wire_call_id(original, 1, ordinal, taken)
        assert given_id not in taken
        assert re.fullmatch(r"[a-zA-Z0-9_-]+", given_id)
        assert len(given_id) <= CALL_ID_LIMIT
        taken.add(given_id)


@pytest.mark.parametrize(
    "raw", ["{}", '{ "b":1.0, "a":12345678901234567890 }', '{"e":"\\ud83c\\udf89 \\\\ud83c"}']
)
def test_an_object_stays_as_it_was_written(raw: str) -> None:
    assert arguments_view(raw) == raw


@pytest.mark.parametrize("raw", ["", " \n"])
def test_no_arguments_are_an_empty_object(raw: str) -> None:
    assert arguments_view(raw) == "{}"


@pytest.mark.parametrize("raw", ['{"path":"n', "[1,2]", "null", '{"a":NaN}', "*** Begin Patch"])
def test_anything_else_is_carried_visibly(raw: str) -> None:
    assert json.loads(arguments_view(raw)) == {UNPARSED: raw}


def test_escaped_half_pairs_become_replacement_characters() -> None:
    assert arguments_view('{"e":"\\uD83C x \\udf89\\ud83c\\udf89"}') == (
        '{"e":"\\ufffd x \\ufffd\\ud83c\\udf89"}'
    )


@given(st.text() | st.text('{}[]":\\ud83', max_size=30))
def test_every_view_is_an_object_that_utf8_carries(raw: str) -> None:
    view = arguments_view(raw)
    value = json.loads(view)
    assert isinstance(value, dict)
    view.encode()
    json.dumps(value, ensure_ascii=False).encode()
