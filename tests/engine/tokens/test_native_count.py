"""The native counter gives the reference's counts, or is not used."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.tokens import counters, native_count
from ctxengine.engine.tokens.counters import Encoding, count, reference_count
from ctxengine.engine.tokens.native_count import SAMPLES, Sample, native_counter

pytest.importorskip("toktok", reason="the native counter is not installed here")

encodings = st.sampled_from(list(Encoding))
awkward = st.text(
    st.one_of(
        st.characters(codec=None),
        st.sampled_from(" \t\n\r'\u2019\ud83d\ude00\u0301\u200d\u3000aA09_"),
    ),
    max_size=300,
)
near_words = st.lists(
    st.sampled_from(
        ["don't", " THE", "the", "\n\n", "  ", "123", "4567", "<|endoftext|>", "é", "\ud83d"]
    )
).map("".join)


@given(st.one_of(awkward, near_words), encodings)
def test_every_text_counts_as_the_reference_counts_it(text: str, encoding: Encoding) -> None:
    native = native_counter(encoding)
    assert native is not None
    assert native(text) == reference_count(text, encoding)


@pytest.mark.parametrize("encoding", list(Encoding))
def test_the_samples_carry_the_counts_of_the_reference(encoding: Encoding) -> None:
    for sample in SAMPLES:
        assert getattr(sample, encoding) == reference_count(sample.text, encoding), sample


@pytest.fixture
def _forgotten() -> Iterator[None]:
    counters._counter.cache_clear()
    yield
    counters._counter.cache_clear()


@pytest.mark.usefixtures("_forgotten")
def test_a_native_counter_that_differs_on_one_sample_is_not_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(native_count, "SAMPLES", (Sample("x", 2, 2),))
    assert native_counter("o200k_base") is None
    assert count("hello world", "o200k_base") == 2
