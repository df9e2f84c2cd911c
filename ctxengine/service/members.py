"""Changing a member's role, and letting somebody go; a tenant always keeps an admin."""

from __future__ import annotations

from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import QuerySet

from ctxengine.ledger.models import Membership, Role, Tenant
from ctxengine.service.access import not_found
from ctxengine.service.audit import record_audit
from ctxengine.service.specs import Actor, ServiceError


def change_role(*, actor: Actor, name: str, role: str, note: str) -> str:
    """Give a member another role; gives the one before.

    Raises:
        ServiceError: 404 for who is no member, 422 for an unknown role, 409 `last_admin`.
    """
    if role not in Role.values:
        raise ServiceError("invalid_field", 422, f"Roles are {', '.join(Role.values)}.")
    with transaction.atomic():
        row = _locked(actor, name)
        before: str = row.role
        if before != role:
            _keep_an_admin(actor, row)
            _rows(actor).filter(user=row.user).update(role=role)
            record_audit(
                actor=actor,
                action="person.role_changed",
                target=name,
                reason=note,
                before={"role": before},
                after={"role": role},
            )
    return before


def remove_member(*, actor: Actor, name: str, note: str) -> None:
    """Take a person out of the tenant; the account stays, since it may belong to other tenants.

    Raises:
        ServiceError: 404 for who is no member, 409 `last_admin`.
    """
    with transaction.atomic():
        row = _locked(actor, name)
        _keep_an_admin(actor, row)
        _rows(actor).filter(user=row.user).delete()
        record_audit(
            actor=actor,
            action="person.removed",
            target=name,
            reason=note,
            before={"role": row.role},
            after={"role": ""},
        )


def _rows(actor: Actor) -> QuerySet[Membership]:
    return Membership.objects.filter(tenant_id=actor.tenant_id)


def _locked(actor: Actor, name: str) -> Membership:
    """The membership, under the tenant's lock: two admins cannot remove each other at once."""
    Tenant.objects.select_for_update().get(id=actor.tenant_id)
    user = get_user_model().objects.filter(username=name).first()
    row = _rows(actor).filter(user=user).first() if user else None
    if row is None:
        raise not_found("member")
    return row


def _keep_an_admin(actor: Actor, row: Membership) -> None:
    admins = _rows(actor).filter(role=Role.ADMIN.value)
    if row.role == Role.ADMIN.value and admins.count() == 1:
        raise ServiceError(
            "last_admin", 409, "This is the tenant's only admin; make somebody else one first."
        )
