"""Cuts that tear no character."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.trust.truncation import truncate_text

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
NORWAY = "\U0001f1f3\U0001f1f4"
clusters = st.sampled_from(
    [
        "a",
        " ",
        "\n",
        "\r\n",
        "é",
        "e\u0301",
        "字",
        "🎉",
        FAMILY,
        "👍🏽",
        "❤\ufe0f",
        "가",
        "\u1100\u1161",
    ]
)


@given(st.lists(clusters, max_size=30), st.integers(0, 80))
def test_a_cut_keeps_whole_clusters_and_as_many_as_fit(parts: list[str], limit: int) -> None:
    kept = truncate_text("".join(parts), limit)
    fitting = ""
    for part in parts:
        if len(fitting) + len(part) > limit:
            break
        fitting += part
    assert kept == fitting


@given(st.integers(0, 12), st.integers(0, 30))
def test_flags_are_whole_or_absent(flags: int, limit: int) -> None:
    assert truncate_text(NORWAY * flags, limit) == NORWAY * min(flags, limit // 2)


@given(st.text(), st.integers(0, 50))
def test_the_result_is_a_head_within_the_limit(text: str, limit: int) -> None:
    kept = truncate_text(text, limit)
    assert text.startswith(kept)
    assert len(kept) <= limit


def test_an_endless_cluster_is_cut_and_not_lost() -> None:
    assert len(truncate_text("a" + "\u0301" * 5000, 2000)) == 2000


def test_a_surrogate_pair_is_not_split() -> None:
    assert truncate_text("a\ud83c\udf89", 2) == "a"


def test_a_negative_limit_is_refused() -> None:
    with pytest.raises(ValueError, match="-1"):
        truncate_text("a", -1)
