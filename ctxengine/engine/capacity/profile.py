"""The capacity profile of a model: the only figures that size a working set (capacity spec 1)."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict

TTL_LOCAL = timedelta(hours=24)
TTL_HOSTED = timedelta(days=7)
"""How long a profile counts as fresh."""

ASSUMED_CONFIDENCE = 0.3
"""Of a horizon that nobody measured: the declared window stands in for it."""
TIGHTENED_CONFIDENCE = 0.6
"""Of a horizon that a failed instruction has lowered."""


class CacheBehaviour(StrEnum):
    """What the cache rung saw."""

    UNKNOWN = "unknown"
    NONE = "none"
    PREFIX_STABLE = "prefix_stable"
    """The second of two equal requests was at least five times faster."""
    REPORTED = "reported"
    """The provider says how many tokens it read from its cache."""


class Grade(StrEnum):
    """How well one sample followed its instruction."""

    STRICT = "strict"
    """A native call of the right tool with the right arguments."""
    LOOSE = "loose"
    """The right name and arguments, but written as text."""
    FAIL = "fail"

    @property
    def passed(self) -> bool:
        """Whether the instruction was followed at all."""
        return self is not Grade.FAIL


class Observation(BaseModel):
    """One sample of the ladder."""

    model_config = ConfigDict(frozen=True)

    tokens: int
    """Size asked for: the rung."""
    actual_tokens: int
    """Prompt tokens the provider reported; the rung's own size where it reported none."""
    grade: Grade
    latency_ms: int = 0
    first_token_ms: int | None = None
    cached_tokens: int | None = None


class Horizon(BaseModel):
    """How long a prompt may get before tool instructions are no longer obeyed: the longest one where they were."""

    model_config = ConfigDict(frozen=True)

    tokens: int
    confidence: float
    """0 to 1; see `ladder.horizon_of` for how samples make it."""
    native_calls: bool = True
    """Whether the passing samples called the tool natively; otherwise it only wrote calls as text."""
    confirmed_at: str = ""
    """ISO 8601 with offset; empty for one that nobody measured."""


class Provenance(BaseModel):
    """Where a profile's figures come from."""

    model_config = ConfigDict(frozen=True)

    source: Literal["metadata", "probe", "feedback"] = "metadata"
    probed_at: str = ""
    """ISO 8601 with offset; empty for a profile from metadata alone."""
    metadata_digest: str = ""
    """Changes when the model behind the name does; a changed one makes the profile stale."""
    ladder: str = ""
    """Version of the ladder's prompts and rules."""
    observations: tuple[Observation, ...] = ()
    stopped: str = ""
    """Why the ladder ended early: `time`, `rejected`, `cancelled`; empty when it ran to its end."""


class CapacityProfile(BaseModel):
    """What is known of one (provider, model). Token figures are the provider's own tokens."""

    model_config = ConfigDict(frozen=True)

    provider: str
    model: str
    declared_window: int
    horizon: Horizon
    verified_window: int | None = None
    """Largest prompt the provider can be relied on to accept, once it has refused one (tokens)."""
    tokens_per_char_millionths: int | None = None
    """EWMA of billed prompt tokens over characters sent, times a million."""
    prefill_tokens_per_s: float | None = None
    """EWMA over turns that missed the cache."""
    cache: CacheBehaviour = CacheBehaviour.UNKNOWN
    output_reserve: int = 0
    """Tokens kept for the answer."""
    provenance: Provenance = Provenance()

    @property
    def usable(self) -> int:
        """Tokens a request may take: the horizon, and never more than was verified or declared."""
        limits = [self.horizon.tokens, self.declared_window]
        if self.verified_window is not None:
            limits.append(self.verified_window)
        return min(limits)


def metadata_profile(
    *, provider: str, model: str, declared_window: int, max_output: int, metadata_digest: str = ""
) -> CapacityProfile:
    """The profile before anything was measured: the declared window stands in for the horizon, with low confidence."""
    return CapacityProfile(
        provider=provider,
        model=model,
        declared_window=declared_window,
        horizon=Horizon(tokens=declared_window, confidence=ASSUMED_CONFIDENCE),
        output_reserve=max_output,
        provenance=Provenance(metadata_digest=metadata_digest),
    )


def is_stale(
    profile: CapacityProfile, *, now: datetime, local: bool, metadata_digest: str = ""
) -> bool:
    """Whether a probe is due: never probed, too old, or of another model behind the same name.

    Args:
        now: with offset.
        local: whether the model runs on a machine of ours.
        metadata_digest: what the provider says now; empty where it says nothing.
    """
    made = profile.provenance
    if not made.probed_at:
        return True
    if metadata_digest and made.metadata_digest and metadata_digest != made.metadata_digest:
        return True
    age = now - datetime.fromisoformat(made.probed_at)
    return age > (TTL_LOCAL if local else TTL_HOSTED)
