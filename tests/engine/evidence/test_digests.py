"""Digests follow the shape of a result, cut no line, and always say how to read the whole."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.evidence.digest import Shape, digest_of

FILLER = "\n".join(f"line {n} of something long enough to be worth a digest" for n in range(80))


def shape_of(text: str, **facts: bool) -> Shape:
    return digest_of(text, reference="12.0", **facts).shape


@given(st.text(max_size=3_000), st.booleans())
def test_no_digest_is_longer_than_what_it_stands_for(text: str, failed: bool) -> None:
    digest = digest_of(text, reference="12.0", is_error=failed)
    assert len(digest.text) <= len(text)
    assert digest.shape is Shape.WHOLE or "12.0" in digest.text or digest.text == text


@given(st.text(min_size=1, max_size=50), st.integers(30, 300))
def test_equal_texts_give_equal_digests(line: str, times: int) -> None:
    text = "\n".join([line] * times)
    assert digest_of(text, reference="1.0") == digest_of(text, reference="1.0")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=40),
    lambda inner: (
        st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=12), inner, max_size=6)
    ),
    max_leaves=40,
)


@given(st.dictionaries(st.text(max_size=12), json_values, max_size=8))
def test_any_json_has_a_digest(data: dict[str, object]) -> None:
    digest_of(json.dumps(data, indent=2), reference="1.0")


def test_a_short_result_stands_as_it_is() -> None:
    assert digest_of("ok", reference="1.0") == (Shape.WHOLE, "ok")


def test_the_reference_says_how_long_the_whole_is_and_how_to_read_it() -> None:
    closing = digest_of(FILLER, reference="7.2").text.split("\n")[-1]
    assert closing.startswith(f"[evidence:7.2 — {len(FILLER):,} characters;")
    assert 'recall with id "7.2"' in closing


def test_an_error_stands_verbatim_and_a_log_of_errors_shows_its_ends() -> None:
    error = "Traceback: ValueError: the value is wrong\n" + "at line 4\n" * 20
    assert digest_of(error, reference="1.0", is_error=True) == (Shape.ERROR, error)
    assert shape_of(FILLER * 4, is_error=True) is Shape.OUTPUT


def test_json_shows_keys_lengths_and_the_first_of_each_list_as_it_was_written() -> None:
    rows = [{"id": n, "ratio": 1.0, "big": 10**30 + n, "text": "a  b"} for n in range(200)]
    text = json.dumps({"total": 200, "rows": rows, "meta": {"pages": [1, 2, 3], "next": None}})
    digest = digest_of(text, reference="3.0")
    assert digest.shape is Shape.JSON
    assert "rows: array of 200 elements" in digest.text
    assert json.dumps(rows[0]) in digest.text
    assert json.dumps(rows[1]) not in digest.text
    assert "pages: array of 3 elements" in digest.text and "total: 200" in digest.text


def test_a_huge_first_element_is_shown_as_its_own_skeleton() -> None:
    text = json.dumps([{"name": "x", "body": "y" * 9_000, "tags": ["a", "b"]}] * 3)
    digest = digest_of(text, reference="3.0").text
    assert "[3 elements, the first:]" in digest
    assert "more characters]" in digest and "tags: array of 2 elements" in digest
    assert len(digest) < 1_500


@pytest.mark.parametrize(
    "wrap", [lambda r: r, lambda r: {"results": r}, lambda r: {"web": {"results": r}}]
)
def test_search_results_keep_every_title_and_address_and_no_body(wrap: object) -> None:
    found = [
        {"title": f"Page {n}", "url": f"https://example.org/{n}", "content": "words " * 80}
        for n in range(12)
    ]
    digest = digest_of(json.dumps(wrap(found)), reference="3.0")  # type: ignore[operator]
    assert digest.shape is Shape.SEARCH
    for n in range(12):
        assert f"- Page {n} — https://example.org/{n}" in digest.text
    assert "words words" not in digest.text


def test_search_results_written_as_text_are_known_too() -> None:
    text = "\n\n".join(
        f"Title {n}\nURL: https://example.org/{n}\n" + "body text that goes on " * 20
        for n in range(6)
    )
    digest = digest_of(text, reference="3.0")
    assert digest.shape is Shape.SEARCH
    assert "- Title 4 — https://example.org/4" in digest.text
    assert "goes on" not in digest.text


def test_markdown_shows_headings_and_the_first_paragraph() -> None:
    text = (
        "# Guide\n\nWhat this is about.\n\n## Setup\n\n" + "do this\n\n" * 200 + "Old\n---\n\nend"
    )
    digest = digest_of(text, reference="3.0")
    assert digest.shape is Shape.MARKDOWN
    assert digest.text.startswith("# Guide\n## Setup\nOld\nWhat this is about.\n[")
    assert "lines, " in digest.text


def test_comments_in_a_fenced_block_are_no_headings() -> None:
    text = "# Real\n\n```sh\n# not a heading\n```\n" + "words\n" * 100
    assert "not a heading" not in digest_of(text, reference="3.0").text


def test_command_output_shows_the_exit_code_and_both_ends() -> None:
    digest = digest_of(f"{FILLER}\nProcess exited with code 2", reference="3.0")
    assert digest.shape is Shape.OUTPUT
    assert digest.text.startswith("exit code 2\nline 0 of")
    assert "[... 61 lines between ...]" in digest.text
    assert "line 79 of" in digest.text


def test_an_overlong_line_shows_its_start_and_says_how_long_it_goes_on() -> None:
    digest = digest_of("x" * 50_000 + "\n" + "y\n" * 30, reference="3.0")
    assert "[... the line goes on for 48,000 characters ...]" in digest.text
