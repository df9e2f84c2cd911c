"""Characters that hide or steer are drawn, and nothing becomes markup."""

from __future__ import annotations

import re
from html import unescape

from hypothesis import given
from hypothesis import strategies as st

from inspector.visible import drawn_spaces, hidden_count, one_line, plain, visible


def test_steering_characters_are_named_instead_of_obeyed() -> None:
    shown = visible("user\u202egnp.exe\x00\u200b\ud800\U000e0041")
    for name in ("RLO", "NUL", "ZWSP", "U+D800", "U+E0041"):
        assert f">{name}</span>" in shown
    assert "\u202e" not in shown
    assert "\x00" not in shown


def test_lines_and_tabs_stay_but_a_carriage_return_is_drawn() -> None:
    assert visible("a\n\tb") == "a\n\tb"
    assert "CR" in visible("a\rb")


def test_a_title_is_one_line() -> None:
    assert one_line("a\nb\u2067c") == "a ⏎ b⟦RLI⟧c"


def test_spaces_are_drawn_where_only_they_changed() -> None:
    assert drawn_spaces("a b\t") == "a·b→"


@given(st.text())
def test_text_never_becomes_markup_and_is_complete(text: str) -> None:
    shown = visible(text)
    tags = re.findall(r"<[^>]*>", shown)
    assert all(re.fullmatch(r'<span class="cc" title="U\+[0-9A-F]{4,6}">|</span>', t) for t in tags)
    assert len(tags) == 2 * hidden_count(text)
    if not tags:
        assert unescape(shown) == text


@given(st.text(alphabet=st.characters(codec="utf-8")))
def test_plain_can_always_be_sent(text: str) -> None:
    plain(text).encode("utf-8")
