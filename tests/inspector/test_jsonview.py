"""JSON for reading keeps every lexeme."""

from __future__ import annotations

import json
import re
from html import unescape

from hypothesis import given
from hypothesis import strategies as st

from inspector.jsonview import parts_of, pretty, pretty_text

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
_LEXEME = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[^\s"]+', re.DOTALL)


def lexemes(text: str) -> str:
    return "".join(_LEXEME.findall(text))


@given(JSON)
def test_only_white_space_differs(value: object) -> None:
    raw = json.dumps(value, ensure_ascii=True)
    assert lexemes(pretty_text(raw)) == lexemes(raw)
    assert json.loads(pretty_text(raw)) == value


@given(JSON)
def test_colours_do_not_change_the_text(value: object) -> None:
    raw = json.dumps(value, ensure_ascii=True)
    assert unescape(re.sub(r"<[^>]+>", "", pretty(raw))) == pretty_text(raw)


def test_numbers_escapes_and_repeated_keys_stay_as_written() -> None:
    raw = '{"a":1.0,"b":123456789012345678901234567890,"a":"\\u0041\\/"}'
    shown = pretty_text(raw)
    for lexeme in ("1.0", "123456789012345678901234567890", '"\\u0041\\/"'):
        assert lexeme in shown
    assert shown.count('"a"') == 2


def test_keys_and_values_are_coloured_apart() -> None:
    shown = pretty('{"k":"v","n":1,"t":true}')
    assert '<span class="nt">&quot;k&quot;</span>' in shown
    assert '<span class="s2">&quot;v&quot;</span>' in shown
    assert '<span class="mi">1</span>' in shown
    assert '<span class="kc">true</span>' in shown


def test_what_is_no_json_is_shown_as_text() -> None:
    assert pretty("{not json <b>") == "{not json &lt;b&gt;"


def test_markup_inside_strings_is_inert() -> None:
    assert "<script>" not in pretty('{"a":"</pre><script>alert(1)</script>"}')


def test_a_body_is_cut_at_its_messages() -> None:
    body = (
        '{"model":"m","system":[{"type":"text","text":"s"}],'
        '"messages":[{"role":"user"},{"role":"assistant"}],"max_tokens":5}'
    )
    paths = [part.path for part in parts_of(body)]
    assert paths == ["model", "system.0", "messages.0", "messages.1", "max_tokens"]
    assert parts_of(body)[2].caption == "user"


def test_an_empty_list_is_one_part() -> None:
    assert [part.path for part in parts_of('{"tools":[]}')] == ["tools"]
