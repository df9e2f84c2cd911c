"""Who gets in: people and keys that are added on the command line."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from ctxengine.ledger.models import ApiKey, AuditEntry, Membership, Role, Tenant
from tests.factories import PASSWORD, make_person, make_tenant

pytestmark = pytest.mark.django_db


def run(*words: str) -> dict[str, Any]:
    out = io.StringIO()
    call_command(*words, "--json", stdout=out)
    said: dict[str, Any] = json.loads(out.getvalue())
    return said


def test_a_new_person_of_a_new_tenant_signs_in_with_the_password_that_was_printed() -> None:
    said = run("add_person", "ada@example.org", "--tenant", "north", "--role", "operator")
    assert said["new_tenant"] is True
    client = Client()
    form = {"username": "ada@example.org", "password": said["password"]}
    assert client.post("/login/", form).status_code == 302
    assert client.get("/t/north/").status_code == 200
    tenant = Tenant.objects.get(slug="north")
    assert Membership.objects.get(tenant=tenant).role == "operator"
    entry = AuditEntry.objects.get(tenant_id=tenant.id)
    assert (entry.action, entry.target) == ("person.added", "ada@example.org")
    assert said["password"] not in json.dumps([entry.before, entry.after, entry.reason])


def test_who_is_known_gets_the_role_and_keeps_the_password() -> None:
    here, there = make_tenant(), make_tenant()
    make_person(here, name="bo")
    for tenant, role in ((here, "admin"), (there, "viewer")):
        said = run("add_person", "bo", "--tenant", tenant.slug, "--role", role)
        assert (said["password"], said["new_tenant"]) == (None, False)
        assert Membership.objects.get(tenant=tenant, user__username="bo").role == role
    assert Client().login(username="bo", password=PASSWORD)


def told(*words: str) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    call_command("add_person", *words, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def test_a_member_keeps_the_role_where_none_is_given() -> None:
    tenant = make_tenant()
    make_person(tenant, name="bo", role=Role.ADMIN)
    said = run("add_person", "bo", "--tenant", tenant.slug)
    assert (said["role"], said["role_before"], said["admins"]) == ("admin", "admin", 1)
    assert Membership.objects.get(tenant=tenant, user__username="bo").role == "admin"
    assert "already; nothing changed" in told("bo", "--tenant", tenant.slug)[0]


def test_a_changed_role_says_which_way_and_a_tenant_without_admin_is_told() -> None:
    tenant = make_tenant()
    make_person(tenant, name="bo", role=Role.ADMIN)
    out, err = told("bo", "--tenant", tenant.slug, "--role", "viewer")
    assert "lowered from admin" in out
    assert f"{tenant.slug} has no admin" in err
    out, err = told("bo", "--tenant", tenant.slug, "--role", "admin")
    assert "raised from viewer" in out
    assert err == ""


def test_a_newcomer_without_a_role_is_viewer_and_a_new_tenant_lacks_its_admin_aloud() -> None:
    out, err = told("ada", "--tenant", "north")
    assert "ada is viewer of north, a new tenant." in out
    assert "north has no admin" in err


def test_a_password_comes_from_stdin_and_never_over_one_that_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for tenant, fits in (("east", True), ("west", False)):
        monkeypatch.setattr("sys.stdin", io.StringIO("correct horse battery\n"))
        words = ("add_person", "cy", "--tenant", tenant, "--password-stdin")
        if fits:
            assert run(*words)["password"] is None
        else:
            with pytest.raises(CommandError, match="has a password already"):
                run(*words)
    assert Client().login(username="cy", password="correct horse battery")
    assert not Tenant.objects.filter(slug="west").exists()


@pytest.mark.parametrize(
    ("name", "tenant", "password"),
    [
        ("", "north", "correct horse battery"),
        ("two words", "north", "correct horse battery"),
        ("ada", "North Side", "correct horse battery"),
        ("ada", "-north", "correct horse battery"),
        ("ada", "north", "short"),
        ("ada", "north", ""),
    ],
)
def test_what_cannot_be_used_is_refused_and_leaves_nothing_behind(
    name: str, tenant: str, password: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(password + "\n"))
    with pytest.raises(CommandError):
        run("add_person", name, "--tenant", tenant, "--password-stdin")
    assert not Tenant.objects.exists()
    assert not Membership.objects.exists()


def test_a_key_opens_what_its_scopes_allow_in_its_tenant_alone() -> None:
    tenant = make_tenant()
    said = run("issue_key", "reader", "--tenant", tenant.slug, "--scopes", "read")
    client = Client(headers={"Authorization": f"Bearer {said['key']}"})
    assert client.get("/api/v1/sessions").status_code == 200
    refused = client.post("/api/v1/sessions", {}, content_type="application/json")
    assert refused.json()["code"] == "scope_missing"
    row = ApiKey.objects.get(tenant_id=tenant.id)
    assert (row.name, row.expires_at, row.created_by) == ("reader", None, "command:issue_key")
    assert said["key"] not in json.dumps([row.prefix, row.key_sha256])
    assert AuditEntry.objects.get(tenant_id=tenant.id).action == "key.issued"


def test_a_key_may_end_by_itself() -> None:
    tenant = make_tenant()
    run("issue_key", "guest", "--tenant", tenant.slug, "--days", "7")
    row = ApiKey.objects.get(tenant_id=tenant.id)
    assert row.expires_at is not None
    assert (row.expires_at - row.created_at).days == 7
    assert row.scopes == ["read", "runtime"]


@pytest.mark.parametrize(
    "words",
    [
        ("--tenant", "nowhere"),
        ("--scopes", "everything"),
        ("--scopes", ""),
        ("--days", "0"),
    ],
)
def test_an_odd_key_is_refused(words: tuple[str, ...]) -> None:
    make_tenant()
    with pytest.raises(CommandError):
        run("issue_key", "x", *words)
    assert not ApiKey.objects.exists()
