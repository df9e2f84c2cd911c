"""The query box: words, terms and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.querylang import QueryError, agreed, over, read_query

FIELDS = ("engine", "model", "epoch")


def test_words_and_terms_are_told_apart() -> None:
    query = read_query('flaky "two words" engine:suffix model:"a b"', FIELDS)
    assert query.words == ("flaky", "two words")
    assert dict(query.terms) == {"engine": "suffix", "model": "a b"}


def test_an_unknown_field_is_refused_by_name() -> None:
    with pytest.raises(
        QueryError, match=r"no field colour: here\. Known are engine:, model:, epoch:"
    ):
        read_query("colour:red", FIELDS)


def test_a_field_stands_once() -> None:
    with pytest.raises(QueryError, match="stands twice"):
        read_query("engine:a engine:b", FIELDS)


@pytest.mark.parametrize(
    "text",
    [
        "-engine:a",
        "Engine:a",
        "ENGINE:a",
        "engine:",
        "engine: a",
        'engine:""',
        '-model:"a b"',
        "-Epoch:",
    ],
)
@pytest.mark.parametrize("quotes", [False, True])
def test_a_known_field_in_an_odd_spelling_never_passes_for_a_word(text: str, quotes: bool) -> None:
    with pytest.raises(QueryError, match=r"(engine|model|epoch):"):
        read_query(f"word {text}", FIELDS, quotes=quotes)


def test_what_only_looks_like_a_term_is_a_word() -> None:
    words = ("-left", "Note:this", "12:30", "a-engine:b")
    assert read_query(" ".join(words), FIELDS).words == words


def test_box_and_select_may_agree_but_never_differ() -> None:
    assert agreed({"engine": "a"}, "engine", "") == "a"
    assert agreed({}, "engine", "b") == "b"
    assert agreed({"engine": "a"}, "engine", "a") == "a"
    with pytest.raises(QueryError, match="engine: is a in the box, but b is chosen"):
        agreed({"engine": "a"}, "engine", "b")


def test_an_address_is_a_word() -> None:
    assert read_query("https://example.org", FIELDS).words == ("https://example.org",)


def test_numbers_are_compared() -> None:
    assert over({"epoch": ">1"}, "epoch") == 1
    assert over({"epoch": "2"}, "epoch") == 1
    assert over({}, "epoch") is None
    with pytest.raises(QueryError, match="Write epoch:>1"):
        over({"epoch": "many"}, "epoch")


@given(st.text())
def test_any_text_is_read_or_refused_with_a_message(text: str) -> None:
    try:
        read_query(text, FIELDS)
    except QueryError as error:
        assert str(error)
