"""Digests follow the shape of a result, cut no line, and always say how to read the whole."""

from __future__ import annotations

import json
import re
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.evidence.digest import FIRST_DIGESTS, Shape, digest_of

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
    log = "".join(f"at frame {n} of the stack\n" for n in range(1_400))
    assert len(log) > 30_000 and shape_of(log, is_error=True) is Shape.OUTPUT
    within = log[:30_000]
    assert digest_of(within, reference="1.0", is_error=True) == (Shape.ERROR, within)


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


def test_a_single_line_shows_both_its_ends() -> None:
    line = "".join(f"<{n}>" for n in range(8_000))
    digest = digest_of(line, reference="3.0")
    assert digest.shape is Shape.OUTPUT
    assert digest.text.startswith("<0><1>") and "<7999>\n[evidence" in digest.text
    between = re.search(
        r" \[\.\.\. ([\d,]+) characters of this one line between \.\.\.\] ", digest.text
    )
    assert between is not None
    shown = len(digest.text) - len(between[0]) - len(digest.text.rpartition("\n")[2]) - 1
    assert shown + int(between[1].replace(",", "")) == len(line)


ESSAY = {
    "wrapped": (
        "The survey found more ferns on the shaded side of every valley\n"
        "than anyone had expected, and fewer mosses. Nobody could say\n"
        "why that was so, for the soil was much the same. A second\n"
        "visit in the autumn was to settle the matter.\n\n"
    ),
    "one line a paragraph": (
        "The survey found more ferns on the shaded side of every valley than anyone had expected, and fewer mosses. "
        "Nobody could say why that was so. “The soil is much the same,” they wrote. A second visit was planned.\n\n"
    ),
    "of another script": "调查发现每个山谷的背阴面都有比任何人预期更多的蕨类植物。没有人能说明为什么会这样。土壤几乎相同。\n\n",
}


@pytest.mark.parametrize("paragraph", ESSAY.values(), ids=ESSAY)
def test_prose_without_headings_shows_its_first_paragraph_and_its_size(paragraph: str) -> None:
    text = paragraph + "Words of a later paragraph that go on and on, and on. " * 90
    digest = digest_of(text, reference="3.0")
    assert digest.shape is Shape.TEXT
    assert digest.text.startswith(paragraph.strip() + "\n[")
    lines, size = text.count("\n") + 1, len(text.encode())
    assert f"\n[{lines:,} lines, {size:,} bytes]\n[evidence:3.0" in digest.text
    assert "later paragraph" not in digest.text


@pytest.mark.parametrize("paragraph", ESSAY.values(), ids=ESSAY)
def test_of_a_huge_paragraph_whole_sentences_stand_and_the_rest_is_counted(paragraph: str) -> None:
    sentences = " ".join(paragraph.split())
    text = sentences * 300
    digest = digest_of(text, reference="3.0")
    assert digest.shape is Shape.TEXT
    shown, _, more = digest.text.partition(" [... the paragraph goes on for ")
    assert text.startswith(shown) and shown[-1] in ".。”" and 1_500 < len(shown) <= 2_000
    assert int(more.split(" ")[0].replace(",", "")) == len(text) - len(shown)
    outline = digest_of(f"# Ferns\n\n{text}", reference="3.0")
    assert outline.text.startswith(f"# Ferns\n{shown} [... the paragraph goes on for ")


def test_a_title_stands_above_the_first_paragraph() -> None:
    text = "Ferns of the valleys\n\n" + ESSAY["wrapped"] * 20
    assert digest_of(text, reference="3.0").text.startswith(
        "Ferns of the valleys\nThe survey found more ferns"
    )


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(f"Reading package {n} of the lists... Done." for n in range(200)),
        "\n".join(
            f"2026-01-02 10:0{n % 10}:11 INFO Started worker {n}. Ready." for n in range(200)
        ),
        "\n".join(f"    return self.value_{n}(of, this)  # It is so." for n in range(200)),
        "\n".join(f"src/part{n}/file.of.something.txt" for n in range(200)),
        "word " * 4_000,
    ],
    ids=["progress", "log", "code", "names", "words"],
)
def test_what_is_no_prose_shows_its_ends(text: str) -> None:
    assert shape_of(text) is Shape.OUTPUT


def test_a_title_that_is_shortened_says_so() -> None:
    titles = [f"Result {n} " + "with a very long title indeed " * 20 for n in range(5)]
    text = "\n\n".join(f"{title}\nhttps://example.org/{n}" for n, title in enumerate(titles))
    digest = digest_of(text, reference="3.0")
    assert digest.shape is Shape.SEARCH
    for title in titles:
        folded = " ".join(title.split())
        assert f"- {folded[:300]} [... {len(folded) - 300} more characters] — https" in digest.text


def test_digests_of_the_first_version_are_what_they_were() -> None:
    first = partial(digest_of, reference="3.0", version=FIRST_DIGESTS)
    error = "at frame\n" * 900
    assert first(error, is_error=True).shape is Shape.OUTPUT
    essay = first(ESSAY["wrapped"] * 40)
    assert essay.shape is Shape.OUTPUT and "lines between ...]" in essay.text
    line = first("x" * 40_000)
    assert line.text.startswith("x" * 2_000 + " [... the line goes on for 38,000 characters ...]\n")
    titled = first("\n".join(f"{'t' * 400} https://example.org/{n}" for n in range(5)))
    assert f"- {'t' * 300} — https" in titled.text
    outline = first("# Ferns\n\n" + "One sentence. " * 400)
    assert "[... the line goes on for 3,599 characters ...]" in outline.text
