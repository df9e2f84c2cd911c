"""Every address of the console against everyone who may ask for it."""

from __future__ import annotations

import uuid

import pytest
from django.test import Client
from django.urls import URLPattern

from ctxengine.ledger.models import Role
from tests.factories import make_person, make_tenant
from tests.matrix.world import POSTS, a_world, client, tenant_patterns

pytestmark = pytest.mark.django_db

ACTS = {
    "rotate": {"epoch": "2", "why": "operator"},
    "tool-act": {"tool": "shell.run", "act": "revoke"},
    "lift-constraint": {},
    "compact-now": {},
    "mark": {"target": "3", "form": "folded"},
    "undo-compaction": {},
    "undo-checkpoint": {},
    "probe": {"hosted": "1"},
    "job": {"act": "cancel"},
    "persona": {"revision": "1", "entry": "Prefers large commits."},
}
"""What operators do on pages that everybody may look at."""


def ask(one: Client, pattern: URLPattern, address: str) -> int:
    status: int = (one.post if pattern.name in POSTS else one.get)(address).status_code
    return status


def test_foreign_ids_are_404_under_ones_own_tenant() -> None:
    world, own = a_world(), make_tenant()
    member = client(make_person(own, Role.ADMIN))
    for pattern in tenant_patterns():
        if set(pattern.pattern.converters) <= {"slug", "twin"}:
            continue
        if "principal" in pattern.pattern.converters:
            # A principal's name is no id: under another tenant it is another, unknown person.
            continue
        address = world.address(pattern).replace(f"/t/{world.tenant.slug}/", f"/t/{own.slug}/")
        assert ask(member, pattern, address) == 404, pattern.name


def test_another_tenant_s_operator_cannot_act() -> None:
    world, own = a_world(), make_tenant()
    other = client(make_person(own, Role.ADMIN))
    for pattern in tenant_patterns():
        if pattern.name not in ACTS or "principal" in pattern.pattern.converters:
            continue
        address = world.address(pattern)
        moved = address.replace(f"/t/{world.tenant.slug}/", f"/t/{own.slug}/")
        for one in (address, moved):
            status = other.post(one, {"reason": "Mine."}).status_code
            assert status == 404, (pattern.name, status)


@pytest.mark.parametrize(
    ("role", "status"), [(Role.VIEWER, 403), (Role.OPERATOR, 400), (Role.ADMIN, 400)]
)
def test_only_operators_may_import(role: Role, status: int) -> None:
    tenant = make_tenant()
    member = client(make_person(tenant, role))
    assert member.post(f"/t/{tenant.slug}/imports/").status_code == status


def test_posts_need_the_forms_token() -> None:
    world = a_world()
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(make_person(world.tenant))
    address = f"/t/{world.tenant.slug}/requests/{world.session.requests[0]}/prove/"
    assert strict.post(address).status_code == 403
    assert strict.post(f"/t/{world.tenant.slug}/imports/").status_code == 403
    for pattern in tenant_patterns():
        if pattern.name in ACTS:
            assert strict.post(world.address(pattern)).status_code == 403, pattern.name


def test_ids_that_never_were_are_404() -> None:
    tenant = make_tenant()
    member = client(make_person(tenant))
    for path in (f"sessions/{uuid.uuid4()}/", f"requests/{uuid.uuid4()}/", f"imports/{'0' * 64}/"):
        assert member.get(f"/t/{tenant.slug}/{path}").status_code == 404
