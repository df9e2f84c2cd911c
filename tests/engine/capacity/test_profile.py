"""Profiles: what makes one stale, and what receipts and failures may and may not do to one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.capacity.feedback import (
    with_failed_instruction,
    with_receipt,
    with_refusal,
)
from ctxengine.engine.capacity.profile import (
    LADDER_VERSION,
    CapacityProfile,
    Horizon,
    Provenance,
    Stale,
    metadata_profile,
    why_stale,
    with_metadata,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
AT = NOW.isoformat()


def probed(**changes: object) -> CapacityProfile:
    made = Provenance(source="probe", probed_at=AT, metadata_digest="d1")
    base = metadata_profile(provider="p", model="m", declared_window=128_000, max_output=4_096)
    return base.model_copy(
        update={"horizon": Horizon(tokens=20_000, confidence=0.8), "provenance": made, **changes}
    )


def test_a_profile_from_metadata_alone_trusts_the_window_little_and_wants_a_probe() -> None:
    profile = metadata_profile(provider="p", model="m", declared_window=9_000, max_output=512)
    assert (profile.usable, profile.horizon.confidence) == (9_000, 0.3)
    assert why_stale(profile, now=NOW, local=False) is Stale.NEVER_PROBED


def test_a_day_is_fresh_for_a_local_model_and_a_week_for_a_hosted_one() -> None:
    for local, days in ((True, 1), (False, 7)):
        within, beyond = timedelta(days=days), timedelta(days=days, seconds=1)
        assert why_stale(probed(), now=NOW + within, local=local) is None
        assert why_stale(probed(), now=NOW + beyond, local=local) is Stale.OLD


def test_what_an_earlier_ladder_measured_is_measured_again() -> None:
    def by(ladder: str) -> CapacityProfile:
        made = probed().provenance.model_copy(update={"ladder": ladder})
        return probed(provenance=made)

    assert why_stale(by(LADDER_VERSION), now=NOW, local=True) is None
    assert why_stale(by("ladder@1"), now=NOW, local=True) is Stale.OTHER_LADDER


def test_another_model_behind_the_same_name_makes_a_profile_stale() -> None:
    def told(digest: str, window: int = 128_000) -> CapacityProfile:
        return with_metadata(
            probed(), declared_window=window, max_output=512, metadata_digest=digest, at=AT
        )

    assert told("d1") == told("") == probed()
    other = told("d2", 9_000)
    assert why_stale(other, now=NOW, local=True) is Stale.CHANGED
    assert (other.declared_window, other.output_reserve) == (9_000, 512)
    assert (other.horizon.tokens, other.horizon.confidence) == (9_000, 0.3)
    assert told("d2", 256_000).horizon.tokens == 20_000, "a larger window is no larger horizon"


@given(st.lists(st.integers(1, 200_000), max_size=20))
def test_feedback_never_widens_a_horizon(sizes: list[int]) -> None:
    profile = probed()
    for size in sizes:
        after = with_failed_instruction(profile, request_tokens=size, at=AT)
        assert after.horizon.tokens <= profile.horizon.tokens
        assert after.horizon.confidence <= max(0.6, profile.horizon.confidence)
        profile = after


def test_a_failure_far_below_the_horizon_says_nothing_about_it() -> None:
    assert with_failed_instruction(probed(), request_tokens=16_000, at=AT) == probed()


def test_a_failure_near_the_horizon_lowers_it_and_asks_for_a_new_probe() -> None:
    after = with_failed_instruction(probed(), request_tokens=17_000, at=AT)
    assert (after.horizon.tokens, after.horizon.confidence) == (17_000, 0.6)
    assert why_stale(after, now=NOW, local=True) is Stale.TIGHTENED


def test_a_growing_share_of_cached_tokens_does_not_move_tokens_per_character() -> None:
    profile = probed()
    for cached in (0, 5_000, 10_000):
        profile = with_receipt(
            profile, prompt_tokens=10_000, chars_sent=40_000, cached_tokens=cached
        )
    assert profile.tokens_per_char_millionths == 250_000


def test_reading_speed_is_learnt_only_from_turns_that_missed_the_cache() -> None:
    missed = with_receipt(probed(), prompt_tokens=1_000, chars_sent=4_000, first_token_ms=500)
    assert missed.prefill_tokens_per_s == 2_000
    hit = with_receipt(
        missed, prompt_tokens=1_000, chars_sent=4_000, first_token_ms=5, cached_tokens=900
    )
    assert hit.prefill_tokens_per_s == 2_000


def test_a_refusal_sets_the_verified_window_by_the_providers_number_or_a_tenth_below() -> None:
    assert (
        with_refusal(probed(), rejected_tokens=9_000, stated_maximum=8_192).verified_window == 8_192
    )
    once = with_refusal(probed(), rejected_tokens=10_000, stated_maximum=None)
    assert once.verified_window == 9_000
    assert with_refusal(once, rejected_tokens=20_000, stated_maximum=None).verified_window == 9_000
    assert once.usable == 9_000
