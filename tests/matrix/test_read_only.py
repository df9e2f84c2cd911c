"""A read-only site over the whole URL table: what is posted to an address is refused before a page or a view is reached."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from ctxengine.ledger.models import Role
from ctxengine.site.read_only import READS
from tests.factories import make_person, make_tenant
from tests.matrix.test_role_matrix import FORMS, MATRIX

pytestmark = pytest.mark.django_db

ENDS = {
    "UUIDConverter": uuid.UUID(int=1),
    "IntConverter": 1,
    "PathConverter": "shell.run",
    "StringConverter": "word",
    "SlugConverter": "word",
    "ItemConverter": "3.0",
    "DigestConverter": "ab" * 32,
    "EpochConverter": 1,
    "PrincipalConverter": "user:1",
    "ModelKeyConverter": "openai/m",
    "TwinConverter": "html",
    "PageTwinConverter": "html",
}
"""What stands in an address for each kind of part. It need not exist: nothing is looked up."""


def routes(
    patterns: Iterable[URLPattern | URLResolver], space: str = ""
) -> Iterator[tuple[str, URLPattern]]:
    """Every named address of the site, with its full name."""
    for one in patterns:
        if isinstance(one, URLResolver):
            yield from routes(one.url_patterns, f"{one.namespace}:" if one.namespace else space)
        elif one.name:
            yield f"{space}{one.name}", one


def addresses(slug: str) -> dict[str, str]:
    """Name and address of every route, under one tenant where it is a tenant's."""
    found = {}
    for name, pattern in routes(get_resolver().url_patterns):
        parts: dict[str, Any] = {
            part: ENDS[type(converter).__name__]
            for part, converter in pattern.pattern.converters.items()
        }
        if "slug" in parts:
            parts["slug"] = slug
        found[name] = reverse(name, kwargs=parts)
    return found


def test_whatever_is_posted_anywhere_is_refused_by_a_read_only_site(settings: Any) -> None:
    settings.CTX_READ_ONLY = True
    tenant = make_tenant()
    admin = Client()
    admin.force_login(make_person(tenant, Role.ADMIN))
    wrong, refused = {}, 0
    for name, address in addresses(tenant.slug).items():
        short = name.rpartition(":")[2]
        if short in READS:
            continue
        for method in ("post", "put", "delete") if address.startswith("/api/") else ("post",):
            answer: HttpResponse = getattr(admin, method)(address)
            if answer.status_code != 403 or b"read-only" not in answer.content:
                wrong[name, method] = answer.status_code
            refused += 1
    assert wrong == {}
    assert refused > 200


def test_what_a_read_only_site_lets_through_changes_nothing() -> None:
    known = {"login", "logout"} | {name for name, row in MATRIX.items() if row.post == 200}
    assert known >= READS, "a POST that may change something is among those that pass"
    assert not READS & set(FORMS)
