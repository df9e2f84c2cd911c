"""Revoking an API key: from the next call on it opens nothing (design 5)."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from ctxengine.ledger.models import ApiKey
from ctxengine.service.access import not_found
from ctxengine.service.audit import record_audit
from ctxengine.service.clock import utc_now
from ctxengine.service.specs import Actor


def revoke_key(*, actor: Actor, key_id: UUID, note: str) -> str:
    """Revoke a key; gives its prefix. One that is revoked already stays as it is.

    Raises:
        ServiceError: 404 when the tenant has no such key.
    """
    with transaction.atomic():
        row = (
            ApiKey.objects.select_for_update().filter(tenant_id=actor.tenant_id, id=key_id).first()
        )
        if row is None:
            raise not_found("key")
        if row.revoked_at is None:
            ApiKey.objects.filter(tenant_id=actor.tenant_id, id=key_id).update(revoked_at=utc_now())
            record_audit(
                actor=actor,
                action="key.revoked",
                target=row.prefix,
                reason=note,
                before={"state": "valid"},
                after={"state": "revoked"},
            )
    return row.prefix
