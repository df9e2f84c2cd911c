"""The capacity profile of a model: the only figures that size a working set (capacity spec 1)."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict

LADDER_VERSION = "ladder@2"
"""Version of the ladder's prompts and rules. The first one asked to "stop here and confirm that you read this" before it named
the call, and small models confirmed in words: their horizons came out far too low."""
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
    changed_at: str = ""
    """When another model was seen behind the name since the ladder was climbed: ISO 8601 with offset, else empty."""
    measured_on: str = ""
    """The cheaper model of the family that climbed the ladder in this one's place; empty where it did so itself."""
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


class Stale(StrEnum):
    """Why a probe of a model is due."""

    NEVER_PROBED = "never_probed"
    CHANGED = "changed"
    """Another model answers to the name, or the same with another window."""
    OTHER_LADDER = "other_ladder"
    """An earlier version of the ladder measured it."""
    TIGHTENED = "tightened"
    """A real turn did not follow an instruction near the horizon."""
    OLD = "old"


def why_stale(profile: CapacityProfile, *, now: datetime, local: bool) -> Stale | None:
    """Why a probe is due; None while the profile is fresh.

    Args:
        now: with offset.
        local: whether the model runs on a machine of ours.
    """
    made = profile.provenance
    if made.changed_at:
        return Stale.CHANGED
    if not made.probed_at:
        return (
            Stale.TIGHTENED
            if made.source == "feedback" and measured(profile)
            else Stale.NEVER_PROBED
        )
    if made.ladder and made.ladder != LADDER_VERSION:
        return Stale.OTHER_LADDER
    age = now - datetime.fromisoformat(made.probed_at)
    return Stale.OLD if age > (TTL_LOCAL if local else TTL_HOSTED) else None


def measured(profile: CapacityProfile) -> bool:
    """Whether the horizon rests on anything seen; otherwise the declared window stands in for it.

    A probe of another model of the family is seen of this one only where its horizon was carried over.
    """
    made = profile.provenance
    return bool(profile.horizon.confirmed_at or (made.probed_at and not made.measured_on))


def with_metadata(
    profile: CapacityProfile,
    *,
    declared_window: int,
    max_output: int,
    metadata_digest: str,
    at: str,
) -> CapacityProfile:
    """The profile after the provider described a model otherwise than when it was probed; itself where nothing changed.

    What was measured is another model's then: it stays in force with little confidence, within the new window, until a probe
    takes its place.

    Args:
        declared_window: what the provider says now (tokens).
        max_output: the same of its answers (tokens).
        metadata_digest: empty where it says nothing of the model.
        at: ISO 8601 with offset.
    """
    made = profile.provenance
    if not metadata_digest or not made.metadata_digest or metadata_digest == made.metadata_digest:
        return profile
    horizon = profile.horizon
    told = {
        "tokens": min(horizon.tokens, declared_window),
        "confidence": min(horizon.confidence, ASSUMED_CONFIDENCE),
    }
    seen = {"source": "metadata", "metadata_digest": metadata_digest, "changed_at": at}
    return profile.model_copy(
        update={
            "declared_window": declared_window,
            "output_reserve": max_output,
            "horizon": horizon.model_copy(update=told),
            "provenance": made.model_copy(update=seen),
        }
    )
