"""API keys: issued once, stored as hashes (design 5)."""

from __future__ import annotations

import hashlib
import secrets
import uuid
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from django.db import transaction

from ctxengine.ledger.models import ApiKey, Scope
from ctxengine.ledger.rows import row_by
from ctxengine.service.audit import record_audit
from ctxengine.service.clock import utc_now
from ctxengine.service.specs import Actor, ServiceError

_PREFIX_CHARS = 8
_TOUCH_EVERY = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """A new key; `key` is shown this once and cannot be read again."""

    key: str = field(repr=False)
    prefix: str


@dataclass(frozen=True, slots=True)
class KeyIdentity:
    """Who a presented key belongs to."""

    tenant_id: UUID
    prefix: str
    scopes: frozenset[str]


def issue_key(
    *, actor: Actor, name: str, scopes: tuple[str, ...], expires_in: timedelta | None = None
) -> IssuedKey:
    """Make a key for the actor's tenant.

    Raises:
        ServiceError: 422 when a scope is unknown or none is given.
    """
    unknown = set(scopes) - set(Scope.values)
    if unknown or not scopes:
        raise ServiceError(
            "invalid_scope",
            422,
            f"Scopes are {', '.join(Scope.values)}; got {', '.join(sorted(unknown)) or 'none'}.",
        )
    prefix = secrets.token_hex(_PREFIX_CHARS // 2)
    key = f"ctx_{prefix}_{secrets.token_urlsafe(32)}"
    _create(actor, name, prefix, key, scopes, expires_in)
    return IssuedKey(key, prefix)


def keep_key(*, actor: Actor, name: str, key: str, scopes: tuple[str, ...]) -> None:
    """Make a key that was generated elsewhere valid for the actor's tenant; one that is known stays as it is."""
    if not ApiKey.objects.filter(key_sha256=_hash(key)).exists():
        _create(actor, name, secrets.token_hex(_PREFIX_CHARS // 2), key, scopes, None)


def _create(
    actor: Actor,
    name: str,
    prefix: str,
    key: str,
    scopes: tuple[str, ...],
    expires_in: timedelta | None,
) -> None:
    now = utc_now()
    with transaction.atomic():
        ApiKey.objects.create(
            id=uuid.uuid4(),
            tenant_id=actor.tenant_id,
            name=name,
            prefix=prefix,
            key_sha256=_hash(key),
            scopes=sorted(scopes),
            created_by=actor.label,
            created_at=now,
            expires_at=now + expires_in if expires_in else None,
        )
        record_audit(
            actor=actor, action="key.issued", target=prefix, after={"scopes": sorted(scopes)}
        )


def authenticate_key(raw: str) -> KeyIdentity:
    """Who this key is.

    Raises:
        ServiceError: 401 when it is unknown, revoked or expired; the answer does not say which.
    """
    row = row_by(ApiKey, key_sha256=_hash(raw))
    now = utc_now()
    if row is None or row.revoked_at or (row.expires_at and row.expires_at <= now):
        raise ServiceError(
            "invalid_key", 401, "The API key is not valid. Send `Authorization: Bearer KEY`."
        )
    if row.last_used_at is None or now - row.last_used_at > _TOUCH_EVERY:
        ApiKey.objects.filter(tenant_id=row.tenant_id, id=row.id).update(last_used_at=now)
    return KeyIdentity(row.tenant_id, row.prefix, frozenset(row.scopes))


def _hash(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()
