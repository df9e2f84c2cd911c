"""Reading and writing capacity profiles (capacity spec 1)."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from ctxengine.engine.capacity.profile import CapacityProfile, metadata_profile
from ctxengine.ledger.models import CapacityRow
from ctxengine.providers.adapters.addresses import is_of_ours
from ctxengine.providers.adapters.registry import listed_address
from ctxengine.service.clock import utc_now
from ctxengine.service.wiring import facts_about, new_id

_MOST_MODEL_CHARS = 200


def newest_row(tenant_id: UUID, provider: str, model: str) -> CapacityRow | None:
    """The newest revision of a model's profile; None where nothing was measured."""
    return (
        CapacityRow.objects.filter(
            tenant_id=tenant_id, provider=provider, model=model[:_MOST_MODEL_CHARS]
        )
        .order_by("-created_at")
        .first()
    )


def profile_of(tenant_id: UUID, provider: str, model: str) -> CapacityProfile:
    """The profile in force: the newest measured one, else one from metadata with low confidence. Never asks a provider."""
    row = newest_row(tenant_id, provider, model)
    if row is not None:
        return CapacityProfile.model_validate(row.profile)
    facts = facts_about(provider, model)
    return metadata_profile(
        provider=provider, model=model, declared_window=facts.window, max_output=facts.max_output
    )


def newest_rows(tenant_id: UUID) -> Iterator[CapacityRow]:
    """The newest revision of each model's profile, by provider and model."""
    rows = CapacityRow.objects.filter(tenant_id=tenant_id)
    yield from rows.order_by("provider", "model", "-created_at").distinct("provider", "model")


def keep_profile(
    *,
    tenant_id: UUID,
    profile: CapacityProfile,
    source: str = "",
    job_id: UUID | None = None,
    session_id: UUID | None = None,
) -> CapacityRow:
    """Add a revision.

    Args:
        source: what made it; left out: where the profile's figures come from.
    """
    return CapacityRow.objects.create(
        tenant_id=tenant_id,
        id=new_id(),
        provider=profile.provider,
        model=profile.model[:_MOST_MODEL_CHARS],
        source=source or profile.provenance.source,
        profile=profile.model_dump(mode="json"),
        job_id=job_id,
        session_id=session_id,
        created_at=utc_now(),
    )


def is_local(provider: str) -> bool:
    """Whether a provider's models run on a machine of ours, so that probing them costs time alone.

    Its address says so and not its name: an Ollama or a compatible server may as well be somebody's paid service.
    """
    address = listed_address(provider)
    if address is None:
        return provider == "ollama"  # not called before it is listed
    return is_of_ours(address)
