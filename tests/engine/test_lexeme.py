"""Reading foreign JSON text without changing it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine import lexeme
from ctxengine.engine.lexeme import (
    MAX_DEPTH,
    LexemeError,
    Node,
    NodeKind,
    is_json_object,
    parse,
    text_of,
)

foreign = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def rebuilt(node: Node) -> Any:
    """Decode by walking nodes instead of by one call."""
    if node.kind is NodeKind.OBJECT:
        return {key: rebuilt(child) for key, child in node.items()}
    if node.kind is NodeKind.ARRAY:
        return [rebuilt(child) for child in node]
    return node.value()


@given(foreign, st.booleans(), st.sampled_from([None, 1, "\t"]))
def test_walking_the_nodes_gives_what_the_standard_reader_gives(
    value: Any, ascii_only: bool, indent: int | str | None
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    node = parse(f" \n{text}\t\r")
    assert node.raw == text
    assert rebuilt(node) == node.value() == json.loads(text)


def test_the_text_of_a_value_is_kept_letter_for_letter() -> None:
    text = '{ "b" : 1.0, "a":[ 1E5,-0 ] ,"s":"\\u00e9\\/", "a": {"z":1, "y" :2} }'
    node = parse(text)
    assert node.raw == text
    assert [(key, child.raw) for key, child in node.items()] == [
        ("b", "1.0"),
        ("a", "[ 1E5,-0 ]"),
        ("s", '"\\u00e9\\/"'),
        ("a", '{"z":1, "y" :2}'),
    ]


def test_of_duplicate_keys_the_last_is_read_and_all_are_kept() -> None:
    node = parse('{"a":1,"b":2,"a":3}')
    last = node.get("a")
    assert last is not None
    assert last.raw == "3"
    assert node.value() == {"a": 3, "b": 2}
    assert len(node) == 3


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("{}", NodeKind.OBJECT),
        ("[]", NodeKind.ARRAY),
        ('""', NodeKind.STRING),
        ("-1.5e3", NodeKind.NUMBER),
        ("NaN", NodeKind.NUMBER),
        ("-Infinity", NodeKind.NUMBER),
        ("true", NodeKind.TRUE),
        ("false", NodeKind.FALSE),
        ("null", NodeKind.NULL),
    ],
)
def test_every_kind_is_told_apart_and_keeps_its_text(text: str, kind: NodeKind) -> None:
    node = parse(text)
    assert (node.kind, node.raw) == (kind, text)


def test_asking_a_value_for_what_it_is_not_gives_nothing() -> None:
    node = parse("[1]")
    assert node.get("a") is None
    assert node.items() == ()
    assert list(parse('{"a":1}')) == []
    assert node.text() is None
    assert parse('"x"').text() == "x"
    assert bool(parse("[]"))


@pytest.mark.parametrize("digits", [5, 4301, 20000])
def test_whole_numbers_of_any_length_are_exact(digits: int) -> None:
    node = parse('{"n": -' + "9" * digits + "}").get("n")
    assert node is not None
    assert node.raw == "-" + "9" * digits
    assert node.value() == 1 - 10**digits


def test_half_an_emoji_is_read_as_it_came() -> None:
    assert parse('"left \\ud83d right"').value() == "left \ud83d right"


def test_a_nul_in_a_key_or_a_value_survives() -> None:
    node = parse('{"a\\u0000":"\\u0000 and \\\\u0000"}')
    assert node.items()[0][0] == "a\x00"
    assert node.items()[0][1].value() == "\x00 and \\u0000"


@pytest.mark.parametrize(
    "text",
    ["", " ", "[", '{"a":1,}', "[1 2]", "01", '"\x00"', '"a\nb"', "'a'", "{1:2}", '{"a"}', "1 2"],
)
def test_a_text_that_is_not_json_is_refused_with_a_position(text: str) -> None:
    with pytest.raises(LexemeError) as caught:
        parse(text)
    assert 0 <= caught.value.position <= len(text)


def test_the_deepest_allowed_nesting_is_read_and_one_more_is_refused() -> None:
    def nested(depth: int) -> str:
        return '[{"a":"[["},' + "[" * (depth - 1) + "]" * (depth - 1) + "]"

    assert parse(nested(MAX_DEPTH)).kind is NodeKind.ARRAY
    with pytest.raises(LexemeError, match=f"deeper than {MAX_DEPTH}"):
        parse(nested(MAX_DEPTH + 1))
    with pytest.raises(LexemeError, match="deeper than"):
        parse("[" * 100_000)


def test_many_brackets_side_by_side_or_inside_strings_are_not_depth() -> None:
    assert len(parse("[" + "[]," * 2000 + '"' + "[" * 2000 + '\\""]')) == 2001


@given(st.text(alphabet='{}[]":,\\u0019 eE+-.tfnN"'))
def test_any_text_is_either_read_or_refused_by_one_error(text: str) -> None:
    try:
        node = parse(text)
    except LexemeError:
        return
    assert node.raw == text.strip(" \t\n\r")


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ('{"a":1.0}', True),
        (' {"a":{"a":1,"a":2}}\n', True),
        ('{"n":' + "1" * 5000 + "}", True),
        ('{"a":"\\ud83d"}', True),
        ('{"a":"\ud83d"}', False),
        ('{"a":NaN}', False),
        ('{"a":-Infinity}', False),
        ("[1]", False),
        ("{} {}", False),
        ("", False),
        ("{'a':1}", False),
        ('{"a":"\x00"}', False),
        ('{"a":' + "[" * 1000 + "]" * 1000 + "}", False),
        ("\ufeff{}", False),
    ],
)
def test_arguments_must_be_one_strict_json_object(text: str, answer: bool) -> None:
    assert is_json_object(text) is answer


def test_bytes_that_are_not_utf8_are_refused_with_the_first_bad_byte() -> None:
    assert text_of("zürich 🎉".encode()) == "zürich 🎉"
    with pytest.raises(LexemeError, match="0xFF") as caught:
        text_of(b"ab\xff")
    assert caught.value.position == 2


def test_a_byte_order_mark_is_named_as_the_problem() -> None:
    with pytest.raises(LexemeError, match="byte order mark"):
        parse("\ufeff{}")


@given(
    st.one_of(
        foreign.map(json.dumps),
        st.text("[]{}\",:1 a\\\n", max_size=30),
        st.sampled_from(
            ['{"a":[1,{"a":2}],"a":[3,[]]}', "[1,]", "[1 2]", '{"a" 1}', "[" * 500 + "]" * 500,
             '{"m":[' + "[" * 398 + "]" * 398 + "]}", '{"m":[' + "[" * 399 + "]" * 399 + "]}",
             "[" + "9" * 4_000 + "]", "[NaN]", "[]]", '{"a":1,}', "[1", '{"a"']
        ),
    )
)  # fmt: skip
def test_a_large_text_read_in_pieces_is_the_same_or_refused_alike(text: str) -> None:
    def read() -> Any:
        try:
            node = parse(text)
        except LexemeError as error:
            return str(error)
        named = [(key, child.raw, child.position) for key, child in node.items()]
        inner = [child.raw for _, child in node.items() for _ in child] or [e.raw for e in node]
        last = [child.raw for key, _ in node.items() if (child := node.get(key)) is not None]
        return node.raw, repr(rebuilt(node)), repr(node.peek()), named, inner, last

    whole = read()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lexeme, "_LARGE", 0)
        assert read() == whole
