"""Reading and writing capacity profiles (capacity spec 1)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from uuid import UUID

from django.db import connection, transaction
from django.db.models import QuerySet

from ctxengine.engine.canonical import sha256_hex
from ctxengine.engine.capacity.profile import CacheBehaviour, CapacityProfile, metadata_profile
from ctxengine.ledger.models import CapacityRow
from ctxengine.providers.adapters.addresses import is_of_ours
from ctxengine.providers.adapters.registry import listed_address
from ctxengine.service.clock import utc_now
from ctxengine.service.wiring import facts_about, new_id

_MOST_MODEL_CHARS = 200
_TICK = timedelta(microseconds=1)
_PROFILES = 0x9F0F11
"""First key of the advisory locks on profiles; the second is tenant, provider and model."""


def newest_row(tenant_id: UUID, provider: str, model: str) -> CapacityRow | None:
    """The newest revision of a model's profile; None where nothing was measured."""
    return _revisions(tenant_id, provider, model).first()


def _revisions(tenant_id: UUID, provider: str, model: str) -> QuerySet[CapacityRow]:
    """Every revision of a model's profile, the newest first."""
    rows = CapacityRow.objects.filter(
        tenant_id=tenant_id, provider=provider, model=model[:_MOST_MODEL_CHARS]
    )
    return rows.order_by("-created_at")


def profile_of(tenant_id: UUID, provider: str, model: str) -> CapacityProfile:
    """The profile in force: the newest measured one, else one from metadata with low confidence. Never asks a provider."""
    row = newest_row(tenant_id, provider, model)
    if row is not None:
        return CapacityProfile.model_validate(row.profile)
    facts = facts_about(provider, model)
    return metadata_profile(
        provider=provider, model=model, declared_window=facts.window, max_output=facts.max_output
    )


def cache_in_profile(
    tenant_id: UUID, provider: str, model: str
) -> tuple[CacheBehaviour, UUID | None]:
    """What the profile in force says of a model's cache, and its revision; `UNKNOWN` and None where nothing was measured."""
    found = _revisions(tenant_id, provider, model).values_list("profile__cache", "id").first()
    return (CacheBehaviour.UNKNOWN, None) if found is None else (CacheBehaviour(found[0]), found[1])


def hold_profile(tenant_id: UUID, provider: str, model: str) -> None:
    """Wait for whoever changes a model's profile; released with the transaction. What is read behind it is the newest.

    A person's fence is taken first, then a session's lock, then this one, and a job's last.
    """
    key = f"{tenant_id}/{provider}/{model[:_MOST_MODEL_CHARS]}"
    digest = sha256_hex(key.encode("utf-8", "surrogatepass"))
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock(%s, %s)", (_PROFILES, int(digest[:8], 16) - 2**31)
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
    """Add a revision, which is the one in force from here on.

    Where it is made from the one before it, that one is read behind `hold_profile`, in the same transaction.

    Args:
        source: what made it; left out: where the profile's figures come from.
    """
    with transaction.atomic():
        hold_profile(tenant_id, profile.provider, profile.model)
        known = _revisions(tenant_id, profile.provider, profile.model)
        before = known.values_list("created_at", flat=True).first()
        now = utc_now()
        return CapacityRow.objects.create(
            tenant_id=tenant_id,
            id=new_id(),
            provider=profile.provider,
            model=profile.model[:_MOST_MODEL_CHARS],
            source=source or profile.provenance.source,
            profile=profile.model_dump(mode="json"),
            job_id=job_id,
            session_id=session_id,
            # Two machines' clocks may differ: the one kept last is the newest all the same.
            created_at=now if before is None else max(now, before + _TICK),
        )


def is_local(provider: str) -> bool:
    """Whether a provider's models run on a machine of ours, so that probing them costs time alone.

    Its address says so and not its name: an Ollama or a compatible server may as well be somebody's paid service.
    """
    address = listed_address(provider)
    if address is None:
        return provider == "ollama"  # not called before it is listed
    return is_of_ours(address)
