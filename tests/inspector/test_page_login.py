"""Signing in and out."""

from __future__ import annotations

import json
import re

import pytest
from django.test import Client
from pytest_django import Settings

from tests.factories import PASSWORD, make_person, make_tenant

pytestmark = pytest.mark.django_db


def sign_in(client: Client, name: str, password: str) -> int:
    return client.post("/login/", {"username": name, "password": password}).status_code


def test_a_member_lands_in_their_tenant() -> None:
    tenant = make_tenant()
    person = make_person(tenant)
    client = Client()
    assert sign_in(client, person.username, PASSWORD) == 302
    assert client.get("/")["Location"] == f"/t/{tenant.slug}/"


def test_a_person_without_tenant_is_told() -> None:
    client = Client()
    client.force_login(make_person(None))
    response = client.get("/")
    assert response.status_code == 403
    assert b"belong to no tenant" in response.content


def test_a_wrong_password_says_nothing_about_the_name() -> None:
    person = make_person(make_tenant())
    known = Client().post("/login/", {"username": person.username, "password": "x"}).content
    unknown = Client().post("/login/", {"username": "nobody-here", "password": "x"}).content
    assert b"do not match" in known
    assert b"do not match" in unknown


def test_a_page_asks_to_sign_in_and_returns_there() -> None:
    tenant = make_tenant()
    response = Client().get(f"/t/{tenant.slug}/sessions/?q=x")
    assert response["Location"] == f"/login/?next=/t/{tenant.slug}/sessions/%3Fq%3Dx"


def test_signing_out_needs_a_post() -> None:
    client = Client()
    client.force_login(make_person(make_tenant()))
    assert client.get("/logout/").status_code == 405
    assert client.post("/logout/").status_code == 302


def test_guessing_is_stopped(settings: Settings) -> None:
    settings.AXES_ENABLED = True
    person = make_person(make_tenant())
    client = Client()
    statuses = [
        sign_in(client, person.username, "guess") for _ in range(settings.AXES_FAILURE_LIMIT)
    ]
    assert statuses[-1] == 429
    assert sign_in(client, person.username, PASSWORD) == 429


@pytest.mark.parametrize("path", ["requests/", "f/news/requests/?newest=x", "jobs/?state=failed"])
def test_a_part_of_a_page_that_stood_open_too_long_has_the_page_sign_in(path: str) -> None:
    response = Client().get(f"/t/{make_tenant().slug}/{path}", headers={"HX-Request": "true"})
    assert (response.status_code, response["HX-Refresh"], response.content) == (204, "true", b"")
    assert "HX-Request" in response["Vary"]
    assert "no-store" in response["Cache-Control"]


def test_no_error_is_swapped_into_a_page_by_default() -> None:
    person = make_person(make_tenant("open"))
    client = Client()
    client.force_login(person)
    page = client.get("/t/open/").content.decode()
    found = re.search(r"name=\"htmx-config\"\s+content='([^']+)'", page)
    assert found
    rules = json.loads(found[1])["responseHandling"]

    def swaps(status: int) -> bool:
        return next(rule["swap"] for rule in rules if re.search(rule["code"], str(status)))

    assert [status for status in range(200, 600) if swaps(status)] == [
        *(status for status in range(200, 300) if status != 204),
        422,
    ]
