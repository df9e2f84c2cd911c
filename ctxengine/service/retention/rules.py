"""A tenant's keeping times: reading them, and changing them under its lock, with a line in the audit log."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from django.db import transaction

from ctxengine.ledger.models import RetentionRule, Tenant
from ctxengine.service.audit import record_audit
from ctxengine.service.clock import utc_now
from ctxengine.service.retention.kinds import BY_NAME, FOR_EVER, KINDS, MOST_DAYS
from ctxengine.service.specs import Actor, ServiceError


def keeping_times(tenant_id: UUID) -> dict[str, int]:
    """Days by kind, every kind of the table; 0 is for ever."""
    found = dict(RetentionRule.objects.filter(tenant_id=tenant_id).values_list("kind", "days"))
    return {kind.name: found.get(kind.name, kind.default_days) for kind in KINDS}


def set_keeping_times(*, actor: Actor, days: Mapping[str, int], note: str) -> dict[str, int]:
    """Change the named kinds and leave the others; gives all of them.

    Args:
        days: days by kind; 0 keeps for ever.

    Raises:
        ServiceError: `reason_required` (422) without a note; `invalid_field` (422) for a kind that is not of the table, or
            days below the kind's least or above 36,500.
    """
    if not note.strip():
        raise ServiceError("reason_required", 422, "Say in `note` why keeping times change.")
    for name, wanted in days.items():
        _require_allowed(name, wanted)
    with transaction.atomic():
        Tenant.objects.select_for_update().get(id=actor.tenant_id)
        before = keeping_times(actor.tenant_id)
        changed = {name: wanted for name, wanted in days.items() if before[name] != wanted}
        for name, wanted in changed.items():
            RetentionRule.objects.update_or_create(
                tenant_id=actor.tenant_id,
                kind=name,
                defaults={"days": wanted, "set_by": actor.label, "set_at": utc_now()},
            )
        if changed:
            record_audit(
                actor=actor,
                action="retention.changed",
                reason=note,
                before={name: before[name] for name in changed},
                after=dict(changed),
            )
        return before | changed


def _require_allowed(name: str, days: int) -> None:
    kind = BY_NAME.get(name)
    if kind is None:
        raise ServiceError(
            "invalid_field", 422, f"There is no kind {name!r:.80}; kinds are {', '.join(BY_NAME)}."
        )
    if days != FOR_EVER and not kind.least_days <= days <= MOST_DAYS:
        raise ServiceError(
            "invalid_field",
            422,
            f"`{name}` is kept for {kind.least_days} to {MOST_DAYS:,} days, or for ever (0); this was {days:,}.",
        )
