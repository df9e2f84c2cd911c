"""What a browser is told and asked: forged forms, framed pages, cookies, sessions fixed beforehand, redirects elsewhere."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import URLPattern, reverse
from pytest_django import Settings

from ctxengine.ledger.models import Membership, Role, Tenant
from inspector import urls
from tests.factories import PASSWORD, make_person, make_tenant, worked_session

pytestmark = pytest.mark.django_db


def signed_in(client: Client, role: Role = Role.OPERATOR) -> str:
    tenant = make_tenant()
    person = make_person(tenant, role)
    form = {"username": person.username, "password": PASSWORD}
    token = client.get("/login/").cookies["csrftoken"].value
    assert client.post("/login/", form | {"csrfmiddlewaretoken": token}).status_code == 302
    return str(tenant.slug)


def test_a_forged_form_changes_nothing() -> None:
    client = Client(enforce_csrf_checks=True)
    slug = signed_in(client)
    session = worked_session(Tenant.objects.get(slug=slug))
    for address in (
        "/logout/",
        reverse("inspector:rotate", args=[slug, session.id]),
        reverse("inspector:persona-preview", args=[slug, "mara"]),
    ):
        assert client.post(address, {"why": "operator"}).status_code == 403, address
    assert client.get(f"/t/{slug}/").status_code == 200


def test_no_address_of_the_console_is_exempt_from_the_check() -> None:
    entries: list[object] = list(urls.urlpatterns)
    views = [entry.callback for entry in entries if isinstance(entry, URLPattern)]
    assert len(views) > 20
    assert not [view for view in views if getattr(view, "csrf_exempt", False)]


def test_signing_in_changes_the_session_that_somebody_may_have_fixed() -> None:
    client = Client(enforce_csrf_checks=True)
    session = client.session
    session["planted"] = "yes"
    session.save()
    before = session.session_key
    client.cookies["sessionid"] = str(before)
    signed_in(client)
    assert client.cookies["sessionid"].value != before


def test_signing_out_ends_the_session_for_whoever_copied_the_cookie() -> None:
    client = Client()
    slug = signed_in(client)
    copied = client.cookies["sessionid"].value
    client.post("/logout/")
    thief = Client()
    thief.cookies["sessionid"] = copied
    assert thief.get(f"/t/{slug}/").status_code == 302


def test_cookies_and_pages_defend_themselves(settings: Settings) -> None:
    settings.SESSION_COOKIE_SECURE = settings.CSRF_COOKIE_SECURE = True
    client = Client()
    slug = signed_in(client)
    session = client.cookies["sessionid"]
    assert (session["secure"], session["httponly"], session["samesite"]) == (True, True, "Lax")
    page = client.get(f"/t/{slug}/")
    assert page["X-Frame-Options"] == "DENY"
    assert page["X-Content-Type-Options"] == "nosniff"
    policy = page["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in policy and "object-src 'none'" in policy
    assert "unsafe-inline" not in policy and "unsafe-eval" not in policy
    assert "http:" not in policy and "https:" not in policy


@pytest.mark.parametrize(
    "there",
    ["https://evil.example/", "//evil.example/", "/\\evil.example", "javascript:alert(1)"],
)
def test_signing_in_leads_nowhere_else(there: str) -> None:
    person = make_person(make_tenant())
    form = {"username": person.username, "password": PASSWORD, "next": there}
    answer = Client().post("/login/", form)
    assert answer.status_code == 302
    assert answer["Location"] == "/"


def test_a_role_that_was_taken_away_is_gone_at_the_next_page() -> None:
    client = Client()
    slug = signed_in(client)
    Membership.objects.filter(tenant__slug=slug).delete()
    assert client.get(f"/t/{slug}/").status_code == 404
