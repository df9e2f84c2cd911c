"""What a model is shown instead of what a wire cannot carry."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.trust.model_view import model_view

any_text = st.text(st.characters(codec=None))


@given(any_text)
def test_every_view_encodes_strictly_and_is_its_own_view(text: str) -> None:
    view = model_view(text)
    view.encode()
    assert model_view(view) == view
    assert len(view) <= 6 * len(text)


@pytest.mark.parametrize(
    ("text", "view"),
    [
        ("ELF\x00\x01", "ELF\u2400\u2401"),
        ("six characters \\u0000", "six characters \\u0000"),
        ("\x1b[31mred\x7f", "\u241b[31mred\u2421"),
        ("a\x85b", "a\\u{85}b"),
        ("left \ud83d right", "left \ufffd right"),
        ("pair \ud83c\udf89 whole", "pair 🎉 whole"),
        ("tab\tline\r\n", "tab\tline\r\n"),
        ("bidi \u202e zero\u200bwidth", "bidi \u202e zero\u200bwidth"),
    ],
)
def test_only_what_cannot_be_carried_is_replaced(text: str, view: str) -> None:
    assert model_view(text) == view


def test_a_clean_text_is_not_copied() -> None:
    text = "clean " * 1000
    assert model_view(text) is text
