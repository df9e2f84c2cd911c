"""What real turns teach a profile: ratios move, the horizon only tightens (capacity spec 1, Feedback)."""

from __future__ import annotations

from ctxengine.engine.capacity.profile import (
    TIGHTENED_CONFIDENCE,
    CapacityProfile,
    Horizon,
)

EWMA_WEIGHT = 0.3
NEAR_HORIZON = 0.8
"""A failed instruction lowers the horizon only where the request was above this share of it."""
_MILLION = 1_000_000


def with_receipt(
    profile: CapacityProfile,
    *,
    prompt_tokens: int,
    chars_sent: int,
    first_token_ms: int | None = None,
    cached_tokens: int = 0,
) -> CapacityProfile:
    """The profile after one receipt.

    Args:
        prompt_tokens: all prompt tokens billed, cache tiers included.
        chars_sent: characters of the whole request, cached or not.
        first_token_ms: time to the first token; used only where nothing was read from the cache.
        cached_tokens: read from the cache.
    """
    if prompt_tokens <= 0 or chars_sent <= 0:
        return profile
    changes: dict[str, object] = {
        "tokens_per_char_millionths": round(
            _moved(profile.tokens_per_char_millionths, prompt_tokens * _MILLION / chars_sent)
        )
    }
    if first_token_ms and not cached_tokens:
        speed = prompt_tokens * 1000 / first_token_ms
        changes["prefill_tokens_per_s"] = round(_moved(profile.prefill_tokens_per_s, speed), 1)
    return profile.model_copy(update=changes)


def with_failed_instruction(
    profile: CapacityProfile, *, request_tokens: int, at: str
) -> CapacityProfile:
    """The profile after a turn failed an instruction it was given; unchanged unless the request was near the horizon.

    The horizon falls to that request's size and a new probe is due. Nothing but a probe raises it again.

    Args:
        request_tokens: size of the request (tokens as billed).
        at: ISO 8601 with offset.
    """
    if request_tokens <= profile.horizon.tokens * NEAR_HORIZON:
        return profile
    lowered = min(profile.horizon.tokens, request_tokens)
    horizon = Horizon(
        tokens=lowered,
        confidence=min(TIGHTENED_CONFIDENCE, profile.horizon.confidence)
        if lowered == profile.horizon.tokens
        else TIGHTENED_CONFIDENCE,
        native_calls=profile.horizon.native_calls,
        confirmed_at=at,
    )
    made = profile.provenance.model_copy(update={"source": "feedback", "probed_at": ""})
    return profile.model_copy(update={"horizon": horizon, "provenance": made})


def with_refusal(
    profile: CapacityProfile, *, rejected_tokens: int, stated_maximum: int | None
) -> CapacityProfile:
    """The profile after the provider refused a prompt as too long (design 7.10); the verified window only falls.

    Args:
        rejected_tokens: size of the refused prompt.
        stated_maximum: what the provider says it takes, where it says so.
    """
    learnt = stated_maximum or min(rejected_tokens * 9 // 10, rejected_tokens - 1)
    known = profile.verified_window
    return profile.model_copy(
        update={"verified_window": learnt if known is None else min(known, learnt)}
    )


def _moved(before: float | None, newest: float) -> float:
    return newest if before is None else before + EWMA_WEIGHT * (newest - before)
