"""Figures keep their meaning when they are written."""

from __future__ import annotations

import pytest

from inspector.figures import number, percent, share, signed, size


def test_thousands_are_grouped_and_nothing_is_not_nought() -> None:
    assert number(1_234_567) == "1,234,567"
    assert number(0) == "0"
    assert number(None) == "–"


@pytest.mark.parametrize(("value", "text"), [(5, "+5"), (-1_200, "−1,200"), (0, "±0"), (None, "–")])
def test_differences_carry_their_sign(value: int | None, text: str) -> None:
    assert signed(value) == text


def test_almost_all_is_never_written_as_all() -> None:
    assert share(430_464, 430_798) == "99.9 %"
    assert share(99_999, 100_000) == "99.999 %"
    assert share(1, 1) == "100.0 %"


def test_a_share_of_nothing_is_a_dash() -> None:
    assert share(0, 0) == "–"
    assert share(None, 10) == "–"


def test_small_sizes_are_exact() -> None:
    assert size(9_999) == "9,999 bytes"
    assert size(41_000) == "41 kB"


def test_a_ratio_that_rounds_to_nought_has_no_sign() -> None:
    assert percent(-0.0001) == "±0.0 %"
    assert percent(0.046) == "+4.6 %"
