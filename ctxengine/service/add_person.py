"""People of the console: who may sign in, in which tenant, with which role (design 5)."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction

from ctxengine.ledger.models import Membership, Role, Tenant
from ctxengine.service.audit import record_audit
from ctxengine.service.clock import utc_now
from ctxengine.service.specs import Actor, ServiceError

_SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_NAME = re.compile(r"[\w.@+-]{1,150}")


@dataclass(frozen=True, slots=True)
class PersonAdded:
    """What became of a person's membership."""

    role: str
    role_before: str
    """Empty for who was not in the tenant."""
    new_tenant: bool
    admins: int
    """How many admins the tenant has now, this person included."""


def add_person(
    *, actor_label: str, name: str, tenant: str, role: str | None, password: str
) -> PersonAdded:
    """Let a person into a tenant, or change the role of one who is in it.

    Who is known already keeps the password; who is in the tenant keeps the role too where none is given, and whoever is new to
    it is a viewer then. An empty password is right for people who are known, and for them alone.

    Raises:
        ServiceError: 422 when the name, the tenant's slug, the role or the password cannot be used.
    """
    _refuse_odd(name, tenant, role)
    now = utc_now()
    with transaction.atomic():
        row, made = Tenant.objects.get_or_create(
            slug=tenant, defaults={"id": uuid.uuid4(), "name": tenant, "created_at": now}
        )
        user = get_user_model().objects.filter(username=name).first()
        if user is None:
            user = _create(name, password)
        elif password:
            raise ServiceError(
                "invalid_field",
                422,
                f"{name} has a password already; leave it out to change the role alone.",
            )
        member, _ = Membership.objects.get_or_create(
            tenant=row, user=user, defaults={"role": "", "created_at": now}
        )
        before = member.role
        after = role or before or Role.VIEWER.value
        members = Membership.objects.filter(tenant=row)
        members.filter(user=user).update(role=after)
        record_audit(
            actor=Actor(row.id, actor_label),
            action="person.added",
            target=name,
            before={"role": before},
            after={"role": after},
        )
        admins = members.filter(role=Role.ADMIN.value).count()
    return PersonAdded(role=after, role_before=before, new_tenant=made, admins=admins)


def person_is_known(name: str) -> bool:
    """Whether somebody signs in by that name, in whichever tenant."""
    return bool(get_user_model().objects.filter(username=name).exists())


def _refuse_odd(name: str, tenant: str, role: str | None) -> None:
    if not _NAME.fullmatch(name):
        raise ServiceError(
            "invalid_field",
            422,
            "A name has 1 to 150 letters, digits and the characters @ . + - _; an email address is one.",
        )
    if not _SLUG.fullmatch(tenant):
        raise ServiceError(
            "invalid_field",
            422,
            "A tenant's slug has 1 to 63 small letters, digits and hyphens, none at its ends.",
        )
    if role is not None and role not in Role.values:
        raise ServiceError(
            "invalid_field", 422, f"Roles are {', '.join(Role.values)}; got {role or 'none'}."
        )


def _create(name: str, password: str) -> User:
    people = get_user_model()
    try:
        validate_password(password, people(username=name))
    except ValidationError as error:
        raise ServiceError("invalid_field", 422, " ".join(error.messages)) from error
    return people.objects.create_user(name, password=password)
