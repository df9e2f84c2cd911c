"""The order of trust."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.trust.levels import Trust, lowest, may_claim, needs_envelope

levels = st.sampled_from(list(Trust))


def test_trust_falls_from_platform_to_external() -> None:
    assert [level.rank for level in Trust] == list(range(6))
    assert [needs_envelope(level) for level in Trust] == [False, False, True, True, True, True]


@given(st.lists(levels, min_size=1))
def test_derived_content_is_trusted_like_its_least_trusted_source(sources: list[Trust]) -> None:
    joined = lowest(sources)
    assert joined in sources
    assert all(joined.rank >= source.rank for source in sources)


def test_content_without_a_source_has_no_trust() -> None:
    with pytest.raises(ValueError, match="empty"):
        lowest([])


@given(levels, levels)
def test_a_claim_may_not_rise_above_what_the_tool_was_pinned_with(
    claimed: Trust, ceiling: Trust
) -> None:
    assert may_claim(claimed, ceiling) == (claimed.rank >= ceiling.rank)
