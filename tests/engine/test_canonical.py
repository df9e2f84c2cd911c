"""Canonical JSON of what the engine writes itself."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.canonical import (
    CanonicalError,
    canonical_bytes,
    canonical_text,
    digest_of,
    sha256_hex,
)

clean_text = st.text(st.characters(exclude_categories=["Cs"]))
authored = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(-1e15, 1e15) | clean_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(clean_text, inner, max_size=4),
    max_leaves=20,
)


@given(authored)
def test_the_standard_reader_gets_the_same_value_back(value: Any) -> None:
    assert json.loads(canonical_bytes(value)) == value


@given(st.dictionaries(clean_text, st.integers(), min_size=2))
def test_the_order_in_which_keys_were_added_leaves_no_trace(value: dict[str, int]) -> None:
    turned = dict(reversed(value.items()))
    assert canonical_bytes(turned) == canonical_bytes(value)


def test_keys_are_ordered_by_utf16_units_and_not_by_code_points() -> None:
    assert canonical_text({"\ufb33": 1, "\U0001f600": 2, "z": 3}) == '{"z":3,"😀":2,"\ufb33":1}'


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (1.0, "1"),
        (-1.5, "-1.5"),
        (1e21, "1e+21"),
        (1e20, "100000000000000000000"),
        (1e-6, "0.000001"),
        (1e-7, "1e-7"),
        (5e-324, "5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (333333333.33333329, "333333333.3333333"),
        (123e-20, "1.23e-18"),
    ],
)
def test_floats_are_written_as_ecmascript_does(number: float, text: str) -> None:
    assert canonical_text(number) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_no_float_loses_a_bit(number: float) -> None:
    assert float(canonical_text(number)) == number


@pytest.mark.parametrize("digits", [1, 17, 600, 601, 4300, 4301, 9001])
def test_whole_numbers_are_exact_at_any_size(digits: int) -> None:
    assert canonical_text(10**digits) == "1" + "0" * digits
    assert canonical_text(-(10**digits) + 1) == "-" + "9" * digits


def test_sets_are_sorted_and_lists_are_not() -> None:
    assert canonical_text({"s2", "s1"}) == canonical_text(frozenset(("s1", "s2"))) == '["s1","s2"]'
    assert canonical_text(["b", "a"]) == canonical_text(("b", "a")) == '["b","a"]'


def test_control_characters_are_escaped_and_other_text_is_not() -> None:
    assert canonical_text('\x00\b\t\n\f\r\x1f"\\\x7f€/') == (
        '"\\u0000\\b\\t\\n\\f\\r\\u001f\\"\\\\\x7f€/"'
    )


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_is_refused(number: float) -> None:
    with pytest.raises(CanonicalError, match="not finite"):
        canonical_bytes({"x": [number]})


@pytest.mark.parametrize("value", ["\ud83d", {"\udc00": 1}, [["a\ud800b"]]])
def test_a_lone_surrogate_is_refused_with_its_code(value: object) -> None:
    with pytest.raises(CanonicalError, match=r"lone surrogate U\+D"):
        canonical_text(value)


@pytest.mark.parametrize("value", [{1: "a"}, {None: 1}, {"a": {True: 1}}])
def test_keys_that_are_not_strings_are_refused(value: object) -> None:
    with pytest.raises(CanonicalError, match="must be a string"):
        canonical_text(value)


def test_other_types_and_endless_values_are_refused() -> None:
    with pytest.raises(CanonicalError, match="type bytes"):
        canonical_text(b"x")
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(CanonicalError, match="too deeply"):
        canonical_text(endless)


def test_digests_do_not_see_where_chunks_were_cut() -> None:
    assert sha256_hex(b"ab", b"c") == sha256_hex(b"abc")
    assert sha256_hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert digest_of({"a": 1}) == sha256_hex(b'{"a":1}')


def test_the_digest_is_the_same_under_every_hash_seed() -> None:
    program = (
        "from ctxengine.engine.canonical import digest_of;"
        "print(digest_of({'tools': {'zeta', 'alpha', 'mid'}, 'b': 1, 'a': {'y': [2], 'x': 1.5}}))"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "4242")
    }
    assert len(seen) == 1
