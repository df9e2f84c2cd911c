"""A first tenant with an admin and a key, so that a newcomer can log in and a runtime can call."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field

from django.contrib.auth import get_user_model
from django.db import transaction

from ctxengine.ledger.models import Membership, Role, Scope, Tenant
from ctxengine.service.clock import utc_now
from ctxengine.service.issue_key import keep_key
from ctxengine.service.specs import Actor, ServiceError

DEMO_SLUG = "demo"


@dataclass(frozen=True, slots=True)
class Demo:
    """How to get in."""

    username: str
    password: str = field(repr=False)
    api_key: str = field(repr=False)
    tenant_id: uuid.UUID


def ensure_demo(*, username: str, password: str, api_key: str) -> Demo:
    """Make sure that the demo tenant, its admin and a key exist and that exactly these credentials are valid."""
    now = utc_now()
    with transaction.atomic():
        tenant, _ = Tenant.objects.get_or_create(
            slug=DEMO_SLUG,
            defaults={"id": uuid.uuid4(), "name": "Demo", "created_at": now},
        )
        user, _ = get_user_model().objects.get_or_create(username=username)
        if not user.check_password(password):
            user.set_password(password)
            user.save()
        Membership.objects.get_or_create(
            tenant=tenant, user=user, defaults={"role": Role.ADMIN.value, "created_at": now}
        )
        actor = Actor(tenant.id, "system")
        keep_key(actor=actor, name="first key", key=api_key, scopes=tuple(Scope.values))
    return Demo(username, password, api_key, tenant.id)


def demo_actor() -> Actor:
    """Acts for the demo tenant on the command line."""
    return Actor(Tenant.objects.get(slug=DEMO_SLUG).id, "system")


def actor_for(slug: str | None) -> Actor:
    """Acts for a tenant on the command line: the named one, else the demo tenant, else the only one.

    Raises:
        ServiceError: 404 when that leaves none or several.
    """
    rows = Tenant.objects.filter(slug=slug) if slug else Tenant.objects.all()
    found = list(rows[:2])
    if not slug and len(found) != 1:
        found = list(Tenant.objects.filter(slug=DEMO_SLUG))
    if len(found) != 1:
        detail = f"There is no tenant {slug}." if slug else "Name a tenant with --tenant."
        raise ServiceError("not_found", 404, detail)
    return Actor(found[0].id, "system")
