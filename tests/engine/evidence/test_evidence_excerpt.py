"""Excerpts keep both ends, tear no character, and leave the content itself alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.evidence.ends import both_ends
from ctxengine.engine.evidence.excerpt import excerpt, limit_for, shortened
from ctxengine.engine.evidence.inline import InlineLimit, InlineUnit
from ctxengine.engine.ids import EventSeq, ItemId
from ctxengine.engine.items import ImagePart, Item, ItemKind, TextPart
from ctxengine.engine.trust.levels import Trust


def size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


@given(
    st.text(st.characters(), min_size=0, max_size=400).map(lambda text: text * 30),
    st.integers(1_000, 4_000),
)
def test_an_excerpt_is_both_ends_within_the_limit(text: str, limit: int) -> None:
    ends = excerpt(text, limit)
    if size(text) <= limit:
        assert ends is None
        return
    assert ends is not None
    assert text.startswith(ends.head)
    assert text.endswith(ends.tail)
    assert ends.left_out_bytes == size(text) - size(ends.head) - size(ends.tail) > 0
    # The note takes its share; a cluster at the tail's edge may add a little.
    assert size(ends.text("12.0")) <= limit + 1_100
    assert excerpt(text, limit) == ends


def test_no_character_is_torn() -> None:
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    ends = excerpt(family * 400, 1_000)
    assert ends is not None
    assert ends.head.replace(family, "") == ""
    assert ends.tail.replace(family, "") == ""


def test_an_excerpt_names_the_item_and_how_much_is_missing() -> None:
    text = shortened([TextPart("a" * 5_000)], 1_000, "12.0")
    assert text is not None
    assert isinstance(text[0], TextPart)
    assert 'id "12.0"' in text[0].text
    assert "bytes left out" in text[0].text


def test_images_stay_beside_the_excerpt_of_the_text() -> None:
    image = ImagePart(media_type="image/png", base64="AAAA")
    parts = shortened([TextPart("a" * 3_000), image, TextPart("b" * 3_000)], 1_000, "1.0")
    assert parts is not None
    assert parts[1:] == (image,)


def test_a_limit_that_leaves_no_room_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1,000 bytes"):
        excerpt("x" * 2_000, 999)


def result(bytes_len: int, *, kept: int = 0, source: str = "tool:read") -> Item:
    return Item(
        id=ItemId(EventSeq(3), 0),
        kind=ItemKind.TOOL_RESULT,
        trust=Trust.EXTERNAL_UNTRUSTED,
        run=None,
        parts=(TextPart("x"),),
        tokens=1,
        digest="",
        bytes_len=bytes_len,
        source=source,
        excerpt_limit=kept,
    )


@pytest.mark.parametrize(
    ("item", "policy", "limit"),
    [
        (result(500), 1_000, None),
        (result(5_000), 1_000, 1_000),
        (result(5_000, kept=2_000), 3_000, 2_000),
        (result(5_000, kept=2_000), 1_500, 1_500),
        (result(5_000, kept=2_000), None, 2_000),
        (result(5_000), None, None),
        (result(5_000, source="recall:tool:read"), 1_000, None),
    ],
)
def test_a_result_keeps_the_limit_it_was_counted_under_unless_the_policy_allows_less(
    item: Item, policy: int | None, limit: int | None
) -> None:
    assert limit_for(item, InlineLimit(policy)) == limit


@given(
    st.text(st.characters(), min_size=1, max_size=60),
    st.integers(1, 200),
    st.integers(1_000, 4_000),
)
def test_a_limit_in_characters_counts_characters_of_any_script(
    line: str, times: int, limit: int
) -> None:
    text = "\n".join([line] * times)
    shown = shortened([TextPart(text)], limit, "12.0", unit=InlineUnit.CHARACTERS)
    assert (shown is None) == (len(text) <= limit)
    item = replace(result(size(text)), parts=(TextPart(text),))
    characters = InlineLimit(limit, InlineUnit.CHARACTERS)
    assert limit_for(item, characters) == (None if shown is None else limit)


@given(st.text(st.characters(), min_size=1, max_size=60), st.integers(1, 200))
def test_windows_under_a_limit_in_bytes_are_those_of_earlier_requests(
    line: str, times: int
) -> None:
    text = "\n".join([line] * times)
    shown = shortened([TextPart(text)], 1_000, "12.0", whole_lines=True)
    if size(text) <= 1_000:
        assert shown is None
        return
    ends = both_ends(text, len(text) * 1_000 // size(text), reference='id "12.0"')
    assert shown == (TextPart(ends.text),)
