"""Who may do what in a tenant: members and API keys."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from ctxengine.ledger.models import ApiKey, Membership


@dataclass(frozen=True, slots=True)
class MemberLine:
    """One person of the tenant."""

    name: str
    role: str
    joined_at: datetime
    signed_in_at: datetime | None
    active: bool
    """Whether the person may sign in at all."""


@dataclass(frozen=True, slots=True)
class KeyLine:
    """One API key; what opens the door is not among its facts."""

    id: UUID
    name: str
    prefix: str
    scopes: tuple[str, ...]
    created_by: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None

    def state(self, now: datetime) -> str:
        """`valid`, `expired` or `revoked`."""
        if self.revoked_at:
            return "revoked"
        return "expired" if self.expires_at and self.expires_at <= now else "valid"


def list_members(tenant_id: UUID) -> tuple[MemberLine, ...]:
    """All members by name. One query."""
    rows = Membership.objects.filter(tenant_id=tenant_id).select_related("user")
    return tuple(
        MemberLine(
            row.user.get_username(),
            row.role,
            row.created_at,
            row.user.last_login,
            row.user.is_active,
        )
        for row in rows.order_by("user__username")
    )


def list_keys(tenant_id: UUID) -> tuple[KeyLine, ...]:
    """All keys, the newest first. One query."""
    return tuple(
        KeyLine(
            row.id,
            row.name,
            row.prefix,
            tuple(row.scopes),
            row.created_by,
            row.created_at,
            row.expires_at,
            row.revoked_at,
            row.last_used_at,
        )
        for row in ApiKey.objects.filter(tenant_id=tenant_id).order_by("-created_at", "-id")
    )
